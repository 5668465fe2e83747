//! A job of one node: no network, the same news and logs.

use crate::lab::Lab;
use std::fs;
use towline_core::job::RetryPolicy;
use towline_core::quantity::Span;
use towline_core::reason::Cause;
use towline_testkit::until;

#[test]
fn a_run_that_ends_well() {
    let lab = Lab::new(
        "echo hello; pwd; [ -z \"$TOW_CREW_GUARD\" ]; echo $MASTER_ADDR \
        $RANK/$WORLD_SIZE $HOST_SAYS",
    )
    .with(|resolved| resolved.setup = vec!["echo getting ready".into()]);
    let mut lab = lab.with(|resolved| _ = resolved.env.insert("HOST_SAYS".into(), "hi".into()));
    lab.variables
        .push(("HOST_SAYS".into(), "the job's own is on top".into()));
    assert_eq!(lab.all(), [0], "{}", lab.read("stderr-0"));
    assert_eq!(lab.causes(), [None]);
    assert!(lab.is_concluded());
    let report = &lab.attempts()[0];
    let claim = report.claim.as_ref().unwrap();
    assert_eq!(
        (claim.by.job.as_str(), claim.by.restarts, claim.hosts.len()),
        ("the-job", 0, 1)
    );
    assert!(report.started.is_some() && report.held.is_none());
    let text = lab.text("attempt-1.rank-0");
    assert!(
        text.starts_with("hello\n") && text.ends_with("127.0.0.1 0/1 hi\n"),
        "{text}"
    );
    assert_eq!(lab.text("attempt-1.setup-0"), "getting ready\n");
    assert_eq!(lab.read("stdout-0"), text, "and nothing else");
}

#[test]
fn a_run_that_fails_leaves_with_its_code() {
    let lab = Lab::new("exit 7");
    assert_eq!(lab.all(), [7]);
    let ending = &lab.endings()[0];
    assert_eq!(
        (ending.cause, ending.exit_code),
        (Some(Cause::ExitCode), Some(7))
    );
    assert!(lab.is_concluded());
}

#[test]
fn what_cannot_start_says_why() {
    let lab = Lab::new("#!/no/such/interpreter\n");
    assert_eq!(lab.all(), [127]);
    assert_eq!(lab.causes(), [Some(Cause::NotStarted)]);
}

#[test]
fn every_byte_of_a_log_is_there() {
    let lab = Lab::new("cat \"$LAB/bytes\"; printf 'a\\0b' >&2");
    let bytes: Vec<u8> = (0..2_700_000u64)
        .map(|at| u8::try_from((at * at / 13 + at / 256) % 256).unwrap())
        .collect();
    fs::write(lab.path("bytes"), &bytes).unwrap();
    assert_eq!(lab.all(), [0]);
    let whole = [&bytes[..], b"a\0b"].concat();
    assert!(
        lab.log("attempt-1.rank-0") == whole,
        "the parts are the log"
    );
    assert!(
        fs::read(lab.path("stdout-0")).unwrap() == whole,
        "stdout is the log"
    );
}

#[test]
fn logs_and_stdout_come_while_it_runs_and_a_log_that_is_emptied_is_followed() {
    let script = r#"
        head -c 1500000 /dev/zero
        echo first
        while [ ! -e "$LAB/on" ]; do sleep 0.02; done
        : > "$TOW_RUN_DIR/attempt-1.rank-0.log"
        echo second"#;
    let lab = Lab::new(script);
    let node = lab.start(0);
    until("the log to come", || {
        lab.log("attempt-1.rank-0")
            .ends_with(b"first\n")
            .then_some(())
    });
    until("stdout to come", || {
        fs::read(node.stdout())
            .unwrap()
            .ends_with(b"first\n")
            .then_some(())
    });
    assert_eq!(
        fs::read_dir(lab.path("stage/logs/attempt-1.rank-0"))
            .unwrap()
            .count(),
        2
    );
    fs::write(lab.path("on"), "").unwrap();
    assert_eq!(node.code(), 0);
    assert_eq!(lab.text("attempt-1.rank-0"), "second\n");
    assert!(lab.read("stdout-0").ends_with("first\nsecond\n"));
}

#[test]
fn a_failure_that_is_named_is_tried_again_in_place() {
    let lab = Lab::new("echo attempt $TOW_ATTEMPT port $MASTER_PORT; [ $TOW_ATTEMPT = 2 ]").with(
        |resolved| {
            resolved.retry = Some(RetryPolicy {
                when: vec![Cause::ExitCode],
                max: Some(3),
            });
        },
    );
    assert_eq!(lab.all(), [0]);
    assert_eq!(lab.causes(), [Some(Cause::ExitCode), None]);
    let attempts = lab.attempts();
    let ports: Vec<u16> = attempts
        .iter()
        .map(|report| report.claim.as_ref().unwrap().port)
        .collect();
    assert_ne!(ports[0], ports[1]);
    for (number, port) in (1..).zip(ports) {
        assert_eq!(
            lab.text(&format!("attempt-{number}.rank-0")),
            format!("attempt {number} port {port}\n")
        );
    }
    assert_eq!(
        attempts[1].claim.as_ref().unwrap().by.restarts,
        0,
        "the same start of the job"
    );
}

#[test]
fn the_time_limit_is_kept() {
    let lab = Lab::new("sleep 300").with(|resolved| resolved.time = Some(Span(1)));
    assert_eq!(lab.all(), [1]);
    assert_eq!(lab.causes(), [Some(Cause::TimeLimit)]);
}

#[test]
fn a_node_is_kept_after_a_failure_until_the_service_ends_it() {
    let lab = Lab::new("exit 3").with(|resolved| resolved.hold_on_failure = Some(Span(600)));
    let node = lab.start(0);
    let held = until("it to be held", || lab.attempts().first()?.held.clone());
    assert_eq!(
        (held.ending.exit_code, held.until.since(held.at)),
        (Some(3), 600_000)
    );
    assert!(lab.attempts()[0].end.is_none());
    node.signal(rustix::process::Signal::TERM);
    assert_eq!(node.code(), 3);
    assert_eq!(lab.causes(), [Some(Cause::ExitCode)]);
}

#[test]
fn a_node_is_kept_no_longer_than_was_asked() {
    let lab = Lab::new("exit 3").with(|resolved| resolved.hold_on_failure = Some(Span(1)));
    assert_eq!(lab.all(), [3]);
    let report = &lab.attempts()[0];
    assert!(report.end.as_ref().unwrap().at >= report.held.as_ref().unwrap().until);
}
