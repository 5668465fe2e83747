//! The contract of `Transport`: one suite for every way to a machine. What only one of them can
//! suffer (a cut connection, a changed key) is tested beside it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::time::Duration;
use towline_core::ErrorKind;
use towline_core::transport::{Ran, Transport};

/// What a transport brings to be tested. The machine must see this one's loopback as its own.
pub trait Stage: Sync {
    fn transport(&self) -> &dyn Transport;
    /// An empty folder over there, by its whole path.
    fn folder(&self) -> &str;
}

/// Nothing here takes that long.
const STEP_TIMEOUT: Duration = Duration::from_secs(50);

/// Words that a shell somewhere would change.
const HOSTILE_WORDS: [&str; 24] = [
    "",
    " ",
    "two  blanks",
    "-n",
    "--",
    "it's",
    "''",
    "\"",
    "a\"b",
    "$HOME",
    "${x}",
    "$(id)",
    "`id`",
    "!!",
    "a\nb",
    "\n",
    "\\",
    "\\n",
    "*",
    "~",
    "a;b&c|d<e>f",
    "é☃",
    "\u{1b}[0m\t\r",
    "#no",
];

/// Everything a transport promises.
pub fn check(stage: &dyn Stage) {
    words_arrive_as_they_are(stage);
    codes_are_the_commands_own(stage);
    bytes_are_bytes(stage);
    a_limit_is_kept(stage);
    a_session_goes_both_ways(stage);
    a_session_can_be_hung_up(stage);
    a_file_is_put_with_its_folders_and_its_mode(stage);
    a_put_that_fails_changes_nothing(stage);
    parts_of_files_are_read(stage);
    paths_are_below_the_home(stage);
    a_port_carries_bytes(stage);
    many_may_call_at_once(stage);
}

/// The part that is about what commands are given and what they print.
pub fn check_output(stage: &dyn Stage) {
    words_arrive_as_they_are(stage);
    codes_are_the_commands_own(stage);
    bytes_are_bytes(stage);
    a_session_goes_both_ways(stage);
    parts_of_files_are_read(stage);
    paths_are_below_the_home(stage);
}

fn run(stage: &dyn Stage, words: &[&str], input: &[u8]) -> Ran {
    stage
        .transport()
        .run(words, input, STEP_TIMEOUT)
        .unwrap_or_else(|error| panic!("{words:?}: {error} {:?}", error.hints()))
}

/// All byte values, and nothing that repeats where pieces may be cut.
fn bytes(length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| u8::try_from((at + at / 251) % 256).unwrap_or(0))
        .collect()
}

fn words_arrive_as_they_are(stage: &dyn Stage) {
    let words: Vec<&str> = ["printf", "%s\\0", "first"]
        .into_iter()
        .chain(HOSTILE_WORDS)
        .collect();
    let ran = run(stage, &words, b"");
    let expected: Vec<u8> = words[2..]
        .iter()
        .flat_map(|word| word.bytes().chain([0]))
        .collect();
    assert_eq!(
        String::from_utf8_lossy(&ran.out),
        String::from_utf8_lossy(&expected)
    );
    for word in HOSTILE_WORDS {
        assert_eq!(
            run(stage, &["printf", "%s", word], b"").out,
            word.as_bytes(),
            "{word:?}"
        );
    }
    let long = "x".repeat(100_000);
    assert_eq!(
        run(stage, &["printf", "%s", &long], b"").out.len(),
        long.len()
    );
    for refused in [&["-x"][..], &["printf", "a\0b"], &[], &[""]] {
        assert!(
            stage.transport().run(refused, b"", STEP_TIMEOUT).is_err(),
            "{refused:?}"
        );
    }
}

fn codes_are_the_commands_own(stage: &dyn Stage) {
    for code in [0, 1, 2, 66, 97, 126, 127, 128, 254, 255] {
        assert_eq!(
            run(stage, &["sh", "-c", &format!("exit {code}")], b"").code,
            code
        );
    }
    let ran = run(
        stage,
        &["sh", "-c", "echo out; echo err >&2; exit 255"],
        b"",
    );
    assert_eq!(
        (ran.code, ran.out.as_slice(), ran.err.as_slice()),
        (255, &b"out\n"[..], &b"err\n"[..])
    );
    for (signal, code) in [("TERM", 143), ("KILL", 137), ("USR1", 138)] {
        assert_eq!(
            run(stage, &["sh", "-c", &format!("kill -{signal} $$")], b"").code,
            code
        );
    }
    assert_eq!(run(stage, &["tow-no-such-program"], b"").code, 127);
    // The program of that name is meant, not what a shell has of that name.
    assert_eq!(run(stage, &["exit", "7"], b"").code, 127);
}

fn bytes_are_bytes(stage: &dyn Stage) {
    let all = bytes(10 << 20);
    let ran = run(stage, &["cat"], &all);
    assert!(
        ran.code == 0 && ran.out == all,
        "{} bytes came back",
        ran.out.len()
    );
    // Nobody need read what he is given, and much may be said on both ways out.
    assert_eq!(run(stage, &["true"], &all).code, 0);
    let ran = run(
        stage,
        &[
            "sh",
            "-c",
            "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero",
        ],
        b"",
    );
    assert_eq!((ran.out.len(), ran.err.len()), (300_000, 300_000));
}

fn a_limit_is_kept(stage: &dyn Stage) {
    let error = stage
        .transport()
        .run(&["sleep", "60"], b"", Duration::from_millis(400))
        .expect_err("it takes too long");
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains("sleep 60"), "{error}");
    let ran = stage
        .transport()
        .run(&["echo", "on"], b"", Duration::MAX)
        .expect("it may take for ever");
    assert_eq!(ran.out, b"on\n");
}

fn a_session_goes_both_ways(stage: &dyn Stage) {
    let mut session = stage
        .transport()
        .spawn(&[
            "sh",
            "-c",
            "echo ready; while read line; do echo \"got $line\"; done; echo bye >&2; exit 3",
        ])
        .expect("it starts");
    let mut output = BufReader::new(session.output().expect("it has an output"));
    let mut input = session.input().expect("it has an input");
    assert!(
        session.input().is_none() && session.output().is_none(),
        "once"
    );
    let mut line = || {
        let mut line = String::new();
        output.read_line(&mut line).expect("text");
        line
    };
    assert_eq!(line(), "ready\n");
    for word in ["one", "two"] {
        input
            .write_all(format!("{word}\n").as_bytes())
            .expect("it listens");
        assert_eq!(line(), format!("got {word}\n"), "at once");
    }
    drop(input);
    assert_eq!(line(), "");
    assert_eq!(session.wait().expect("it ends"), 3);
    assert_eq!(session.said(), "bye\n");
    assert_eq!(
        stage
            .transport()
            .spawn(&["tow-no-such-program"])
            .expect("it is tried")
            .wait()
            .expect("it ends"),
        127
    );
    // What nobody takes is in nobody's way.
    let mut session = stage
        .transport()
        .spawn(&["sh", "-c", "cat; head -c 1000000 /dev/zero; exit 255"])
        .expect("it starts");
    assert_eq!(session.wait().expect("it ends"), 255);
}

fn a_session_can_be_hung_up(stage: &dyn Stage) {
    let mut session = stage
        .transport()
        .spawn(&["sh", "-c", "echo ready; exec cat"])
        .expect("it starts");
    let mut output = session.output().expect("it has an output");
    let mut ready = [0; 6];
    output.read_exact(&mut ready).expect("it says so");
    let reader = std::thread::spawn(move || output.read_to_end(&mut Vec::new()));
    session.hang_up();
    assert_eq!(reader.join().expect("no panic").expect("an end"), 0);
    let _ = session.wait();
    drop(stage.transport().spawn(&["cat"]).expect("it starts"));
}

fn a_file_is_put_with_its_folders_and_its_mode(stage: &dyn Stage) {
    let folder = stage.folder();
    let mode = |path: &str| {
        String::from_utf8_lossy(&run(stage, &["stat", "-c", "%a", path], b"").out)
            .trim()
            .to_owned()
    };
    for (at, (bytes, wanted)) in [
        (bytes(10 << 20), 0o600),
        (b"#!/bin/sh\n".to_vec(), 0o755),
        (Vec::new(), 0o444),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("{folder}/put/a b/it's \"$x\" \\ {at}\nend");
        for _ in 0..2 {
            stage
                .transport()
                .put(&path, &mut bytes.as_slice(), wanted)
                .unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(mode(&path), format!("{wanted:o}"));
            assert!(
                stage
                    .transport()
                    .get(&path, 0..u64::MAX)
                    .expect("it is read")
                    == Some(bytes.clone()),
                "{path}"
            );
        }
    }
    assert_eq!(
        (
            mode(&format!("{folder}/put")),
            mode(&format!("{folder}/put/a b"))
        ),
        ("700".to_owned(), "700".to_owned())
    );
    assert_eq!(left(stage, "put/a b"), 3, "nothing else is left there");
}

/// How many entries a folder of ours has.
fn left(stage: &dyn Stage, below: &str) -> usize {
    let ran = run(
        stage,
        &[
            "sh",
            "-c",
            "cd \"$1\" && set -- * .t* && for each; do [ -e \"$each\" ] && printf x; done",
            "sh",
            &format!("{}/{below}", stage.folder()),
        ],
        b"",
    );
    ran.out.len()
}

struct Breaks(usize);

impl Read for Breaks {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.0);
        self.0 -= count;
        if count == 0 {
            Err(io::Error::other("the disk is gone"))
        } else {
            Ok(count)
        }
    }
}

fn a_put_that_fails_changes_nothing(stage: &dyn Stage) {
    let (transport, folder) = (stage.transport(), stage.folder());
    let path = format!("{folder}/kept/file");
    transport
        .put(&path, &mut &b"old"[..], 0o600)
        .expect("it is put");
    let error = transport
        .put(&path, &mut Breaks(1 << 20), 0o600)
        .expect_err("it cannot be read");
    assert!(error.to_string().contains("the disk is gone"), "{error}");
    assert!(
        transport
            .put(&format!("{path}/below"), &mut &b"new"[..], 0o600)
            .is_err(),
        "a file is in the way"
    );
    assert!(
        transport
            .put(&format!("{folder}/kept"), &mut &b"new"[..], 0o600)
            .is_err(),
        "a folder is in the way"
    );
    crate::until("what was begun to be gone", || {
        (left(stage, "kept") == 1).then_some(())
    });
    assert_eq!(
        transport.get(&path, 0..10).expect("it is read"),
        Some(b"old".to_vec())
    );
}

fn parts_of_files_are_read(stage: &dyn Stage) {
    let (transport, folder) = (stage.transport(), stage.folder());
    let (path, all) = (format!("{folder}/-parts"), bytes(100_000));
    transport
        .put(&path, &mut all.as_slice(), 0o600)
        .expect("it is put");
    for (from, to) in [
        (0, 0),
        (0, 1),
        (7, 99),
        (0, 100_000),
        (99_999, 100_000),
        (99_999, 200_000),
        (100_000, 100_001),
        (1 << 40, 1 << 41),
        (5, u64::MAX),
        (9, 3),
    ] {
        let part = transport
            .get(&path, from..to)
            .expect("it is read")
            .expect("it is there");
        let expected: Vec<u8> = all
            .iter()
            .skip(usize::try_from(from).expect("small"))
            .take(usize::try_from(to.saturating_sub(from)).expect("small"))
            .copied()
            .collect();
        assert!(part == expected, "{from}..{to}: {} bytes", part.len());
    }
    for missing in [
        format!("{folder}/nothing"),
        format!("{folder}/no/such/folder"),
        format!("{path}/below"),
        format!("{folder}/a: Permission denied"),
    ] {
        assert_eq!(
            transport.get(&missing, 0..10).expect("it can be asked"),
            None,
            "{missing}"
        );
    }
    assert!(
        transport.get(folder, 0..10).is_err(),
        "a folder is not a file"
    );
}

fn paths_are_below_the_home(stage: &dyn Stage) {
    let name = format!("-tow test {}/file", std::process::id());
    stage
        .transport()
        .put(&name, &mut &b"home"[..], 0o600)
        .expect("it is put");
    assert_eq!(
        stage.transport().get(&name, 0..10).expect("it is read"),
        Some(b"home".to_vec())
    );
    assert_eq!(run(stage, &["cat", "--", &name], b"").out, b"home");
    run(
        stage,
        &["rm", "-r", "--", name.trim_end_matches("/file")],
        b"",
    );
}

fn a_port_carries_bytes(stage: &dyn Stage) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut peer in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut back = peer.try_clone().expect("a second hand");
                let _ = io::copy(&mut peer, &mut back);
                let _ = back.shutdown(Shutdown::Write);
            });
        }
    });
    let forward = stage
        .transport()
        .forward("127.0.0.1", port)
        .expect("a way there");
    let way = (Ipv4Addr::LOCALHOST, forward.port());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut near = TcpStream::connect(way).expect("it listens");
                let (sent, mut back) = (bytes(1 << 20), Vec::new());
                let mut writer = near.try_clone().expect("a second hand");
                let all = sent.clone();
                std::thread::spawn(move || {
                    writer.write_all(&all).expect("it is taken");
                    writer.shutdown(Shutdown::Write).expect("an end");
                });
                near.read_to_end(&mut back).expect("it comes back");
                assert!(back == sent, "{} bytes came back", back.len());
            });
        }
    });
    let mut open = TcpStream::connect(way).expect("it listens");
    open.write_all(b"x").expect("it is taken");
    open.read_exact(&mut [0]).expect("it comes back");
    drop(forward);
    assert_eq!(open.read(&mut [0]).unwrap_or(0), 0, "what was open is cut");
    crate::until("the port to be closed", || {
        TcpStream::connect(way).is_err().then_some(())
    });
}

fn many_may_call_at_once(stage: &dyn Stage) {
    std::thread::scope(|scope| {
        for number in 0..20 {
            scope.spawn(move || {
                let text = number.to_string();
                assert_eq!(
                    run(
                        stage,
                        &["sh", "-c", "cat; echo \" $1\"", "sh", &text],
                        b"number"
                    )
                    .out,
                    format!("number {text}\n").into_bytes()
                );
            });
        }
    });
}
