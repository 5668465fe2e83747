//! Explains errors of the service.

use super::S3;
use crate::web::NoAnswer;
use towline_core::Error;

impl S3 {
    pub(super) fn explain(&self, error: object_store::Error) -> Error {
        use object_store::Error as Store;
        let mut deepest: &dyn std::error::Error = &error;
        loop {
            if let Some(problem) = deepest.downcast_ref::<NoAnswer>() {
                return problem.explain(&self.place, &self.host);
            }
            match deepest.source() {
                Some(deeper) => deepest = deeper,
                None => break,
            }
        }
        let message = error_message(&deepest.to_string());
        match error {
            Store::NotFound { .. } if message.contains("NoSuchBucket") => Error::not_found(
                format!("{}: there is no bucket `{}`", self.place, self.bucket),
            )
            .hint("create it, or correct `bucket`"),
            Store::NotFound { path, .. } => {
                Error::not_found(format!("{}: there is no {path}", self.place))
            }
            Store::PermissionDenied { .. } | Store::Unauthenticated { .. } => {
                let error = Error::denied(format!("{} refuses: {message}", self.place));
                match message.as_str() {
                    text if text.contains("InvalidAccessKeyId") => error.hint(
                        "the access key is not known there: look at access_key_id and `endpoint`",
                    ),
                    text if text.contains("SignatureDoesNotMatch") => {
                        error.hint("the secret key does not fit the access key")
                    }
                    text if text.contains("RequestTimeTooSkewed") => {
                        error.hint("the clock here is wrong")
                    }
                    text if text.contains("ExpiredToken") => {
                        error.hint("the session token has expired; get a new one")
                    }
                    _ => error.hint("these credentials may not do this"),
                }
            }
            Store::Precondition { path, .. } | Store::NotModified { path, .. } => {
                Error::conflict(format!("{path} was changed meanwhile"))
            }
            _ => Error::refused(format!("{}: {message}", self.place)),
        }
    }
}

/// The code and the message of an error's XML, or its first line.
fn error_message(text: &str) -> String {
    match (
        crate::web::element(text.as_bytes(), "Code"),
        crate::web::element(text.as_bytes(), "Message"),
    ) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code,
        _ => text.lines().next().unwrap_or_default().to_owned(),
    }
}
