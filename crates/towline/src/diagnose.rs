//! The only place where an error becomes a message, hints and an exit code.

use crate::output::{self, Paint, paint, stderr_has_colour};
use towline_core::Error;
use towline_wire::report::Failure;

/// Prints the error and returns its exit code.
pub(crate) fn report(error: &Error, json: bool) -> u8 {
    let code = error.kind().exit_code();
    if json {
        let failure = Failure::from(error);
        output::status_json(&serde_json::to_string(&failure).unwrap_or_default());
        return code;
    }
    let colour = stderr_has_colour();
    output::status(&format!("{} {error}", paint(Paint::Bad, "error:", colour)));
    for hint in error.hints() {
        output::status(&format!(
            "{} {hint}",
            paint(Paint::Waiting, " hint:", colour)
        ));
    }
    if error.kind() == towline_core::ErrorKind::Bug {
        output::status(&format!(
            "{} `tow doctor` looks closer; please report this",
            paint(Paint::Waiting, " hint:", colour)
        ));
    }
    code
}
