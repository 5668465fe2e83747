//! Exactly once on Azure ML, on the emulator that Microsoft's own client certifies: every call that
//! a submission, an abort and a resubmission make has its answer lost in every way; client, daemon
//! and runners are killed at every named point and at random moments; what was put is not seen yet,
//! and tokens expire. Then things go on. No job is lost, no attempt starts twice, no two attempts
//! of a run live at once, logs are whole, the history agrees with the service, and nothing is left
//! running.
//!
//! A seeded tenth runs here; `TOW_SOAK=1` runs all.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod campaign;
mod check;
mod faults;
mod lab;
