//! An error of ours, as it travels.

use towline_core::{Error, ErrorKind};
use towline_wire::daemon::{Refusal, RefusalKind};

pub(crate) fn refusal(error: &Error) -> Refusal {
    let kind = match error.kind() {
        ErrorKind::NotFound => RefusalKind::NotFound,
        ErrorKind::Refused => RefusalKind::Refused,
        ErrorKind::Config => RefusalKind::Config,
        ErrorKind::Unreachable => RefusalKind::Unreachable,
        _ => RefusalKind::Bug,
    };
    Refusal { kind, message: error.to_string(), hints: error.hints().to_vec() }
}
