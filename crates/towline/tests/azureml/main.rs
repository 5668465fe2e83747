//! Runs on Azure ML, in its three flavours: the emulator that Microsoft's own client certifies,
//! with real processes for jobs and a real blob service beside it.
#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    clippy::disallowed_methods
)]

mod act;
mod agents;
mod apart;
mod canary;
mod console;
mod contract;
mod crosswise;
mod discover;
mod fields;
mod flow;
mod foreign;
mod golden;
mod lab;
mod life;
mod login;
mod machines;
mod outputs;
mod pages;
mod polite;
mod roles;
mod sign_in;
mod ssh;
mod stage;
mod unheard;
mod way;
mod why;
