//! The content-addressed engine: walk a tree, keep what is new of it, lay it out again, verified.
