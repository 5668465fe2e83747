//! How long to go on asking a service that gives no good answer, and what may be asked again.

use crate::web::{Answer, Cause, NoAnswer, asked_pause};
use http::StatusCode;
use std::time::Duration;

/// What is done when an answer fails to come, or says nothing of the request itself.
#[derive(Debug, Clone, Copy)]
pub struct RequestRetry {
    /// The most tries.
    pub tries: u32,
    /// Tries at a service that has never answered: more likely a wrong address than a bad moment.
    pub tries_at_a_stranger: u32,
    /// For how long a failing service is asked again.
    pub trouble: Duration,
    /// For how long one that asks for patience has it.
    pub throttling: Duration,
    /// Doing it twice is doing it once. If not, it is only sent again where nothing can have come
    /// of it.
    pub repeatable: bool,
    /// An answer to anybody counts as progress: for many calls that together are one act.
    pub is_shared: bool,
}

impl Default for RequestRetry {
    /// For transfers: hours of work are not given up for a bad minute.
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
    /// For calls that somebody waits for.
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

    /// Whether an answer is one, also where it is a refusal.
    pub(crate) fn takes(&self, answer: &Answer) -> bool {
        if self.repeatable {
            !may_pass(answer.status)
        } else {
            !says_nothing_was_done(answer)
        }
    }

    /// Whether to give up after so many tries in such a time, `pause` before the next one.
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
        // One who waits for an answer is not kept waiting for a try that comes too late.
        let ahead = if self.is_shared {
            Duration::ZERO
        } else {
            pause
        };
        tried.times >= limit || tried.elapsed + ahead > time
    }
}

/// How it went so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tried {
    pub(crate) times: u32,
    pub(crate) elapsed: Duration,
    /// The service has answered before.
    pub(crate) is_known: bool,
    /// It said itself how long to wait.
    pub(crate) is_asked: bool,
}

/// Statuses that say nothing of the request itself.
fn may_pass(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
    ) || (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED)
}

/// The service was too busy to begin.
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
    fn what_may_pass_is_tried_again_and_what_is_final_is_not() {
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
    fn what_is_not_repeatable_is_sent_again_only_where_nothing_was_done() {
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
    fn a_service_that_asks_for_patience_has_more_of_it() {
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
