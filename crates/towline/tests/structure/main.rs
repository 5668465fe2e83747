//! The house rules that a reader of one file cannot see: who knows the kinds of cluster, which
//! crates see which, what they may call, how long files are, which words are not used, and what
//! `--json` prints.
#![allow(clippy::unwrap_used, clippy::too_many_lines)]

mod answers;
mod crates;
mod kinds;
mod lints;
mod pages;
mod sessions;
mod shape;
mod sources;
mod words;
