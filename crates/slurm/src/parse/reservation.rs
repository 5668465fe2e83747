//! `scontrol show reservation`: nodes that are reserved for somebody, or for maintenance.

use super::pairs::{Free, get, pairs, records};
use super::unreadable;
use super::values;
use crate::owned;
use towline_core::Result;
use towline_core::time::Moment;

pub fn argv() -> Vec<String> {
    owned(["scontrol", "show", "reservation", "-a", "-o"])
}

const FREE: &[Free] = &[("Comment", &[])];

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reservation {
    pub name: String,
    pub start: Option<Moment>,
    pub end: Option<Moment>,
    /// A host list.
    pub nodes: String,
    pub node_count: u32,
    pub partition: Option<String>,
    pub flags: Vec<String>,
    pub is_active: bool,
    pub users: Vec<String>,
    pub accounts: Vec<String>,
}

impl Reservation {
    /// Whether it is for maintenance: no jobs run in it.
    pub fn is_maintenance(&self) -> bool {
        self.flags.iter().any(|flag| flag == "MAINT")
    }

    /// Whether a job on these nodes that starts at `start` and may take `seconds` would overlap it.
    /// A job without a limit always does.
    pub fn blocks(&self, start: Moment, seconds: Option<u64>) -> bool {
        let (Some(begin), Some(end)) = (self.start, self.end) else {
            return false;
        };
        let job_end = seconds.map(|seconds| start.plus_millis(seconds.saturating_mul(1000)));
        start < end && job_end.is_none_or(|job_end| job_end > begin)
    }
}

/// Reads the answer to [`argv`].
pub fn read(text: &str) -> Result<Vec<Reservation>> {
    let found = records(text, "ReservationName");
    if found.is_empty() && !text.contains("No reservations in the system") {
        return Err(unreadable("scontrol show reservation", text.trim()));
    }
    found.into_iter().map(reservation).collect()
}

fn reservation(record: &str) -> Result<Reservation> {
    let pairs = pairs(record, FREE);
    let value = |key: &str| get(&pairs, key);
    let name = values::words(value("ReservationName"))
        .ok_or_else(|| unreadable("scontrol show reservation", record))?;
    Ok(Reservation {
        name,
        start: values::moment(value("StartTime")),
        end: values::moment(value("EndTime")),
        nodes: values::words(value("Nodes")).unwrap_or_default(),
        node_count: values::count(value("NodeCnt")).unwrap_or(0),
        partition: values::words(value("PartitionName")),
        flags: values::list(value("Flags")),
        is_active: value("State") == "ACTIVE",
        users: values::list(value("Users")),
        accounts: values::list(value("Accounts")),
    })
}
