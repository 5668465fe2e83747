//! The only place that reads the system's time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use towline_core::time::Moment;

/// Now, in UTC.
#[expect(clippy::disallowed_methods, reason = "this is the clock's owner")]
pub fn now() -> Moment {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Moment(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A time of the system, such as that of a file, as a moment.
pub fn moment(time: SystemTime) -> Moment {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Now, in nanoseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "this is the clock's owner")]
pub fn nanoseconds() -> i64 {
    UNIX_EPOCH.elapsed().map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

/// How long ago that was; `None` where it is yet to come.
#[expect(clippy::disallowed_methods, reason = "this is the clock's owner")]
pub fn age(time: SystemTime) -> Option<Duration> {
    time.elapsed().ok()
}
