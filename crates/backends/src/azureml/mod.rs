//! Azure ML: computes of a workspace, Kubernetes attached to it (ITP), and virtual clusters of
//! Singularity. REST only; one code path, three flavours.

pub mod seams;
