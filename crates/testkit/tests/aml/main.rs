//! The emulator of Azure ML, judged by what nobody here wrote: Microsoft's clients and validator,
//! and the published examples. What it must do for tests beyond that is checked by plain requests.

#![expect(clippy::unwrap_used, reason = "tests")]

mod ask;
mod certify;
mod cloud;
mod examples;
mod faults;
mod jobs;
