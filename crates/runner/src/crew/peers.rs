//! The other nodes, from the leader's side: which have connected, their messages, and which are
//! lost.

use super::Pace;
use super::connection::PeerConnection;
use super::place::Station;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use towline_wire::crew::{FromNode, SharedToken, ToNode};

/// How long to wait until the others have the order to leave.
const LEAVE_ORDER_TIMEOUT: Duration = Duration::from_secs(2);

/// An event that the leader handles.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    Said(u32, FromNode),
    Lost(u32, String),
}

#[derive(Debug)]
pub(super) struct Peers {
    shared_token: SharedToken,
    nodes: u32,
    pace: Pace,
    address: SocketAddr,
    listener: Option<TcpListener>,
    /// Connections that have not introduced themselves.
    unidentified: Vec<PeerConnection>,
    connected: BTreeMap<u32, Peer>,
}

#[derive(Debug)]
struct Peer {
    connection: PeerConnection,
    host: String,
}

impl Peers {
    pub(super) fn new(
        station: &Station,
        nodes: u32,
        shared_token: &SharedToken,
        pace: Pace,
    ) -> Self {
        let ip = station
            .leader
            .parse()
            .unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let address = SocketAddr::new(ip, station.port);
        Self {
            shared_token: shared_token.clone(),
            nodes,
            pace,
            address,
            listener: None,
            unidentified: Vec::new(),
            connected: BTreeMap::new(),
        }
    }

    /// Listens, if there are other nodes. An error may be temporary: another process may have the
    /// port.
    pub(super) fn open(&mut self) -> io::Result<()> {
        if self.nodes <= 1 || self.listener.is_some() {
            return Ok(());
        }
        let listener = match TcpListener::bind(self.address) {
            // Not an address of this machine, but one of a gateway before it.
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                TcpListener::bind((Ipv4Addr::UNSPECIFIED, self.address.port()))?
            }
            other => other?,
        };
        listener.set_nonblocking(true)?;
        self.listener = Some(listener);
        Ok(())
    }

    pub(super) fn watches(&self) -> Vec<BorrowedFd<'_>> {
        let listener = self.listener.iter().map(AsFd::as_fd);
        listener
            .chain(self.unidentified.iter().map(AsFd::as_fd))
            .chain(self.connected.values().map(|peer| peer.connection.as_fd()))
            .collect()
    }

    /// Nodes that have not connected.
    pub(super) fn missing(&self) -> Vec<u32> {
        (1..self.nodes)
            .filter(|node| !self.connected.contains_key(node))
            .collect()
    }

    /// The address of a node; empty if it never connected.
    pub(super) fn host(&self, node: u32) -> &str {
        self.connected.get(&node).map_or("", |peer| &peer.host)
    }

    /// All events since the last call.
    pub(super) fn receive(&mut self) -> Vec<Event> {
        let mut events = self.accept();
        let mut gone = Vec::new();
        for (node, peer) in &mut self.connected {
            let (messages, lost) = peer.connection.receive::<FromNode>();
            events.extend(
                messages
                    .into_iter()
                    .filter(|message| *message != FromNode::Alive)
                    .map(|message| Event::Said(*node, message)),
            );
            if let Some(why) = lost {
                gone.push(*node);
                events.push(Event::Lost(
                    *node,
                    format!("node {node} ({}) was lost: {why}", peer.host),
                ));
            }
        }
        for node in gone {
            self.connected.remove(&node);
        }
        events
    }

    /// Accepts a node that knows the token and whose place is free. Any other peer gets no answer.
    fn accept(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(Ok((stream, _))) = self.listener.as_ref().map(TcpListener::accept) {
            self.unidentified
                .extend(PeerConnection::new(stream, self.pace).ok());
        }
        for mut connection in std::mem::take(&mut self.unidentified) {
            match connection.introduction::<FromNode>() {
                Ok(None) => self.unidentified.push(connection),
                Ok(Some(FromNode::Here {
                    shared_token,
                    node,
                    host,
                })) if shared_token == self.shared_token && (1..self.nodes).contains(&node) => {
                    if connection.keep_alive(&ToNode::Alive).is_ok()
                        && self
                            .connected
                            .insert(node, Peer { connection, host })
                            .is_some()
                    {
                        // The processes of its earlier start are gone.
                        events.push(Event::Lost(node, format!("node {node} was restarted")));
                    }
                }
                Ok(Some(_)) | Err(_) => {}
            }
        }
        events
    }

    /// Sends to all. [`Self::receive`] finds out which of them are lost.
    pub(super) fn send_all(&self, message: &ToNode) {
        for peer in self.connected.values() {
            let _ = peer.connection.send(message);
        }
    }

    /// Stops counting on a node.
    pub(super) fn give_up(&mut self, node: u32) {
        self.connected.remove(&node);
    }

    /// Orders all nodes to leave, and waits a little until they have.
    pub(super) fn dismiss_all(&mut self, code: i32) {
        self.listener = None;
        self.send_all(&ToNode::Leave { code });
        self.connected
            .values()
            .for_each(|peer| peer.connection.finish());
        let begun = Instant::now();
        while !self.connected.is_empty() && begun.elapsed() < LEAVE_ORDER_TIMEOUT {
            let limit = crate::carry::timespec(LEAVE_ORDER_TIMEOUT.saturating_sub(begun.elapsed()));
            let mut watched: Vec<_> = self
                .watches()
                .into_iter()
                .map(|watch| {
                    rustix::event::PollFd::from_borrowed_fd(watch, rustix::event::PollFlags::IN)
                })
                .collect();
            let _ = rustix::event::poll(&mut watched, Some(&limit));
            drop(watched);
            self.receive();
        }
    }
}
