//! The emulator of Azure ML, checked by software of others: Microsoft's clients and validator, and
//! the published examples. Behaviour that tests need beyond that is checked by plain requests.

#![expect(clippy::unwrap_used, clippy::too_many_lines, reason = "tests")]

mod ask;
mod certify;
mod cloud;
mod examples;
mod faults;
mod jobs;
