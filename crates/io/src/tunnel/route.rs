//! The route from this machine to the far end: by ssh, or by a program that listens here.

use super::command::Program;
use super::probe::{self, ProbeConnection, ProbeFailure, ProbeStatus};
use crate::machine::relay::RemoteEnd;
use crate::machine::{Channel, SshTransport, VerboseChannel};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use towline_core::tunnel::{Definition, TunnelRoute};
use towline_core::{Error, Result};

/// How long a hop may take to begin a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the last hop may take to say why it cannot reach the target.
const REASON_TIMEOUT: Duration = Duration::from_secs(2);

/// Makes the transport to the last hop. It is called again after every loss, because the user's
/// configuration may have changed.
pub type Opener = Box<dyn Fn() -> Result<SshTransport> + Send + Sync>;

pub(super) struct Route {
    definition: Definition,
    opener: Opener,
    /// Writes the output of a program on the route to the log.
    log: Box<dyn Fn(&str) + Send + Sync>,
    current: Mutex<Option<Established>>,
}

#[derive(Clone)]
enum Established {
    Hop(Arc<SshTransport>),
    Program(Arc<Program>),
}

impl Route {
    pub(super) fn new(
        definition: Definition,
        opener: Opener,
        log: Box<dyn Fn(&str) + Send + Sync>,
    ) -> Self {
        Self {
            definition,
            opener,
            log,
            current: Mutex::default(),
        }
    }

    fn current(&self) -> MutexGuard<'_, Option<Established>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn established(&self) -> Result<Established> {
        self.current()
            .clone()
            .ok_or_else(|| Error::unreachable("there is no way now"))
    }

    /// Makes sure of the route up to the last hop, without asking the user.
    pub(super) fn establish(&self) -> Result<()> {
        let before = self.current().clone();
        let established = match (&self.definition.route, before) {
            (TunnelRoute::Hops(_), Some(Established::Hop(hop))) => {
                return hop.sign_in().inspect_err(|_| self.close());
            }
            (TunnelRoute::Hops(_), _) => {
                let hop = (self.opener)()?;
                hop.sign_in()?;
                Established::Hop(Arc::new(hop))
            }
            (TunnelRoute::Command(_), Some(Established::Program(program)))
                if program.is_alive() =>
            {
                return Ok(());
            }
            (TunnelRoute::Command(argv), _) => {
                drop(self.current().take());
                Established::Program(Arc::new(Program::start(argv)?))
            }
        };
        *self.current() = Some(established);
        Ok(())
    }

    /// Whether the route is up, as far as this machine knows without asking anybody.
    pub(super) fn is_up(&self) -> bool {
        match &*self.current() {
            Some(Established::Hop(hop)) => hop.has_master(),
            Some(Established::Program(program)) => program.is_alive(),
            None => false,
        }
    }

    /// A connection to the far end, for a program that connected to the port.
    pub(super) fn dial(&self) -> Result<RemoteEnd> {
        let target = &self.definition.dial;
        match self.established()? {
            Established::Hop(hop) => hop
                .dial(&target.host, target.port)
                .map(Channel::into_remote_end),
            Established::Program(program) => {
                let failed = |error: std::io::Error| {
                    Error::unreachable("the program on the way takes no connections")
                        .source_error(error)
                };
                let far =
                    TcpStream::connect((Ipv4Addr::LOCALHOST, program.port())).map_err(failed)?;
                let _ = far.set_nodelay(true);
                let (from, to, end) = (
                    far.try_clone().map_err(failed)?,
                    far.try_clone().map_err(failed)?,
                    far,
                );
                let is_cut = move || !program.is_alive();
                let end = move || drop(end.shutdown(Shutdown::Both));
                Ok(RemoteEnd {
                    from: Box::new(from),
                    to: Box::new(HalfOpen(to)),
                    is_cut: Box::new(is_cut),
                    end: Box::new(end),
                })
            }
        }
    }

    /// An error unless the far end answers. A hop or program that hangs is ended.
    pub(super) fn probe(&self) -> Result<()> {
        let target = &self.definition.dial;
        let established = self.established()?;
        let connection = match &established {
            Established::Hop(hop) => {
                let (from, to, channel) = hop.dial_verbose(&target.host, target.port)?.into_parts();
                Ok(ProbeConnection {
                    from,
                    to,
                    status: Box::new(channel),
                })
            }
            Established::Program(program) => probe_directly(program),
        };
        let Err(failure) =
            connection.and_then(|connection| probe::ask(self.definition.probe, connection))
        else {
            return Ok(());
        };
        Err(match &established {
            Established::Hop(hop) => self.hop_error(hop, &failure),
            Established::Program(program) => {
                let error = self.program_error(program, &failure);
                (self.log)(&program.output());
                self.close();
                error
            }
        })
    }

    /// The error for a probe through ssh: it names the host that failed.
    fn hop_error(&self, hop: &SshTransport, failure: &ProbeFailure) -> Error {
        use towline_core::transport::Transport;
        let target = &self.definition.dial;
        if *failure == ProbeFailure::Lost
            || (!matches!(failure, ProbeFailure::WrongProtocol(_)) && !hop.answers(COMMAND_TIMEOUT))
        {
            hop.end();
            drop(self.current().take());
            return Error::unreachable(format!("the connection to `{}` was lost", hop.place()));
        }
        let why = if *failure == ProbeFailure::Refused {
            hop.refusal_reason(&target.host, target.port, REASON_TIMEOUT)
                .unwrap_or_default()
        } else {
            String::new()
        };
        target_error(&self.definition, hop.place(), failure, &why)
    }

    fn program_error(&self, program: &Program, failure: &ProbeFailure) -> Error {
        match program.exit_error() {
            Some(error) => error,
            None => super::azure::explain_failure(&program.name(), &program.output())
                .unwrap_or_else(|| target_error(&self.definition, &program.name(), failure, "")),
        }
    }

    /// Drops the route. A connection that others share stays.
    pub(super) fn close(&self) {
        drop(self.current().take());
    }
}

fn probe_directly(program: &Arc<Program>) -> Result<ProbeConnection, ProbeFailure> {
    struct Direct(Arc<Program>, TcpStream);
    impl ProbeStatus for Direct {
        fn is_accepted(&self) -> bool {
            true
        }
        fn is_lost(&self) -> bool {
            !self.0.is_alive()
        }
    }
    impl Drop for Direct {
        fn drop(&mut self) {
            let _ = self.1.shutdown(Shutdown::Both);
        }
    }
    let copies = || -> std::io::Result<_> {
        let near = TcpStream::connect((Ipv4Addr::LOCALHOST, program.port()))?;
        Ok((near.try_clone()?, near.try_clone()?, near))
    };
    let (from, to, near) = copies().map_err(|_| ProbeFailure::Refused)?;
    Ok(ProbeConnection {
        from: Box::new(from),
        to: Box::new(to),
        status: Box::new(Direct(program.clone(), near)),
    })
}

impl ProbeStatus for VerboseChannel {
    fn is_accepted(&self) -> bool {
        Self::is_accepted(self)
    }
    fn is_lost(&self) -> bool {
        self.has_no_master()
    }
}

/// The error for a target that fails although the hops work.
fn target_error(definition: &Definition, by: &str, failure: &ProbeFailure, why: &str) -> Error {
    let to = &definition.to;
    let (host, port) = (&to.host, definition.dial.port);
    match failure {
        ProbeFailure::Lost => Error::unreachable(format!("the connection to `{by}` was lost")),
        ProbeFailure::Refused if why.contains("prohibited") => Error::denied(format!(
            "`{by}` does not allow connections to `{host}` port {port}"
        ))
        .hint("its administrators have to (AllowTcpForwarding, PermitOpen), or go by another hop"),
        ProbeFailure::Refused
            if ["not known", "resolution", "No address"]
                .iter()
                .any(|sign| why.contains(sign)) =>
        {
            Error::config(format!("`{by}` knows no host called `{host}`"))
                .hint("give its name as that host has it, or its address, with --to")
        }
        ProbeFailure::Refused
            if why.contains("timed out")
                || why.contains("No route")
                || why.contains("unreachable") =>
        {
            Error::unreachable(format!("`{host}` does not answer `{by}` at port {port}"))
                .hint("is it up?")
        }
        ProbeFailure::Refused => {
            Error::unreachable(format!("`{host}` refuses connections at port {port}"))
                .hint(format!("is its server running, and is {port} its port?"))
        }
        ProbeFailure::HungUp => Error::unreachable(format!(
            "`{host}` takes connections at port {port} and hangs up"
        ))
        .hint("it may be starting, or have too many already"),
        ProbeFailure::Silent { is_accepted: true } => {
            Error::unreachable(format!("`{host}` accepts connections and does not answer"))
                .hint("it, or what is on the way to it, may hang")
        }
        ProbeFailure::Silent { is_accepted: false } => {
            Error::unreachable(format!("`{host}` does not answer `{by}` at port {port}"))
                .hint("is it up?")
        }
        ProbeFailure::WrongProtocol(answer) => Error::config(format!(
            "`{host}` port {port} is no ssh server: it says `{answer}`"
        ))
        .hint("another port with --to, or another --probe: http, tcp"),
    }
}

/// When it is dropped, the other side learns that nothing more comes.
struct HalfOpen(TcpStream);

impl std::io::Write for HalfOpen {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Drop for HalfOpen {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::config::Tunnel;

    #[test]
    fn an_error_names_the_host_that_failed() {
        let tunnel = Tunnel {
            to: "box".into(),
            via: Some("login".into()),
            ..Tunnel::default()
        };
        let definition = Definition::new("x", &tunnel, 22222).expect("fine");
        let message = |failure: &ProbeFailure, why: &str| {
            target_error(&definition, "login", failure, why).to_string()
        };
        assert_eq!(
            message(&ProbeFailure::Refused, "connect failed: Connection refused"),
            "`box` refuses connections at port 22"
        );
        assert_eq!(
            message(
                &ProbeFailure::Refused,
                "connect failed: Name or service not known"
            ),
            "`login` knows no host called `box`"
        );
        assert_eq!(
            message(
                &ProbeFailure::Refused,
                "connect failed: Connection timed out"
            ),
            "`box` does not answer `login` at port 22"
        );
        assert_eq!(
            message(
                &ProbeFailure::Refused,
                "administratively prohibited: open failed"
            ),
            "`login` does not allow connections to `box` port 22"
        );
        assert_eq!(
            message(&ProbeFailure::Silent { is_accepted: true }, ""),
            "`box` accepts connections and does not answer"
        );
        assert_eq!(
            message(&ProbeFailure::WrongProtocol("HTTP/1.0".into()), ""),
            "`box` port 22 is no ssh server: it says `HTTP/1.0`"
        );
    }
}
