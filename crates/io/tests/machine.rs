//! The two ways to a machine, this one and a real ssh server, held to one contract; and what only a
//! connection can suffer.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use towline_core::transport::Transport;
use towline_core::{Error, ErrorKind};
use towline_io::machine::{LocalTransport, SshTransport, quote};
use towline_testkit::real::{PASSPHRASE, Sshd};
use towline_testkit::transport_contract::{self, Stage};
use towline_testkit::{ability, until};

const COMMAND_TIMEOUT: Duration = Duration::from_secs(50);

struct Local {
    transport: LocalTransport,
    folder: TempDir,
}

impl Stage for Local {
    fn transport(&self) -> &dyn Transport {
        &self.transport
    }
    fn folder(&self) -> &str {
        self.folder.path().to_str().expect("text")
    }
}

/// A server, and a transport to it whose master ends with the test.
struct Far {
    transport: SshTransport,
    sshd: Sshd,
    folder: TempDir,
}

impl Far {
    fn start() -> Self {
        Self::start_with("")
    }
    fn start_with(lines: &str) -> Self {
        let (sshd, folder) = (
            Sshd::start_with(lines),
            tempfile::tempdir().expect("a folder"),
        );
        let transport = reach(&sshd.config(), folder.path());
        Self {
            transport,
            sshd,
            folder,
        }
    }
    fn echo(&self, word: &str) -> Result<Vec<u8>, Error> {
        self.transport
            .run(&["echo", word], b"", COMMAND_TIMEOUT)
            .map(|ran| ran.out)
    }
    fn known_hosts(&self) -> PathBuf {
        self.folder.path().join("known_hosts")
    }
    /// The server's configuration for clients, with more lines for the host.
    fn config_with(&self, lines: &str) -> PathBuf {
        let path = self.folder.path().join("more");
        fs::write(
            &path,
            format!(
                "{}{lines}\n",
                fs::read_to_string(self.sshd.config()).expect("a text")
            ),
        )
        .expect("written");
        path
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.transport.close();
    }
}

impl Stage for Far {
    fn transport(&self) -> &dyn Transport {
        &self.transport
    }
    fn folder(&self) -> &str {
        self.folder.path().to_str().expect("text")
    }
}

fn reach(config: &Path, folder: &Path) -> SshTransport {
    SshTransport::new(
        "login",
        Some(config.to_owned()),
        folder.join("sockets"),
        folder.join("known_hosts"),
    )
    .expect("a host")
}

fn words_of(error: &Error) -> String {
    format!("{error}\n{}", error.hints().join("\n"))
}

#[test]
fn this_machine_keeps_the_contract() {
    let folder = tempfile::tempdir().expect("a folder");
    transport_contract::check(&Local {
        transport: LocalTransport::new(folder.path()),
        folder,
    });
}

#[test]
fn a_limit_ends_all_that_was_started_here() {
    let folder = tempfile::tempdir().expect("a folder");
    let transport = LocalTransport::new(folder.path());
    transport
        .run(
            &["sh", "-c", "sleep 1000 & echo $! > pid; wait"],
            b"",
            Duration::from_secs(1),
        )
        .expect_err("it takes too long");
    let pid: i32 = fs::read_to_string(folder.path().join("pid"))
        .expect("written")
        .trim()
        .parse()
        .expect("a number");
    until("the group to be gone", || {
        towline_host::process::facts(pid)
            .is_none_or(|facts| facts.zombie)
            .then_some(())
    });
}

#[test]
fn a_host_behind_ssh_keeps_the_contract_with_one_sign_in() {
    let far = Far::start();
    transport_contract::check(&far);
    far.transport.connect(false).expect("it is there");
    assert_eq!(far.sshd.authentications(), 1);
    // Another process of this user has a part in it.
    assert_eq!(
        reach(&far.sshd.config(), far.folder.path())
            .run(&["echo", "second"], b"", COMMAND_TIMEOUT)
            .expect("it runs")
            .out,
        b"second\n"
    );
    assert_eq!(far.sshd.authentications(), 1);
}

#[test]
fn twenty_at_once_sign_in_once() {
    let far = Far::start();
    // Each as if it were a program of its own, more than the server takes on one connection.
    std::thread::scope(|scope| {
        for number in 0..20 {
            let far = &far;
            scope.spawn(move || {
                let ran = reach(&far.sshd.config(), far.folder.path()).run(
                    &["sh", "-c", "sleep 0.2; echo $1", "sh", &number.to_string()],
                    b"",
                    COMMAND_TIMEOUT,
                );
                assert_eq!(
                    ran.unwrap_or_else(|error| panic!("{}", words_of(&error)))
                        .out,
                    format!("{number}\n").into_bytes()
                );
            });
        }
    });
    assert_eq!(far.sshd.authentications(), 1);
}

#[test]
fn long_sessions_leave_room_for_short_ones() {
    let far = Far::start_with("MaxSessions 7");
    let sessions: Vec<_> = (0..6)
        .map(|_| far.transport.spawn(&["cat"]).expect("it starts"))
        .collect();
    assert_eq!(far.echo("between").expect("it runs"), b"between\n");
    drop(sessions);
    assert_eq!(far.sshd.authentications(), 1);
}

#[test]
fn a_cut_connection_is_noticed_and_the_next_call_works() {
    let mut far = Far::start();
    let mut session = far.transport.spawn(&["cat"]).expect("it starts");
    far.sshd.kill_connections();
    let mut output = session.output().expect("it has an output");
    assert_eq!(output.read_to_end(&mut Vec::new()).expect("an end"), 0);
    let error = session.wait().expect_err("it was cut");
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    until("the next call to work", || {
        far.echo("on").ok().filter(|out| out == b"on\n")
    });
    // A server that is away for a while.
    far.sshd.stop();
    let error = until("the connection to be missed", || {
        far.echo("away")
            .err()
            .filter(|error| error.to_string().contains("refuses"))
    });
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    far.sshd.restart();
    assert_eq!(far.echo("back").expect("it is back"), b"back\n");
}

#[test]
fn a_master_that_was_killed_is_made_again() {
    let far = Far::start();
    far.transport.connect(false).expect("it is there");
    let sockets = far.folder.path().join("sockets");
    let is_master = |pid: &i32| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| {
            String::from_utf8_lossy(&words).contains(&*sockets.to_string_lossy())
        })
    };
    for pid in towline_host::process::all().into_keys().filter(is_master) {
        towline_host::process::signal(pid, rustix::process::Signal::KILL);
        until("the master to be gone", || {
            towline_host::process::facts(pid)
                .is_none_or(|facts| facts.zombie)
                .then_some(())
        });
    }
    assert!(
        fs::read_dir(&sockets)
            .expect("a folder")
            .flatten()
            .any(|entry| !entry.file_name().to_string_lossy().ends_with(".lock")),
        "its socket is left"
    );
    assert_eq!(far.echo("again").expect("it signs in again"), b"again\n");
    assert_eq!(far.sshd.authentications(), 2);
}

#[test]
fn a_connection_that_went_silent_is_replaced() {
    let far = Far::start();
    far.transport.connect(false).expect("it is there");
    far.sshd.freeze_connections();
    let error = far
        .transport
        .run(&["true"], b"", Duration::from_secs(1))
        .expect_err("it is silent");
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    // Three signs of life are missed, five seconds apart.
    far.transport
        .connect(false)
        .unwrap_or_else(|error| panic!("{}", words_of(&error)));
    assert_eq!(far.echo("again").expect("it runs"), b"again\n");
    assert_eq!(far.sshd.authentications(), 2);
}

#[test]
fn a_put_whose_connection_is_cut_leaves_the_old_file() {
    struct Cutting<'a>(&'a Far, usize);
    impl Read for Cutting<'_> {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            self.1 += bytes.len();
            if self.1 == 4 * bytes.len() {
                until("a part to have come", || {
                    part(self.0).filter(|size| *size > 0)
                });
                self.0.sshd.kill_connections();
            }
            bytes.fill(b'n');
            // It is endless, were it not cut.
            Ok(bytes.len())
        }
    }
    fn part(far: &Far) -> Option<u64> {
        let entries = fs::read_dir(far.folder.path().join("far")).ok()?;
        let size = |entry: fs::DirEntry| entry.metadata().map_or(0, |facts| facts.len());
        entries
            .flatten()
            .find(|entry| entry.file_name().to_string_lossy().starts_with(".tow-"))
            .map(size)
    }
    let far = Far::start();
    let path = format!("{}/far/file", far.folder());
    for old in [None, Some(b"old".to_vec())] {
        if let Some(mut old) = old.as_deref() {
            far.transport
                .put(&path, &mut old, 0o600)
                .expect("it is put");
        }
        let error = far
            .transport
            .put(&path, &mut Cutting(&far, 0), 0o600)
            .expect_err("it was cut");
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
        until("what had come to be gone", || {
            part(&far).is_none().then_some(())
        });
        assert_eq!(fs::read(&path).ok(), old);
    }
}

#[test]
fn a_forward_comes_up_again_with_the_connection() {
    let far = Far::start();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        listener
            .incoming()
            .flatten()
            .for_each(|mut peer| drop(peer.write_all(b"hello")))
    });
    let forward = far
        .transport
        .forward("127.0.0.1", port)
        .expect("a way there");
    let greeting = || {
        let mut text = String::new();
        TcpStream::connect((Ipv4Addr::LOCALHOST, forward.port()))
            .expect("it listens")
            .read_to_string(&mut text)
            .ok()
            .filter(|_| text == "hello")
            .map(drop)
    };
    until("the other side", greeting);
    far.sshd.kill_connections();
    until("the other side again", greeting);
}

#[test]
fn a_changed_host_key_is_refused() {
    let mut far = Far::start();
    far.transport.connect(false).expect("a new host is taken");
    let known = fs::read_to_string(far.known_hosts()).expect("it is written to our file");
    assert_eq!(known.lines().count(), 1, "{known}");
    far.transport.close();
    far.sshd.new_host_key();
    let error = far
        .transport
        .connect(false)
        .expect_err("it is another machine");
    let words = words_of(&error);
    assert_eq!(error.kind(), ErrorKind::Refused, "{words}");
    assert!(
        words.contains(&format!("{}, line 1", far.known_hosts().display())),
        "{words}"
    );
    let command = format!(
        "ssh-keygen -f {} -R '[127.0.0.1]:{}'",
        far.known_hosts().display(),
        far.sshd.port()
    );
    assert!(words.contains(&command), "{words}");
    assert_eq!(
        far.echo("no").expect_err("nor does a call").kind(),
        ErrorKind::Refused
    );
    // What it says is right.
    assert!(
        Command::new("sh")
            .args(["-c", &command])
            .output()
            .expect("it runs")
            .status
            .success()
    );
    assert_eq!(far.echo("yes").expect("the new one is taken"), b"yes\n");
}

#[test]
fn what_the_users_configuration_says_of_host_keys_is_kept() {
    let far = Far::start();
    let error = reach(
        &far.config_with("StrictHostKeyChecking yes"),
        far.folder.path(),
    )
    .connect(false)
    .expect_err("it is not known");
    assert_eq!(error.kind(), ErrorKind::Refused, "{}", words_of(&error));
    assert!(words_of(&error).contains("by hand"), "{}", words_of(&error));
    let theirs = far.folder.path().join("theirs");
    let transport = reach(
        &far.config_with(&format!("UserKnownHostsFile {}", theirs.display())),
        far.folder.path(),
    );
    transport.connect(false).expect("a new host is taken");
    transport.close();
    assert!(theirs.exists() && !far.known_hosts().exists());
}

#[test]
fn what_cannot_be_reached_says_what_to_do() {
    let far = Far::start();
    let fails = |transport: &SshTransport, kind: ErrorKind, words: &[&str]| {
        let error = transport.connect(false).expect_err("it cannot be reached");
        let said = words_of(&error);
        assert_eq!(error.kind(), kind, "{said}");
        for word in words {
            assert!(said.contains(word), "{said}");
        }
    };
    fails(
        &reach(&far.sshd.strange_config(), far.folder.path()),
        ErrorKind::Refused,
        &["strange_key", "ssh-add -l", "ssh -F", "publickey"],
    );
    fails(
        &reach(Path::new("/nowhere/config"), far.folder.path()),
        ErrorKind::Config,
        &["/nowhere/config"],
    );
    fails(
        &far.transport.clone().with_program("tow-no-such-ssh"),
        ErrorKind::Config,
        &["openssh-client"],
    );
    let config = far.folder.path().join("config");
    let fails_by = |lines: &str, kind: ErrorKind, words: &[&str]| {
        fs::write(&config, format!("Host login\n{lines}\n")).expect("written");
        fails(&reach(&config, far.folder.path()), kind, words);
    };
    fails_by(
        "HostName 127.0.0.1\nPort 1",
        ErrorKind::Unreachable,
        &["refuses connections", "127.0.0.1 port 1"],
    );
    fails_by("NoSuchOption x", ErrorKind::Config, &["line 2"]);
    for host in ["-oProxyCommand=x", "", "a b"] {
        assert_eq!(
            SshTransport::new(host, None, "/tmp", "/tmp/x")
                .expect_err("no host")
                .kind(),
            ErrorKind::Config
        );
    }
    assert!(SshTransport::new("h", None, format!("/{}", "x".repeat(100)), "/tmp/x").is_err());
}

#[test]
fn who_would_have_to_ask_says_so() {
    let mut far = Far::start_with("PasswordAuthentication yes");
    let transport = reach(&far.sshd.strange_config(), far.folder.path());
    let error = transport.connect(false).expect_err("nobody is asked");
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(
        words_of(&error).contains("tow clusters"),
        "{}",
        words_of(&error)
    );
    // The server hears no more of it until somebody signs in: it may shut out who fails too often.
    far.sshd.stop();
    let again = transport.connect(false).expect_err("nobody is asked");
    assert_eq!(
        (again.kind(), again.to_string()),
        (ErrorKind::Refused, error.to_string())
    );
}

/// What the test below runs in a process of its own, on a terminal.
#[test]
fn signs_in_on_a_terminal() {
    let (Some(config), Some(folder)) = (
        std::env::var_os("TOW_TEST_ASK_CONFIG"),
        std::env::var_os("TOW_TEST_ASK_FOLDER"),
    ) else {
        return;
    };
    let transport = reach(Path::new(&config), Path::new(&folder));
    transport.connect(true).expect("the right words");
    assert_eq!(
        transport
            .run(&["echo", "in"], b"", COMMAND_TIMEOUT)
            .expect("it runs")
            .out,
        b"in\n"
    );
}

#[test]
fn the_user_is_asked_on_the_terminal_once() {
    let far = Far::start();
    let transport = reach(&far.sshd.locked_config(), far.folder.path());
    assert_eq!(
        transport
            .connect(false)
            .expect_err("nobody is asked")
            .kind(),
        ErrorKind::Refused
    );
    let program = std::env::current_exe().expect("this program");
    let line = quote::line(&[
        program.to_str().expect("text"),
        "--exact",
        "signs_in_on_a_terminal",
        "--nocapture",
    ]);
    let mut command = Command::new("script");
    command
        .args(["-qec", &line, "/dev/null"])
        .env("TOW_TEST_ASK_CONFIG", far.sshd.locked_config())
        .env("TOW_TEST_ASK_FOLDER", far.folder.path());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let (mut input, mut output) = (
        child.stdin.take().expect("piped"),
        child.stdout.take().expect("piped"),
    );
    // What is typed before the question is thrown away.
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains("passphrase") {
        let mut byte = [0];
        output
            .read_exact(&mut byte)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&said)));
        said.extend(byte);
    }
    input
        .write_all(format!("{PASSPHRASE}\n").as_bytes())
        .expect("it listens");
    output.read_to_end(&mut said).expect("an end");
    assert!(
        child.wait().expect("it ends").success(),
        "{}",
        String::from_utf8_lossy(&said)
    );
    // From now on nobody is asked, here or in the daemon.
    assert_eq!(
        transport
            .run(&["echo", "shared"], b"", COMMAND_TIMEOUT)
            .expect("it runs")
            .out,
        b"shared\n"
    );
    assert_eq!(far.sshd.authentications(), 1);
    transport.close();
}

#[test]
fn a_host_behind_another_is_reached_and_nobody_is_asked_on_the_way() {
    let far = Far::start();
    let config = |lines: &str| {
        let own = fs::read_to_string(far.sshd.config()).expect("a text");
        let way = own.replace("Host login", "Host jump");
        let path = far.folder.path().join("way");
        fs::write(&path, format!("{way}{lines}\n{own}ProxyJump jump\n")).expect("written");
        path
    };
    let unknown = far.folder.path().join("unknown");
    let error = reach(
        &config(&format!("UserKnownHostsFile {}", unknown.display())),
        far.folder.path(),
    )
    .connect(false)
    .expect_err("the way is not known");
    assert!(
        words_of(&error).contains("on the way"),
        "{}",
        words_of(&error)
    );
    let transport = reach(
        &config(&format!(
            "UserKnownHostsFile {}\nStrictHostKeyChecking accept-new",
            unknown.display()
        )),
        far.folder.path(),
    );
    assert_eq!(
        transport
            .run(&["echo", "through"], b"", COMMAND_TIMEOUT)
            .expect("it runs")
            .out,
        b"through\n"
    );
    assert_eq!(far.sshd.authentications(), 2, "one for each host");
    transport.close();
}

#[test]
fn a_profile_may_print_what_it_likes() {
    let far = Far::start_with("Banner /etc/passwd");
    let shell = Command::new("sh")
        .args(["-c", "getent passwd \"$(id -u)\" | cut -d: -f7"])
        .output()
        .expect("it runs")
        .stdout;
    if !String::from_utf8_lossy(&shell).trim().ends_with("/bash") {
        return ability::not_run("a noisy profile: the login shell is not bash");
    }
    fs::write(
        far.sshd.home().join(".bashrc"),
        "echo welcome to the cluster\necho beware >&2\necho \"$BASH_EXECUTION_STRING\"\ncd /\n",
    )
    .expect("written");
    let files = format!("UserKnownHostsFile={}", far.known_hosts().display());
    let mut plain = Command::new("ssh");
    plain.arg("-F").arg(far.sshd.config()).args([
        "-o",
        "StrictHostKeyChecking=accept-new",
        "-o",
        &files,
        "login",
        "true",
    ]);
    let noise = plain.output().expect("it runs").stdout;
    assert!(
        String::from_utf8_lossy(&noise).contains("welcome"),
        "{noise:?}"
    );
    transport_contract::check_output(&far);
    assert_eq!(far.sshd.authentications(), 2, "the plain one and ours");
}

#[test]
fn the_users_own_settings_for_shells_are_not_in_the_way() {
    let far = Far::start();
    let settings = [
        "RemoteCommand tmux",
        "RequestTTY force",
        "LocalForward 127.0.0.1:1 127.0.0.1:1",
        "ControlMaster auto",
        "ControlPath none",
        "LogLevel QUIET",
    ];
    let transport = reach(&far.config_with(&settings.join("\n")), far.folder.path());
    assert_eq!(
        transport
            .run(&["echo", "good"], b"", COMMAND_TIMEOUT)
            .expect("it runs")
            .out,
        b"good\n"
    );
    transport.close();
}

#[test]
fn a_shell_on_the_terminal_uses_the_same_connection() {
    let far = Far::start();
    far.transport.connect(false).expect("it is there");
    let words = far
        .transport
        .interactive(
            &[
                "sh",
                "-c",
                "echo \"it's $1\"; test -t 0 || exit 4",
                "sh",
                "a b",
            ],
            true,
        )
        .expect("words");
    // `script` is a terminal for it.
    let words: Vec<&str> = words
        .iter()
        .map(|word| word.to_str().expect("text"))
        .collect();
    let output = Command::new("script")
        .args(["-qec", &quote::line(&words), "/dev/null"])
        .output()
        .expect("it runs");
    assert!(
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains("it's a b"),
        "{output:?}"
    );
    assert_eq!(far.sshd.authentications(), 1);
}
