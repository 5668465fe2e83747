//! The house rules that a reader of one file cannot see: who knows the kinds of cluster, which
//! crates see which, how long files are, and which words are not used.
#![allow(clippy::unwrap_used, clippy::too_many_lines)]

mod crates;
mod kinds;
mod pages;
mod shape;
mod sources;
mod words;
