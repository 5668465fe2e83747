//! The answers of the service, and the shape of its refusals.

use serde_json::{Value, json};

#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Body,
}

#[derive(Debug, Clone)]
pub(super) enum Body {
    Empty,
    Json(Value),
    Bytes(Vec<u8>),
}

/// A refusal ends a handler early, with `?`.
pub(super) type Outcome = Result<Answer, Answer>;

impl Answer {
    pub(super) fn json(status: u16, body: Value) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Body::Json(body),
        }
        .with("Content-Type", "application/json; charset=utf-8")
    }
    pub(super) fn bytes(status: u16, bytes: Vec<u8>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Body::Bytes(bytes),
        }
        .with("Content-Type", "application/octet-stream")
    }
    pub(super) fn empty(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Body::Empty,
        }
    }
    pub(super) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

#[expect(clippy::unnecessary_wraps, reason = "most handlers end with it")]
pub(super) fn good(body: Value) -> Outcome {
    Ok(Answer::json(200, body))
}

/// The resource manager's own refusals.
pub(super) fn refusal(status: u16, code: &str, message: &str) -> Answer {
    Answer::json(status, json!({"error": {"code": code, "message": message}}))
}

/// Refusals of the service behind the resource manager, which add their kind.
pub(super) fn user_error(status: u16, message: &str, inner: &Value) -> Answer {
    let more = |kind: &str, value: &Value| json!({"type": kind, "info": {"value": value}});
    let error = json!({
        "code": "UserError",
        "message": message,
        "details": [],
        "additionalInfo": [more("ComponentName", &json!("managementfrontend")), more("InnerError", inner)],
    });
    Answer::json(status, json!({"error": error}))
}

pub(super) fn invalid(message: &str) -> Answer {
    user_error(
        400,
        message,
        &json!({"code": "BadArgument", "innerError": null}),
    )
}

pub(super) fn not_found(message: &str) -> Answer {
    user_error(
        404,
        message,
        &json!({"code": "NotFound", "innerError": null}),
    )
}

pub(super) fn immutable(names: &[&str]) -> Answer {
    let message = format!(
        "A job with this name already exists. If you are trying to create a new job, use a \
            different name. If you are trying to update an \
         existing job, the existing job's {} cannot be changed. Only description, tags, \
             displayName, properties, and isArchived can be updated.",
        names.join(", ")
    );
    user_error(
        400,
        &message,
        &json!({"code": "Immutable", "innerError": {"code": "JobPropertyImmutable", "innerError": null}}),
    )
}

pub(super) fn unauthorized(endpoint: &str, code: &str, message: &str) -> Answer {
    let challenge = format!(
        "Bearer authorization_uri=\"{endpoint}/common\", error=\"invalid_token\", \
            error_description=\"{message}\""
    );
    refusal(401, code, message).with("WWW-Authenticate", challenge)
}
