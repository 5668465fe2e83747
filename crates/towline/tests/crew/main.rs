//! `tow __crew`, started on every node as a service would: the shipped binary, real processes, and
//! folders in the place of what the service mounts.
#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    clippy::disallowed_methods
)]

mod ends;
mod gang;
mod given;
mod lab;
mod secrets;
mod single;
