//! Signing in to Azure and calling it, against the certified emulator, a real blob service and the
//! real `az`.

#![expect(clippy::unwrap_used, clippy::too_many_lines, reason = "tests")]

mod az;
mod blobs;
mod calls;
mod login;
mod processes;
mod renewal;
mod seam;
mod signing_in;
mod stage;
