//! Two reasons why the next try may succeed: the network has changed, or the machine has slept.

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};
use rustix::time::{ClockId, clock_gettime};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Links, addresses and routes, of both IP versions: RTMGRP_LINK, _IPV4_IFADDR, _IPV4_ROUTE,
/// _IPV6_IFADDR, _IPV6_ROUTE.
const NETLINK_GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;

/// The kernel's messages about changes of the network.
#[derive(Debug)]
pub(super) struct NetworkChanges(OwnedFd);

impl NetworkChanges {
    pub(super) fn listen() -> Option<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // The protocol number of NETLINK_ROUTE is 0, which rustix takes as `None`.
        let socket =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None).ok()?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, NETLINK_GROUPS)).ok()?;
        Some(Self(socket))
    }

    /// Reads and drops all messages. That something changed is enough to know.
    pub(super) fn drain(&self) {
        let mut piece = [0; 8192];
        while rustix::net::recv(&self.0, &mut piece[..], RecvFlags::DONTWAIT)
            .is_ok_and(|(count, _)| count > 0)
        {}
    }
}

impl AsFd for NetworkChanges {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Notices that the machine has slept: one clock goes on meanwhile, the other does not.
#[derive(Debug)]
pub(super) struct SleepWatch {
    seconds_asleep: i64,
}

impl SleepWatch {
    pub(super) fn watch() -> Self {
        Self {
            seconds_asleep: seconds_asleep(),
        }
    }

    /// Whether the machine has slept since the last call.
    pub(super) fn has_slept(&mut self) -> bool {
        let before = std::mem::replace(&mut self.seconds_asleep, seconds_asleep());
        self.seconds_asleep - before > 1
    }
}

fn seconds_asleep() -> i64 {
    clock_gettime(ClockId::Boottime).tv_sec - clock_gettime(ClockId::Monotonic).tv_sec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_is_awake_has_not_slept() {
        assert!(!SleepWatch::watch().has_slept());
        if let Some(changes) = NetworkChanges::listen() {
            changes.drain();
        }
    }
}
