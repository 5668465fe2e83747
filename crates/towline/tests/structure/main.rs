//! The house rules that a reader of one file cannot see: who knows the kinds of cluster, which
//! crates see which, what they may call, how long files are, and which words are not used.
#![allow(clippy::unwrap_used, clippy::too_many_lines)]

mod crates;
mod kinds;
mod lints;
mod pages;
mod shape;
mod sources;
mod words;
