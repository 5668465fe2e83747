//! Signs that a try may do better now: the network has changed, or the machine has slept.

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};
use rustix::time::{ClockId, clock_gettime};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Links, addresses and routes, of both IP versions: RTMGRP_LINK, _IPV4_IFADDR, _IPV4_ROUTE,
/// _IPV6_IFADDR, _IPV6_ROUTE.
const NETLINK_GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;

/// The kernel's word of every change of the network.
#[derive(Debug)]
pub(super) struct Changes(OwnedFd);

impl Changes {
    pub(super) fn listen() -> Option<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // The protocol of routes has the number that means none.
        let socket =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None).ok()?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, NETLINK_GROUPS)).ok()?;
        Some(Self(socket))
    }

    /// Takes what has been said. What it was does not matter: whoever asks looks for itself.
    pub(super) fn take(&self) {
        let mut piece = [0; 8192];
        while rustix::net::recv(&self.0, &mut piece[..], RecvFlags::DONTWAIT)
            .is_ok_and(|(count, _)| count > 0)
        {}
    }
}

impl AsFd for Changes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Finds out that the machine has slept: one clock goes on meanwhile, the other does not.
#[derive(Debug)]
pub(super) struct Sleep {
    gap: i64,
}

impl Sleep {
    pub(super) fn watch() -> Self {
        Self { gap: gap() }
    }

    /// Whether it has since this was last asked.
    pub(super) fn was(&mut self) -> bool {
        let before = std::mem::replace(&mut self.gap, gap());
        self.gap - before > 1
    }
}

fn gap() -> i64 {
    clock_gettime(ClockId::Boottime).tv_sec - clock_gettime(ClockId::Monotonic).tv_sec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_is_awake_has_not_slept_and_its_network_is_heard() {
        assert!(!Sleep::watch().was());
        if let Some(changes) = Changes::listen() {
            changes.take();
        }
    }
}
