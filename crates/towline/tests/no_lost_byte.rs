//! No lost log byte: the daemon is killed again and again while eight ranks write, and what `logs`
//! and `query` give is what was written, byte for byte.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::io::Read;
use std::time::{Duration, Instant};
use towline_testkit::campaign::is_soak;
use towline_testkit::{Home, until};

/// Writes awkward bytes: binary, `\r`, no newline at the end, and a copy of its own for comparison.
const WRITER: &str = r#"
import os, sys, random, time
rank, size, pause = int(os.environ["RANK"]), int(sys.argv[1]), float(sys.argv[2])
random.seed(rank)
kept = open(f"kept-{rank}", "wb", buffering=0)
left = size
while left > 0:
    block = random.randbytes(random.choice([1, 7, 100, 4096, 65536]))
    kind = random.random()
    if kind < 0.3: block = b"step %d\r" % left
    elif kind < 0.6: block = block.hex().encode() + b"\n"
    block = block[:left]
    at = 0
    while at < len(block): at += os.write(1 if random.random() < 0.8 else 2, block[at:])
    kept.write(block)
    left -= len(block)
    time.sleep(pause)
"#;

fn megabytes() -> usize {
    if is_soak() { 50 } else { 5 }
}

#[test]
fn daemon_kills_lose_nothing() {
    let home = Home::new(env!("CARGO_BIN_EXE_tow"));
    home.write("writer.py", WRITER);
    let size = (megabytes() << 20).to_string();
    // Long enough for some kills to fall in between: the ranks write for a few seconds.
    let pause = if megabytes() > 5 { "0.002" } else { "0.004" };
    let id = home
        .tow([
            "submit",
            "--launch",
            "8",
            "python3",
            "writer.py",
            &size,
            pause,
        ])
        .ok()
        .id();
    // One follows from the first byte on, through every kill.
    let mut follower = home.spawn(["logs", "-f", &id, "--rank", "3"]);
    let mut followed = follower.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        followed.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let mut kills = 0;
    let mut last = Instant::now();
    until("the run to end", || {
        if last.elapsed() > Duration::from_millis(if megabytes() > 5 { 1000 } else { 100 }) {
            kills += usize::from(home.kill_daemon());
            last = Instant::now();
            // Something is fetched in the middle of it.
            home.tow(["query", &id, "--json"]).ok();
        }
        (!home.show(&id)["ended"].is_null()).then_some(())
    });
    assert_eq!(home.state_of(&id), "succeeded");
    assert!(kills >= 3, "only {kills} kills");
    home.tow(["query", &id]).ok();
    for rank in 0..8 {
        let kept = fs::read(home.project().join(format!("kept-{rank}"))).unwrap();
        assert_eq!(kept.len(), megabytes() << 20);
        let fetched = fs::read(
            home.project()
                .join(format!("assets/{id}/attempt-1.rank-{rank}.log")),
        )
        .unwrap();
        assert!(fetched == kept, "query: rank {rank} differs");
        let logged = home
            .tow(["logs", &id, "--rank", &rank.to_string()])
            .ok()
            .raw;
        assert!(logged == kept, "logs: rank {rank} differs");
    }
    let followed = reader.join().unwrap();
    assert!(follower.wait().unwrap().success());
    assert!(
        followed == fs::read(home.project().join("kept-3")).unwrap(),
        "logs -f differs: {} bytes",
        followed.len()
    );
    println!(
        "no lost byte: 8 ranks × {} MB, {kills} daemon kills, every byte there",
        megabytes()
    );
}

#[test]
fn every_attempt_keeps_its_own_log_and_is_followed_over() {
    let home = Home::new(env!("CARGO_BIN_EXE_tow"));
    home.write(
        "job.yaml",
        "command: 'echo attempt $TOW_ATTEMPT; printf tail; test $TOW_ATTEMPT \
        -eq 3'\nretry: {when: [exit_code], max: 3}\n",
    );
    let followed = home.tow(["run", "-f", "job.yaml"]);
    assert_eq!(
        (followed.code, followed.stdout.as_str()),
        (0, "attempt 1\ntailattempt 2\ntailattempt 3\ntail")
    );
    let id = home.show("@")["id"].as_str().unwrap().to_owned();
    assert_eq!(
        home.tow(["logs", &id]).stdout,
        "attempt 1\ntailattempt 2\ntailattempt 3\ntail"
    );
    assert_eq!(
        home.tow(["logs", &id, "--attempt", "2"]).stdout,
        "attempt 2\ntail"
    );
}

#[test]
fn what_the_job_itself_truncates_is_told() {
    let home = Home::new(env!("CARGO_BIN_EXE_tow"));
    let script = r#"echo first line; while [ ! -e cut ]; do sleep 0.01; done; : > "$TOW_RUN_DIR/attempt-1.rank-0.log"; touch done; while [ ! -e go ]; do sleep 0.01; done"#;
    let id = home.tow(["submit", script]).ok().id();
    let mut follower = home.spawn(["logs", "-f", &id]);
    let mut first = [0; 11];
    follower
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    home.write("cut", "");
    until("the log to be cut", || {
        home.project().join("done").exists().then_some(())
    });
    home.write("go", "");
    let output = follower.wait_with_output().unwrap();
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("cut this log"),
        "{output:?}"
    );
}
