//! The contract of `Transport`: one suite for every kind of connection to a machine. Troubles of one
//! kind alone (a cut connection, a changed key) are tested beside it.

mod files;
mod ports;

use files::{
    a_file_is_put_with_its_folders_and_its_mode, a_put_that_fails_changes_nothing,
    parts_of_files_are_read, paths_are_below_the_home,
};
use ports::a_port_carries_bytes;
use std::io::{BufRead, BufReader, Read, Write};
use std::time::Duration;
use towline_core::ErrorKind;
use towline_core::transport::{Ran, Transport};

/// A transport to test. The machine must see this one's loopback as its own.
pub trait Stage: Sync {
    fn transport(&self) -> &dyn Transport;
    /// An empty folder on the machine, by its absolute path.
    fn folder(&self) -> &str;
}

/// No step of the suite takes that long.
const STEP_TIMEOUT: Duration = Duration::from_secs(50);

/// Words that some shell would change.
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
    a_session_has_input_and_output(stage);
    a_session_can_be_hung_up(stage);
    a_file_is_put_with_its_folders_and_its_mode(stage);
    a_put_that_fails_changes_nothing(stage);
    parts_of_files_are_read(stage);
    paths_are_below_the_home(stage);
    a_port_carries_bytes(stage);
    many_may_call_at_once(stage);
}

/// The part that is about the arguments and the output of commands.
pub fn check_output(stage: &dyn Stage) {
    words_arrive_as_they_are(stage);
    codes_are_the_commands_own(stage);
    bytes_are_bytes(stage);
    a_session_has_input_and_output(stage);
    parts_of_files_are_read(stage);
    paths_are_below_the_home(stage);
}

fn run(stage: &dyn Stage, words: &[&str], input: &[u8]) -> Ran {
    stage
        .transport()
        .run(words, input, STEP_TIMEOUT)
        .unwrap_or_else(|error| panic!("{words:?}: {error} {:?}", error.hints()))
}

/// All byte values, without a period that could hide a mistake between two blocks.
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
    // A program of that name is started, not a builtin of a shell.
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
    // A command need not read its input, and may write much to both outputs.
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

fn a_session_has_input_and_output(stage: &dyn Stage) {
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
    // An output that nobody reads does not block the command.
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
