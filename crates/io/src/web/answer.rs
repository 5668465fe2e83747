//! A whole answer of a service, and the message in it.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// Characters of a service's message that are shown.
const MAX_MESSAGE_CHARS: usize = 500;

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// How often the request was sent. If more than once, an earlier try may have taken effect.
    pub tries: u32,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The status and the message of an error, such as `503 ServerBusy: The server is busy.`
    pub fn message(&self) -> String {
        let json: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let of_json = |key: &str| json.get("error").unwrap_or(&json)[key].as_str().map(plain);
        let code = self
            .header("x-ms-error-code")
            .map(str::to_owned)
            .or_else(|| element(&self.body, "Code"))
            .or_else(|| of_json("code"));
        let message = element(&self.body, "Message")
            .or_else(|| of_json("message"))
            .map(|text| text.lines().next().unwrap_or_default().to_owned());
        let words: Vec<String> = [Some(self.status.as_u16().to_string()), code]
            .into_iter()
            .flatten()
            .collect();
        match message {
            Some(message) if !message.is_empty() => format!("{}: {message}", words.join(" ")),
            _ => match self.status.canonical_reason() {
                Some(reason) if words.len() == 1 => format!("{} {reason}", words[0]),
                _ => words.join(" "),
            },
        }
    }
}

/// The text of the first element of that name in an error's small XML.
pub fn element(body: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(&body[..body.len().min(4096)]);
    let begin = text.find(&format!("<{name}>"))? + name.len() + 2;
    let end = begin + text[begin..].find(&format!("</{name}>"))?;
    let inner = text[begin..end].trim();
    let inner = inner
        .strip_prefix("<![CDATA[")
        .and_then(|inner| inner.strip_suffix("]]>"))
        .unwrap_or(inner);
    Some(plain(inner))
}

/// A service's message, cut to a length, without control characters.
fn plain(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() || *c == '\n')
        .take(MAX_MESSAGE_CHARS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_quoted_without_its_markup() {
        let body = "<?xml version=\"1.0\"?><Error><Code>ServerBusy</Code><Message>The server is \
            busy.\nRequestId:1</Message></Error>";
        let answer = Answer {
            status: StatusCode::SERVICE_UNAVAILABLE,
            headers: HeaderMap::new(),
            body: body.into(),
            tries: 1,
        };
        assert_eq!(answer.message(), "503 ServerBusy: The server is busy.");
        let bare = Answer {
            body: Bytes::new(),
            ..answer
        };
        assert_eq!(bare.message(), "503 Service Unavailable");
    }
}
