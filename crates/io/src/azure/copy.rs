//! Copies inside the service, also from another account. The bytes do not pass through this
//! machine.

use super::Azure;
use super::call::{Authorization, Call};
use crate::data::Key;
use http::{Method, StatusCode};
use std::time::Duration;
use towline_core::{Error, Result};
use towline_host::backoff::Backoff;

/// The largest source of a copy that the service answers only when it is done.
const MAX_SYNC_COPY_BYTES: u64 = 256 << 20;
/// The other service may read the source for this long.
const SOURCE_URL_VALIDITY: Duration = Duration::from_secs(12 * 3600);
/// Pause before the first question whether a copy is done.
const FIRST_POLL_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between two such questions.
const MAX_POLL_PAUSE: Duration = Duration::from_secs(5);

pub(super) async fn copy(
    target: &Azure,
    source: &Azure,
    from: &Key,
    to: &Key,
    size: u64,
) -> Result<bool> {
    let same_account = target.service.endpoint == source.service.endpoint
        && target.service.account == source.service.account;
    let own_key = same_account
        && matches!(
            (&target.service.authorization, &source.service.authorization),
            (Authorization::Key(_), Authorization::Key(_))
        );
    // With the account's key the service reads its own account without a signature.
    let address = if own_key {
        source.bare_url(from)
    } else {
        source.source_url(from, SOURCE_URL_VALIDITY).await?
    };
    let mut call =
        Call::new(Method::PUT, Some(&target.full(to)), 'w').header("x-ms-copy-source", address);
    if !own_key && size <= MAX_SYNC_COPY_BYTES {
        call = call.header("x-ms-requires-sync", "true");
    }
    let answer = target.service.ask(&call).await?;
    match answer.status {
        StatusCode::ACCEPTED | StatusCode::CREATED | StatusCode::OK => {}
        // The service cannot read the source although we can: the bytes go through this machine.
        StatusCode::NOT_FOUND
        | StatusCode::FORBIDDEN
        | StatusCode::UNAUTHORIZED
        | StatusCode::BAD_REQUEST
        | StatusCode::NOT_IMPLEMENTED
        | StatusCode::CONFLICT => {
            return Ok(false);
        }
        _ => return Err(target.service.explain(&call, &answer)),
    }
    let mut status = answer.header("x-ms-copy-status").map(str::to_owned);
    let mut backoff = Backoff::new(FIRST_POLL_PAUSE, MAX_POLL_PAUSE);
    while status.as_deref() == Some("pending") {
        tokio::time::sleep(backoff.pause()).await;
        let head = Call::new(Method::HEAD, Some(&target.full(to)), 'r');
        let seen = target
            .service
            .ask_expecting(&head, &[StatusCode::OK])
            .await?;
        status = seen.header("x-ms-copy-status").map(str::to_owned);
        if matches!(status.as_deref(), Some("failed" | "aborted")) {
            let why = seen
                .header("x-ms-copy-status-description")
                .unwrap_or("no reason given");
            return Err(Error::unreachable(format!(
                "{to}: the copy inside the service failed: {why}"
            )));
        }
    }
    Ok(true)
}
