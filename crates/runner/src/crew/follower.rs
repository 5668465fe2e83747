//! Any node of a job but the first: connects to the leader, follows its orders, and reports how it
//! went.

use super::connection::PeerConnection;
use super::local_part::{LocalPart, Step};
use super::{Crew, NODE_END_SLACK, SIGTERM_EXIT_CODE, TIMEOUT_CHECK_INTERVAL, complain};
use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use towline_wire::crew::{FromNode, ToNode};
use towline_wire::runner::Stop;

/// How long the leader may take to answer one connection.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// The exit code of a node that has lost the leader.
const LEADER_LOST_EXIT_CODE: i32 = 1;

pub(super) fn follow(crew: Crew<'_>) -> io::Result<i32> {
    Follower {
        crew,
        local_part: None,
        has_begun: false,
        signalled_at: None,
        has_lost_leader: false,
    }
    .follow()
}

struct Follower<'a> {
    crew: Crew<'a>,
    local_part: Option<LocalPart>,
    has_begun: bool,
    /// Since when the service has asked it to end.
    signalled_at: Option<Instant>,
    /// The leader is lost.
    has_lost_leader: bool,
}

impl Follower<'_> {
    fn follow(&mut self) -> io::Result<i32> {
        let deadline = Instant::now() + self.crew.task.pace.meeting;
        loop {
            let mut connection = match self.join(deadline)? {
                Ok(connection) => connection,
                Err(code) => return Ok(code),
            };
            if let Some(code) = self.serve(&mut connection)? {
                return Ok(code);
            }
            // The connection broke before anything began: the leader may be starting again.
            if Instant::now() >= deadline {
                complain("node 0 has nothing for us");
                return Ok(LEADER_LOST_EXIT_CODE);
            }
        }
    }

    /// Connects to the leader until it answers. Returns an exit code if that fails for good.
    fn join(&mut self, deadline: Instant) -> io::Result<Result<PeerConnection, i32>> {
        loop {
            let failed = match self.call() {
                Ok(connection) => return Ok(Ok(connection)),
                Err(error) => error,
            };
            if Instant::now() >= deadline {
                let station = &self.crew.station;
                complain(&format!(
                    "node 0 cannot be reached at {}:{}: {failed}",
                    station.leader, station.port
                ));
                return Ok(Err(LEADER_LOST_EXIT_CODE));
            }
            let signalled = self
                .crew
                .end_signal
                .wait(None, self.crew.task.pace.call_every)?
                .is_some();
            if self.crew.is_orphan() {
                return Ok(Err(LEADER_LOST_EXIT_CODE));
            }
            if signalled {
                return Ok(Err(SIGTERM_EXIT_CODE));
            }
        }
    }

    fn call(&self) -> io::Result<PeerConnection> {
        let station = &self.crew.station;
        let mut failed = io::Error::other("it has no address");
        for address in station.addresses()? {
            match TcpStream::connect_timeout(&address, CALL_TIMEOUT) {
                // A connection to a free port of this machine may connect to itself.
                Ok(stream) if stream.local_addr()? == stream.peer_addr()? => {
                    failed = io::Error::other("nobody listens");
                }
                Ok(stream) => {
                    // The address by which the others reach us.
                    let host = stream.local_addr()?.ip().to_string();
                    let connection = PeerConnection::new(stream, self.crew.task.pace)?;
                    connection.send(&FromNode::Here {
                        shared_token: self.crew.carrier.order.shared_token.clone(),
                        node: station.node,
                        host,
                    })?;
                    connection.keep_alive(&FromNode::Alive)?;
                    return Ok(connection);
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Follows the leader's orders. Returns the exit code, or none if the leader is to be called
    /// again.
    fn serve(&mut self, connection: &mut PeerConnection) -> io::Result<Option<i32>> {
        loop {
            if self.wait(connection)? {
                self.signalled_at.get_or_insert_with(Instant::now);
                let grace = self.crew.short_grace();
                match &mut self.local_part {
                    Some(local_part) => local_part.stop_soon(Stop::Preempted, grace),
                    None => return Ok(Some(SIGTERM_EXIT_CODE)),
                }
            }
            if self.crew.is_orphan() {
                // The leader notices the broken connection.
                towline_host::process::kill_all_descendants();
                return Ok(Some(LEADER_LOST_EXIT_CODE));
            }
            if !self.has_lost_leader {
                let (messages, lost) = connection.receive::<ToNode>();
                for message in messages {
                    if let Some(code) = self.handle(message) {
                        return Ok(Some(code));
                    }
                }
                if let Some(why) = lost {
                    if !self.has_begun {
                        std::thread::park_timeout(self.crew.task.pace.call_every);
                        return Ok(None);
                    }
                    self.leader_lost(&why);
                }
            }
            self.wake(connection);
            let is_overdue = self.signalled_at.is_some_and(|since| {
                since.elapsed() > self.crew.short_grace() + NODE_END_SLACK * 2
            });
            if self.local_part.is_none() && (self.has_lost_leader || is_overdue) {
                return Ok(Some(if self.signalled_at.is_some() {
                    SIGTERM_EXIT_CODE
                } else {
                    LEADER_LOST_EXIT_CODE
                }));
            }
        }
    }

    fn wait(&mut self, connection: &PeerConnection) -> io::Result<bool> {
        let local_part = self.local_part.as_ref();
        let mut others = Vec::new();
        if !self.has_lost_leader {
            others.push(connection.as_fd());
        }
        others.extend(local_part.and_then(LocalPart::watch));
        let limit = if local_part.is_some_and(LocalPart::is_due) {
            Duration::ZERO
        } else {
            TIMEOUT_CHECK_INTERVAL
        };
        Ok(self
            .crew
            .end_signal
            .wait_also(local_part.and_then(LocalPart::attempt), &others, limit)?
            .is_some())
    }

    /// Handles one order. Returns the exit code if the job is over.
    fn handle(&mut self, message: ToNode) -> Option<i32> {
        match message {
            ToNode::Begin {
                attempt,
                hosts,
                port,
            } if self.local_part.is_none() => {
                self.has_begun = true;
                self.local_part = Some(self.crew.carrier.begin(attempt, &hosts, port));
            }
            ToNode::Stop { attempt } => {
                if let Some(local_part) = self
                    .local_part
                    .as_mut()
                    .filter(|local_part| local_part.number() == attempt)
                {
                    local_part.stop(Stop::ByUser);
                }
            }
            ToNode::Leave { code } => {
                // The leader does not wait for processes that are left here.
                towline_host::process::kill_all_descendants();
                return Some(code);
            }
            ToNode::Begin { .. } | ToNode::Alive => {}
        }
        None
    }

    /// Ends the attempt, because without a leader nothing would end it.
    fn leader_lost(&mut self, why: &str) {
        complain(&format!("node 0 was lost: {why}"));
        self.has_lost_leader = true;
        if let Some(local_part) = &mut self.local_part {
            local_part.stop(Stop::ByUser);
        }
    }

    fn wake(&mut self, connection: &PeerConnection) {
        let Some(local_part) = &mut self.local_part else {
            return;
        };
        let attempt = local_part.number();
        let message = match local_part.wake() {
            Step::Nothing => return,
            Step::Started => FromNode::Started { attempt },
            Step::Ended(ending) => {
                self.local_part = None;
                FromNode::Ended { attempt, ending }
            }
        };
        // The leader notices a broken connection by itself.
        let _ = connection.send(&message);
    }
}
