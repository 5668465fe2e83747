//! Advice about endings.

use super::rank_option;
use towline_core::obstacle::Obstacle;
use towline_core::reason::{Cause, Ending};

/// The next step if the logs show no cause.
pub(super) fn advice(ending: &Ending, short: &str, is_here: bool) -> (Option<bool>, String) {
    let again = format!("tow resubmit {short}");
    match ending.cause {
        Some(Cause::TimeLimit) => (
            Some(false),
            "give it more with `--time`, or go on from \
            checkpoints with `retry: {when: [time_limit]}`"
                .into(),
        ),
        Some(Cause::OutOfMemory) => (
            Some(false),
            "ask for more with `--memory`, or use less: \
            smaller batches, fewer data loader workers"
                .into(),
        ),
        Some(Cause::NodeFailed) => (
            Some(true),
            format!(
                "try again: {again}; `retry: {{when: \
            [node_failed]}}` does it by itself"
            ),
        ),
        Some(Cause::Preempted) => (
            Some(true),
            "it comes back by itself; `--tier standard` is not \
            preempted here"
                .into(),
        ),
        Some(Cause::Rejected) => {
            let hints = ending.hints();
            (
                Some(false),
                if hints.is_empty() {
                    format!(
                        "change what was refused; then \
                {again}"
                    )
                } else {
                    format!("{}; then {again}", hints.join("; "))
                },
            )
        }
        Some(Cause::SetUp) => (
            Some(false),
            format!(
                "see what set-up said: tow logs {short} \
            --setup"
            ),
        ),
        Some(Cause::Data) => (
            None,
            format!(
                "`tow doctor` tries every store; what was done is in \
            tow logs {short} --setup; then {again}"
            ),
        ),
        Some(Cause::ImagePull) => (
            Some(false),
            image_advice(ending.detail.as_deref().unwrap_or_default(), short),
        ),
        Some(Cause::NotStarted) => not_started(ending, short, is_here),
        _ => own_end(ending, short),
    }
}

/// The next step for a program that never ran.
fn not_started(ending: &Ending, short: &str, is_here: bool) -> (Option<bool>, String) {
    match ending.known_obstacle() {
        Some(Obstacle::NoRoom) => (
            Some(true),
            format!(
                "make room on the disk named above (`tow prune` removes old runs here); then tow \
                resubmit {short}"
            ),
        ),
        Some(Obstacle::CodeLayout) => (
            None,
            "`tow snapshot check` looks for damage; `tow resubmit --latest-code` takes a new \
                snapshot of the code"
                .into(),
        ),
        Some(Obstacle::StageNotShared) => (
            Some(false),
            "name a folder as `stage` of the cluster that its login host and its nodes share"
                .into(),
        ),
        None if is_here => (
            Some(false),
            "check the program's name and that it is executable; PATH is the submitting shell's"
                .into(),
        ),
        None => (
            Some(false),
            format!(
                "what is named above is not there on the node: a program, a folder or a store; \
                then tow resubmit {short}"
            ),
        ),
    }
}

/// The next step for a program that ended by itself or by a signal.
fn own_end(ending: &Ending, short: &str) -> (Option<bool>, String) {
    let failure = ending.first_failure.as_ref();
    if ending.cause == Some(Cause::Signal) && failure.and_then(|failure| failure.signal) == Some(9)
    {
        return (
            None,
            "SIGKILL comes from outside: most often the kernel, out of memory. See `dmesg`, or \
                set `--memory` so that tow can tell"
                .into(),
        );
    }
    let meaning = failure
        .and_then(|failure| failure.exit_code)
        .map(meaning)
        .unwrap_or_default();
    (
        None,
        format!(
            "{meaning}read the end of its log: tow logs \
                {short}{}",
            failure
                .map(|failure| rank_option(failure.rank))
                .unwrap_or_default()
        ),
    )
}

/// The next step for an image: one that does not exist, or a runtime that cannot start any.
pub(super) fn image_advice(said: &str, short: &str) -> String {
    const OF_THE_NAME: [&str; 8] = [
        "short-name",
        "manifest unknown",
        "not found",
        "no such image",
        "denied",
        "unauthorized",
        "invalid reference",
        "does not exist",
    ];
    let said = said.to_lowercase();
    let first = if OF_THE_NAME.iter().any(|words| said.contains(words)) {
        "check the image's name, and your login at its registry"
    } else {
        "the container runtime could not start it: try it by hand, `podman run --rm IMAGE true`"
    };
    format!("{first}; what the runtime said is in tow logs {short} --setup")
}

/// The meaning of an exit code for shells.
pub(super) fn meaning(code: i32) -> String {
    match code {
        126 => "code 126 means that a program was found and could not be run: check that it is \
            executable; "
            .to_owned(),
        127 => "code 127 means that a command was not found; ".to_owned(),
        137 => "code 137 means that something below it was ended by SIGKILL, most often because \
            memory ran out; "
            .to_owned(),
        129..=192 => format!(
            "code {code} means that something below it was ended by \
            {}; ",
            towline_core::reason::signal_name(code - 128)
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kept_a_program_from_starting_decides_the_next_step() {
        let step = |ending: &Ending| advice(ending, "x-1", true).1;
        for (obstacle, old_text, part) in [
            (Obstacle::NoRoom, "/r: No space left on device", "make room"),
            (
                Obstacle::CodeLayout,
                "the code could not be laid out: gone",
                "tow snapshot check",
            ),
            (
                Obstacle::StageNotShared,
                "is `stage` a folder that all hosts share?",
                "name a folder as `stage`",
            ),
        ] {
            let typed = Ending::not_started("in other words", Some(obstacle));
            assert!(step(&typed).contains(part), "{}", step(&typed));
            let old = Ending::cause(Cause::NotStarted).detail(old_text);
            assert_eq!(step(&old), step(&typed));
        }
        let other = Ending::not_started("command not found: trian", None);
        assert!(step(&other).contains("check the program's name"));
    }
}
