//! When a request that failed is sent again, and when to give up.

use crate::web::{Answer, Cause, NoAnswer, asked_pause};
use http::StatusCode;
use std::time::Duration;

/// The limits for requests without an answer, or with one that says nothing of the request.
#[derive(Debug, Clone, Copy)]
pub struct RequestRetry {
    /// The maximum number of tries.
    pub tries: u32,
    /// Tries at a service that has never answered: the address is probably wrong.
    pub tries_at_a_stranger: u32,
    /// How long a failing service is tried.
    pub trouble: Duration,
    /// How long a service that throttles us is tried.
    pub throttling: Duration,
    /// Whether sending it twice has the same effect as once. If not, it is sent again only if the
    /// first try cannot have had an effect.
    pub repeatable: bool,
    /// An answer to any call counts as progress. For many calls that are one operation.
    pub is_shared: bool,
}

impl Default for RequestRetry {
    /// For transfers: hours of work are not given up because of one bad minute.
    fn default() -> Self {
        let long = Duration::from_secs(120);
        Self {
            tries: 10,
            tries_at_a_stranger: 4,
            trouble: long,
            throttling: long,
            repeatable: true,
            is_shared: true,
        }
    }
}

impl RequestRetry {
    /// For a call that a user waits for.
    pub const fn of_a_call(repeatable: bool) -> Self {
        let (trouble, throttling) = (Duration::from_secs(10), Duration::from_secs(60));
        Self {
            tries: u32::MAX,
            tries_at_a_stranger: 4,
            trouble,
            throttling,
            repeatable,
            is_shared: false,
        }
    }

    /// Whether an answer is final, even if it is a refusal.
    pub(crate) fn takes(&self, answer: &Answer) -> bool {
        if self.repeatable {
            !may_pass(answer.status)
        } else {
            !says_nothing_was_done(answer)
        }
    }

    /// Whether to give up, if the next try would come after `pause`.
    pub(crate) fn is_over(&self, problem: &NoAnswer, tried: &Tried, pause: Duration) -> bool {
        let throttled = match problem.cause {
            Cause::Tls => return true,
            Cause::Broken if !self.repeatable => return true,
            Cause::Status(status) => {
                status == StatusCode::TOO_MANY_REQUESTS
                    || (status == StatusCode::SERVICE_UNAVAILABLE && tried.is_asked)
            }
            _ => false,
        };
        let limit = if tried.is_known || matches!(problem.cause, Cause::Status(_)) {
            self.tries
        } else {
            self.tries_at_a_stranger
        };
        let time = if throttled {
            self.throttling
        } else {
            self.trouble
        };
        // A waiting user is not kept for a try that would come too late.
        let ahead = if self.is_shared {
            Duration::ZERO
        } else {
            pause
        };
        tried.times >= limit || tried.elapsed + ahead > time
    }
}

/// The tries so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tried {
    pub(crate) times: u32,
    pub(crate) elapsed: Duration,
    /// The service has answered before.
    pub(crate) is_known: bool,
    /// The service itself said how long to wait.
    pub(crate) is_asked: bool,
}

/// Whether a status says nothing of the request itself.
fn may_pass(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
    ) || (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED)
}

/// Whether the service was too busy to begin.
fn says_nothing_was_done(answer: &Answer) -> bool {
    match answer.status {
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::SERVICE_UNAVAILABLE => asked_pause(&answer.headers).is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;
    use http::header::RETRY_AFTER;

    fn answer(status: u16, retry_after: Option<&'static str>) -> Answer {
        let mut headers = HeaderMap::new();
        headers.extend(
            retry_after.map(|seconds| (RETRY_AFTER, http::HeaderValue::from_static(seconds))),
        );
        Answer {
            status: StatusCode::from_u16(status).expect("a status"),
            headers,
            body: bytes::Bytes::new(),
            tries: 1,
        }
    }

    #[test]
    fn passing_failures_are_tried_again_and_final_ones_are_not() {
        let (shared, call) = (RequestRetry::default(), RequestRetry::of_a_call(true));
        for status in [408, 429, 500, 502, 503, 504] {
            assert!(
                !shared.takes(&answer(status, None)) && !call.takes(&answer(status, None)),
                "{status}"
            );
        }
        for status in [200, 201, 206, 304, 400, 401, 403, 404, 409, 412, 416, 501] {
            assert!(shared.takes(&answer(status, None)), "{status}");
        }
    }

    #[test]
    fn an_unrepeatable_call_is_sent_again_only_if_nothing_was_done() {
        let call = RequestRetry::of_a_call(false);
        assert!(
            [200, 400, 408, 500, 502, 503, 504]
                .iter()
                .all(|status| call.takes(&answer(*status, None)))
        );
        assert!(!call.takes(&answer(429, None)) && !call.takes(&answer(503, Some("1"))));
        let problem = |cause| NoAnswer {
            message: String::new(),
            cause,
            after: None,
        };
        let over = |cause| {
            call.is_over(
                &problem(cause),
                &Tried {
                    times: 1,
                    elapsed: Duration::ZERO,
                    is_known: true,
                    is_asked: false,
                },
                Duration::ZERO,
            )
        };
        assert!(over(Cause::Broken) && over(Cause::Tls));
        assert!(
            !over(Cause::Connect) && !over(Cause::Name),
            "nothing was sent"
        );
    }

    #[test]
    fn a_throttling_service_is_tried_for_longer() {
        let call = RequestRetry::of_a_call(true);
        let over = |status: StatusCode, seconds, asked: Option<u64>| {
            let problem = NoAnswer {
                message: String::new(),
                cause: Cause::Status(status),
                after: None,
            };
            let tried = Tried {
                times: 20,
                elapsed: Duration::from_secs(seconds),
                is_known: true,
                is_asked: asked.is_some(),
            };
            call.is_over(&problem, &tried, Duration::from_secs(asked.unwrap_or(0)))
        };
        let (busy, ill) = (StatusCode::TOO_MANY_REQUESTS, StatusCode::BAD_GATEWAY);
        assert!(!over(ill, 9, None) && over(ill, 11, None));
        assert!(
            !over(busy, 31, None)
                && !over(busy, 31, Some(20))
                && over(busy, 31, Some(40))
                && over(busy, 61, None)
        );
        assert!(
            !over(StatusCode::SERVICE_UNAVAILABLE, 31, Some(1))
                && over(StatusCode::SERVICE_UNAVAILABLE, 31, None)
        );
    }
}
