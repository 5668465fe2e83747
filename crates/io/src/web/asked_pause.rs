//! The pause that a service asks for.

use http::HeaderMap;
use http::header::RETRY_AFTER;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

/// The pause that the headers of an answer ask for.
pub(crate) fn asked_pause(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    number("x-ms-retry-after-ms")
        .or_else(|| number("retry-after-ms"))
        .map(Duration::from_millis)
        .or_else(|| number(RETRY_AFTER.as_str()).map(Duration::from_secs))
        .or_else(|| until(headers.get(RETRY_AFTER)?.to_str().ok()?))
}

/// The time from now to a moment in HTTP's format: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn until(text: &str) -> Option<Duration> {
    let moment = OffsetDateTime::parse(text.trim(), &Rfc2822).ok()?;
    Some(
        (moment - OffsetDateTime::now_utc())
            .try_into()
            .unwrap_or(Duration::ZERO),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_service_may_name_its_own_pause() {
        let mut headers = HeaderMap::new();
        assert_eq!(asked_pause(&headers), None);
        headers.insert(RETRY_AFTER, HeaderValue::from_static("3"));
        assert_eq!(asked_pause(&headers), Some(Duration::from_secs(3)));
        headers.insert(
            RETRY_AFTER,
            HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT"),
        );
        assert_eq!(asked_pause(&headers), Some(Duration::ZERO), "it has passed");
        headers.insert(
            RETRY_AFTER,
            HeaderValue::from_static("Wed, 06 Nov 2999 08:49:37 GMT"),
        );
        assert!(asked_pause(&headers).is_some_and(|pause| pause > Duration::from_secs(86_400)));
        headers.insert(RETRY_AFTER, HeaderValue::from_static("soon"));
        assert_eq!(asked_pause(&headers), None);
        headers.insert("x-ms-retry-after-ms", HeaderValue::from_static("250"));
        assert_eq!(asked_pause(&headers), Some(Duration::from_millis(250)));
    }
}
