//! The way from here to the far end: by ssh, or by a program that listens here.

use super::command::Program;
use super::probe::{self, Asked, Bad, Fate};
use crate::machine::relay::Far;
use crate::machine::{Channel, Heard, SshTransport};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use towline_core::tunnel::{Definition, Way};
use towline_core::{Error, Result};

/// How long a hop may take to begin a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the last hop may take to say why it cannot reach the target.
const REASON_TIMEOUT: Duration = Duration::from_secs(2);

/// Makes the way to the last hop. Asked for anew after every loss: the user's configuration may
/// have changed.
pub type Opener = Box<dyn Fn() -> Result<SshTransport> + Send + Sync>;

pub(super) struct Line {
    definition: Definition,
    opener: Opener,
    /// What a program on the way says.
    said: Box<dyn Fn(&str) + Send + Sync>,
    now: Mutex<Option<Held>>,
}

#[derive(Clone)]
enum Held {
    Hop(Arc<SshTransport>),
    Program(Arc<Program>),
}

impl Line {
    pub(super) fn new(
        definition: Definition,
        opener: Opener,
        said: Box<dyn Fn(&str) + Send + Sync>,
    ) -> Self {
        Self {
            definition,
            opener,
            said,
            now: Mutex::default(),
        }
    }

    fn now(&self) -> MutexGuard<'_, Option<Held>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> Result<Held> {
        self.now()
            .clone()
            .ok_or_else(|| Error::unreachable("there is no way now"))
    }

    /// Makes sure of the way as far as it goes without the far end; asks nobody.
    pub(super) fn establish(&self) -> Result<()> {
        let held = self.now().clone();
        let held = match (&self.definition.way, held) {
            (Way::Hops(_), Some(Held::Hop(hop))) => {
                return hop.sign_in().inspect_err(|_| self.drop_way());
            }
            (Way::Hops(_), _) => {
                let hop = (self.opener)()?;
                hop.sign_in()?;
                Held::Hop(Arc::new(hop))
            }
            (Way::Command(_), Some(Held::Program(program))) if program.is_alive() => return Ok(()),
            (Way::Command(words), _) => {
                drop(self.now().take());
                Held::Program(Arc::new(Program::start(words)?))
            }
        };
        *self.now() = Some(held);
        Ok(())
    }

    /// Whether the way is there at all, as far as this machine can tell at once.
    pub(super) fn is_there(&self) -> bool {
        match &*self.now() {
            Some(Held::Hop(hop)) => hop.has_master(),
            Some(Held::Program(program)) => program.is_alive(),
            None => false,
        }
    }

    /// A connection to the far end, for somebody who came.
    pub(super) fn dial(&self) -> Result<Far> {
        let target = &self.definition.dial;
        match self.held()? {
            Held::Hop(hop) => hop.dial(&target.host, target.port).map(Channel::into_far),
            Held::Program(program) => {
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
                Ok(Far {
                    from: Box::new(from),
                    to: Box::new(HalfOpen(to)),
                    is_cut: Box::new(is_cut),
                    end: Box::new(end),
                })
            }
        }
    }

    /// Whether the far end answers; if not, what is wrong. What hangs on the way is put an end to.
    pub(super) fn probe(&self) -> Result<()> {
        let target = &self.definition.dial;
        let held = self.held()?;
        let asked = match &held {
            Held::Hop(hop) => {
                let (from, to, heard) = hop.dial_aloud(&target.host, target.port)?.into_parts();
                Ok(Asked {
                    from,
                    to,
                    fate: Box::new(heard),
                })
            }
            Held::Program(program) => asked_directly(program),
        };
        let Err(bad) = asked.and_then(|asked| probe::ask(self.definition.probe, asked)) else {
            return Ok(());
        };
        Err(match &held {
            Held::Hop(hop) => self.wrong_with_hop(hop, &bad),
            Held::Program(program) => {
                let error = self.wrong_with_program(program, &bad);
                (self.said)(&program.said());
                self.drop_way();
                error
            }
        })
    }

    /// Which of the hosts it is.
    fn wrong_with_hop(&self, hop: &SshTransport, bad: &Bad) -> Error {
        use towline_core::transport::Transport;
        let target = &self.definition.dial;
        if *bad == Bad::Lost || (!matches!(bad, Bad::Other(_)) && !hop.answers(COMMAND_TIMEOUT)) {
            hop.end();
            drop(self.now().take());
            return Error::unreachable(format!("the connection to `{}` was lost", hop.place()));
        }
        let why = if *bad == Bad::Refused {
            hop.why_not(&target.host, target.port, REASON_TIMEOUT)
                .unwrap_or_default()
        } else {
            String::new()
        };
        wrong_with_target(&self.definition, hop.place(), bad, &why)
    }

    fn wrong_with_program(&self, program: &Program, bad: &Bad) -> Error {
        match program.end_told() {
            Some(error) => error,
            None => super::azure::trouble(&program.name(), &program.said())
                .unwrap_or_else(|| wrong_with_target(&self.definition, &program.name(), bad, "")),
        }
    }

    /// Ends what is on the way, unless others share it.
    pub(super) fn drop_way(&self) {
        drop(self.now().take());
    }
}

fn asked_directly(program: &Arc<Program>) -> Result<Asked, Bad> {
    struct Direct(Arc<Program>, TcpStream);
    impl Fate for Direct {
        fn is_taken(&self) -> bool {
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
    let (from, to, near) = copies().map_err(|_| Bad::Refused)?;
    Ok(Asked {
        from: Box::new(from),
        to: Box::new(to),
        fate: Box::new(Direct(program.clone(), near)),
    })
}

impl Fate for Heard {
    fn is_taken(&self) -> bool {
        Heard::is_taken(self)
    }
    fn is_lost(&self) -> bool {
        self.has_no_master()
    }
}

/// The hops are fine, and the target is not.
fn wrong_with_target(definition: &Definition, by: &str, bad: &Bad, why: &str) -> Error {
    let to = &definition.to;
    let (host, port) = (&to.host, definition.dial.port);
    match bad {
        Bad::Lost => Error::unreachable(format!("the connection to `{by}` was lost")),
        Bad::Refused if why.contains("prohibited") => Error::refused(format!(
            "`{by}` does not allow connections to `{host}` port {port}"
        ))
        .hint("its administrators have to (AllowTcpForwarding, PermitOpen), or go by another hop"),
        Bad::Refused
            if ["not known", "resolution", "No address"]
                .iter()
                .any(|sign| why.contains(sign)) =>
        {
            Error::config(format!("`{by}` knows no host called `{host}`"))
                .hint("give its name as that host has it, or its address, with --to")
        }
        Bad::Refused
            if why.contains("timed out")
                || why.contains("No route")
                || why.contains("unreachable") =>
        {
            Error::unreachable(format!("`{host}` does not answer `{by}` at port {port}"))
                .hint("is it up?")
        }
        Bad::Refused => Error::unreachable(format!("`{host}` refuses connections at port {port}"))
            .hint(format!("is its server running, and is {port} its port?")),
        Bad::HungUp => Error::unreachable(format!(
            "`{host}` takes connections at port {port} and hangs up"
        ))
        .hint("it may be starting, or have too many already"),
        Bad::Silent { is_taken: true } => {
            Error::unreachable(format!("`{host}` accepts connections and does not answer"))
                .hint("it, or what is on the way to it, may hang")
        }
        Bad::Silent { is_taken: false } => {
            Error::unreachable(format!("`{host}` does not answer `{by}` at port {port}"))
                .hint("is it up?")
        }
        Bad::Other(said) => Error::config(format!(
            "`{host}` port {port} is no ssh server: it says `{said}`"
        ))
        .hint("another port with --to, or another --probe: http, tcp"),
    }
}

/// Dropped, it tells the other side that nothing more comes.
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
    fn what_is_wrong_is_said_of_the_right_host() {
        let tunnel = Tunnel {
            to: "box".into(),
            via: Some("login".into()),
            ..Tunnel::default()
        };
        let definition = Definition::new("x", &tunnel, 22222).expect("fine");
        let said =
            |bad: &Bad, why: &str| wrong_with_target(&definition, "login", bad, why).to_string();
        assert_eq!(
            said(&Bad::Refused, "connect failed: Connection refused"),
            "`box` refuses connections at port 22"
        );
        assert_eq!(
            said(&Bad::Refused, "connect failed: Name or service not known"),
            "`login` knows no host called `box`"
        );
        assert_eq!(
            said(&Bad::Refused, "connect failed: Connection timed out"),
            "`box` does not answer `login` at port 22"
        );
        assert_eq!(
            said(&Bad::Refused, "administratively prohibited: open failed"),
            "`login` does not allow connections to `box` port 22"
        );
        assert_eq!(
            said(&Bad::Silent { is_taken: true }, ""),
            "`box` accepts connections and does not answer"
        );
        assert_eq!(
            said(&Bad::Other("HTTP/1.0".into()), ""),
            "`box` port 22 is no ssh server: it says `HTTP/1.0`"
        );
    }
}
