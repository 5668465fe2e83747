//! Times for people: in the user's time zone, which is shown with each. Programs get UTC, in
//! `--json`.

use chrono::{DateTime, Local, TimeZone};
use towline_core::time::Moment;

/// `2026-11-16 11:55:57 +0100`
pub(crate) fn shown(moment: Moment) -> String {
    DateTime::from_timestamp_millis(moment.0).map_or_else(
        || moment.to_string(),
        |moment| written(&moment.with_timezone(&Local)),
    )
}

fn written<Z: TimeZone>(moment: &DateTime<Z>) -> String
where
    Z::Offset: std::fmt::Display,
{
    moment.format("%Y-%m-%d %H:%M:%S %z").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_is_said() {
        let zone = chrono::FixedOffset::east_opt(3600).expect("an hour");
        let moment = DateTime::from_timestamp_millis(1_763_189_280_123).expect("a moment");
        assert_eq!(
            written(&moment.with_timezone(&zone)),
            "2025-11-15 07:48:00 +0100"
        );
    }
}
