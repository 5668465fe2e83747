//! Refusals of `sbatch`, against answers of real clusters (`samples/README.md`).

use super::recorded::versions;
use super::refusal::{self, Asked, refusal};
use towline_core::ErrorKind;

/// What `sbatch` printed after `== OPTIONS`, and its exit code.
fn refusals(text: &str) -> Vec<(&str, &str)> {
    text.split("== ")
        .skip(1)
        .filter_map(|part| part.split_once('\n'))
        .filter(|(_, said)| !said.ends_with("code 0\n"))
        .collect()
}

/// How the options begin, and the kind and words of their refusal.
const EXPECTED: &[(&str, ErrorKind, &str)] = &[
    ("-p gpuu", ErrorKind::Config, "partition `gpuu` unknown"),
    ("--qos=nosuch", ErrorKind::Config, "QOS `nosuch` unknown"),
    ("-A nosuch", ErrorKind::Config, "account `nosuch` unknown"),
    (
        "--gres=gpu:9",
        ErrorKind::Refused,
        "no node of the default partition has what the job asks for",
    ),
    ("--gres=gpu:a100:1", ErrorKind::Refused, "no node of"),
    (
        "--gres=tpu:1",
        ErrorKind::Config,
        "the default partition has no such GPUs",
    ),
    ("-c 99", ErrorKind::TooLarge, "as many CPUs"),
    ("--mem=99G", ErrorKind::TooLarge, "as much memory"),
    ("-N 9", ErrorKind::Refused, "no node of"),
    (
        "-t xyz",
        ErrorKind::Config,
        "does not understand an option: Invalid --time",
    ),
    (
        "-a 0-99999",
        ErrorKind::TooLarge,
        "more runs than this cluster allows",
    ),
    ("-C nosuch", ErrorKind::Config, "feature"),
    ("-w nosuch", ErrorKind::Config, "node that does not exist"),
    ("--frob", ErrorKind::Config, "unrecognized option '--frob'"),
    (
        "--reservation=",
        ErrorKind::Refused,
        "the reservation cannot be used",
    ),
    (
        "-d afterok",
        ErrorKind::Config,
        "depends on one that does not exist",
    ),
    ("-L nolic", ErrorKind::Config, "licence"),
    (
        "--mem=abc",
        ErrorKind::Config,
        "does not understand an option",
    ),
    (
        "--signal",
        ErrorKind::Config,
        "does not understand an option",
    ),
    (
        "--qos=small",
        ErrorKind::Refused,
        "its QOS allows one user only so many jobs, waiting ones included, and that limit is \
                reached",
    ),
    ("-n 100", ErrorKind::Refused, "no node of"),
    ("--gpus-per-node=9", ErrorKind::Refused, "no node of"),
    ("-J open", ErrorKind::Refused, "cannot use a path"),
    (
        "controller down",
        ErrorKind::Unreachable,
        "whether the job was accepted is not known",
    ),
    ("munge down", ErrorKind::Unreachable, "who you are"),
];

#[test]
fn refusals_of_every_version_are_plain_words() {
    for (version, text) in versions!("refusals.txt") {
        for (options, said) in refusals(text) {
            let (_, kind, words) = EXPECTED
                .iter()
                .find(|(begin, ..)| options.starts_with(begin))
                .unwrap_or_else(|| panic!("{version}: {options}"));
            let asked = Asked {
                qos: Some("nosuch"),
                account: Some("nosuch"),
                partitions: &["main", "gpu"],
                ..Asked::default()
            };
            let error = refusal(said, &asked);
            assert_eq!(error.kind(), *kind, "{version} {options}: {error}");
            assert!(
                error.message().contains(words),
                "{version} {options}: {error}"
            );
        }
    }
}

#[test]
fn a_refusal_keeps_what_the_site_said() {
    let near = refusal::explain(
        "sbatch: error: invalid partition specified: gpuu\nsbatch: error: Batch job submission \
            failed: Invalid partition name specified\n",
        &["main", "gpu"],
    );
    assert_eq!(near.hints(), ["did you mean `gpu`?"]);
    let own = refusal::explain(
        "motd\nsbatch: error: lab rule 7: no jobs on Sundays\nsbatch: error: Batch job submission \
            failed: Unspecified error\n",
        &[],
    );
    assert_eq!(
        (own.kind(), own.context()[0].1.as_str()),
        (
            ErrorKind::Refused,
            "lab rule 7: no jobs on Sundays; Unspecified error"
        )
    );
}

#[test]
fn an_answer_that_was_lost_is_no_refusal() {
    // The last of them when munge comes back while `sbatch` waits for it.
    let lost = "sbatch: error: slurm_msg_sendto: address:port=10.77.0.4:6817 msg_type=4003: \
        Unexpected missing socket error\nsbatch: error: Batch job submission failed: Unexpected \
            missing socket error\n";
    for unsure in [
        "",
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n",
        lost,
    ] {
        assert_eq!(
            refusal::explain(unsure, &[]).kind(),
            ErrorKind::Unreachable,
            "{unsure}"
        );
    }
}
