//! Host keys and signing in: what is refused, asked and remembered.

use super::*;

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
    let words = message_of(&error);
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
    // The suggested command works.
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
fn the_users_settings_for_host_keys_are_kept() {
    let far = Far::start();
    let error = reach(
        &far.config_with("StrictHostKeyChecking yes"),
        far.folder.path(),
    )
    .connect(false)
    .expect_err("it is not known");
    assert_eq!(error.kind(), ErrorKind::Refused, "{}", message_of(&error));
    assert!(
        message_of(&error).contains("by hand"),
        "{}",
        message_of(&error)
    );
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
fn an_unreachable_host_has_a_hint() {
    let far = Far::start();
    let fails = |transport: &SshTransport, kind: ErrorKind, words: &[&str]| {
        let error = transport.connect(false).expect_err("it cannot be reached");
        let said = message_of(&error);
        assert_eq!(error.kind(), kind, "{said}");
        for word in words {
            assert!(said.contains(word), "{said}");
        }
    };
    fails(
        &reach(&far.sshd.strange_config(), far.folder.path()),
        ErrorKind::Denied,
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
fn a_sign_in_that_needs_a_person_is_an_error() {
    let mut far = Far::start_with("PasswordAuthentication yes");
    let transport = reach(&far.sshd.strange_config(), far.folder.path());
    let error = transport.connect(false).expect_err("nobody is asked");
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(
        message_of(&error).contains("tow clusters"),
        "{}",
        message_of(&error)
    );
    // No further try reaches the server until somebody signs in, because servers lock out users
    // with too many failures.
    far.sshd.stop();
    let again = transport.connect(false).expect_err("nobody is asked");
    assert_eq!(
        (again.kind(), again.to_string()),
        (ErrorKind::Denied, error.to_string())
    );
}

/// The test below runs this in a process of its own, on a terminal.
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
        ErrorKind::Denied
    );
    let program = std::env::current_exe().expect("this program");
    let line = quote::line(&[
        program.to_str().expect("text"),
        "--exact",
        "sign_in::signs_in_on_a_terminal",
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
    // Input that is typed before the question is thrown away.
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
        message_of(&error).contains("on the way"),
        "{}",
        message_of(&error)
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
