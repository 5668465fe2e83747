//! A server program of others on a port of loopback. It belongs to one test, is ready when it says
//! so itself, and ends with the test, however that ends.

use rustix::process::Signal;
use std::ffi::OsString;
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Sender, channel};
use towline_host::process;

type Words = Box<dyn Fn(u16) -> Vec<OsString> + Send + Sync>;

/// How a server is started on a given port.
pub(super) struct Recipe {
    /// Program and arguments for a port.
    pub words: Words,
    pub variables: Vec<(String, OsString)>,
    /// The text that it writes once it listens. It is the server's own, so that no other process on
    /// that port is taken for it.
    pub ready_text: &'static str,
}

impl std::fmt::Debug for Recipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", (self.words)(0))
    }
}

#[derive(Debug)]
pub(super) struct Server {
    recipe: Recipe,
    port: u16,
    child: Option<Child>,
    /// Its output. The file has no name, because a value in a static is never dropped and would
    /// leave it behind.
    log: File,
}

impl Server {
    /// Starts on a free port; tries another if the port is taken meanwhile.
    #[track_caller]
    pub(super) fn start(recipe: Recipe) -> Self {
        let mut server = Self {
            recipe,
            port: 0,
            child: None,
            log: tempfile::tempfile().unwrap(),
        };
        crate::until("a server to start", || {
            server.port = free_port();
            server.launch().then_some(())
        });
        server
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// All its output.
    pub(super) fn output(&self) -> String {
        output(&self.log)
    }

    /// Ends it by a signal, and waits until it is gone.
    pub(super) fn end_by(&mut self, signal: Signal) {
        if let Some(mut child) = self.child.take() {
            process::signal(i32::try_from(child.id()).unwrap(), signal);
            let _ = crate::until("a server to leave", || child.try_wait().transpose());
        }
    }

    /// Ends it by SIGKILL, and waits until it is gone.
    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts it again on the same port.
    #[track_caller]
    pub(super) fn restart(&mut self) {
        self.kill();
        crate::until("a server to start again", || self.launch().then_some(()));
    }

    /// Whether it listens. If not, it has exited, most likely because its port was taken.
    #[track_caller]
    fn launch(&mut self) -> bool {
        let words = (self.recipe.words)(self.port);
        self.log = tempfile::tempfile().unwrap();
        // `setpriv` becomes the program, which then dies with us, dropped or not.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).args(&words);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", "/nonexistent");
        command.envs(
            self.recipe
                .variables
                .iter()
                .map(|(name, value)| (name, value)),
        );
        command
            .stdin(Stdio::null())
            .stdout(self.log.try_clone().unwrap())
            .stderr(self.log.try_clone().unwrap());
        let mut child = spawn(command).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        let output = || output(&self.log);
        let ready = crate::until(&format!("{words:?} to be ready"), || {
            let ready = output().contains(self.recipe.ready_text);
            let mut left = || matches!(child.try_wait(), Ok(Some(_)));
            (ready || left()).then_some(ready)
        });
        let taken = ["EADDRINUSE", "in use"]
            .iter()
            .any(|sign| output().contains(sign));
        assert!(ready || taken, "{words:?} left: {}", output());
        if ready {
            self.child = Some(child);
        }
        ready
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The whole log, read without moving the position of the writer.
fn output(log: &File) -> String {
    let mut bytes = vec![
        0;
        log.metadata()
            .map_or(0, |facts| usize::try_from(facts.len()).unwrap_or(0))
    ];
    let read = log.read_at(&mut bytes, 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

/// Below the ports that the kernel gives to clients, so that one is still free at a restart.
fn free_port() -> u16 {
    const FIRST_PORT: u16 = 20_000;
    const PORT_COUNT: u16 = 12_000;
    static NEXT: LazyLock<AtomicU16> = LazyLock::new(|| {
        AtomicU16::new(u16::try_from(std::process::id() % u32::from(PORT_COUNT)).unwrap_or(0))
    });
    crate::until("a free port", || {
        let port = FIRST_PORT + NEXT.fetch_add(1, Ordering::Relaxed) % PORT_COUNT;
        TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .is_ok()
            .then_some(port)
    })
}

/// Starts a process from a thread that lives as long as the program. The kernel signals the death
/// of a parent when the thread that started the child ends, and each test has its own thread.
fn spawn(command: Command) -> std::io::Result<Child> {
    type Answer = Sender<std::io::Result<Child>>;
    static SPAWNER: LazyLock<Sender<(Command, Answer)>> = LazyLock::new(|| {
        let (sender, receiver) = channel::<(Command, Answer)>();
        std::thread::spawn(move || {
            for (mut command, answer) in receiver {
                let _ = answer.send(command.spawn());
            }
        });
        sender
    });
    let (answer, child) = channel();
    SPAWNER
        .send((command, answer))
        .map_err(std::io::Error::other)?;
    child.recv().map_err(std::io::Error::other)?
}
