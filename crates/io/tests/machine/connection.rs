//! Faults of connections: many at once, cuts, silence, a dead master.

use super::*;

#[test]
fn twenty_at_once_sign_in_once() {
    let far = Far::start();
    // Each acts as a program of its own; together they are more than the server takes on one
    // connection.
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
                    ran.unwrap_or_else(|error| panic!("{}", message_of(&error)))
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
    // Three keepalives are missed, five seconds apart.
    far.transport
        .connect(false)
        .unwrap_or_else(|error| panic!("{}", message_of(&error)));
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
            // Without the cut it would never end.
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
            .for_each(|mut peer| drop(peer.write_all(b"hello")));
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
