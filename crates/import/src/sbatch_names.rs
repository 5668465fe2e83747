//! The options that `sbatch` knows, as of 22.05 and with the few that are newer.

use towline_core::suggest::nearest;

/// Whether an option has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Value,
    /// No value, or one after `=`: the next word is the next option.
    Nothing,
    /// Not an option of `sbatch`.
    Unknown,
}

/// Options that need a value.
#[rustfmt::skip]
const OPTIONS_WITH_VALUE: [&str; 83] = [
    "account", "acctg-freq", "array", "batch", "bb", "bbf", "begin", "chdir", "cluster-constraint", "clusters", "comment", "constraint", "container",
    "container-id", "core-spec", "cores-per-socket", "cpu-freq", "cpus-per-gpu", "cpus-per-task", "deadline", "delay-boot", "dependency", "distribution",
    "error", "exclude", "export", "export-file", "extra", "extra-node-info", "gid", "gpu-bind", "gpu-freq", "gpus", "gpus-per-node", "gpus-per-socket",
    "gpus-per-task", "gres", "gres-flags", "hint", "input", "job-name", "kill-on-invalid-dep", "licenses", "mail-type", "mail-user", "mcs-label", "mem",
    "mem-bind", "mem-per-cpu", "mem-per-gpu", "mincpus", "network", "nodefile", "nodelist", "nodes", "ntasks", "ntasks-per-core", "ntasks-per-gpu",
    "ntasks-per-node", "ntasks-per-socket", "open-mode", "output", "partition", "power", "prefer", "priority", "profile", "qos", "reservation", "signal",
    "sockets-per-node", "switches", "thread-spec", "threads-per-core", "time", "time-min", "tmp", "tres-bind", "tres-per-task", "uid", "wait-all-nodes",
    "wckey", "wrap",
];

/// Options without a value.
#[rustfmt::skip]
const OPTIONS_WITHOUT_VALUE: [&str; 23] = [
    "contiguous", "exclusive", "get-user-env", "help", "hold", "ignore-pbs", "nice", "no-kill", "no-requeue", "overcommit", "oversubscribe", "parsable",
    "propagate", "quiet", "reboot", "requeue", "spread-job", "test-only", "usage", "use-min-nodes", "verbose", "version", "wait",
];

pub(super) fn takes(name: &str) -> Takes {
    match name {
        _ if OPTIONS_WITH_VALUE.contains(&name) => Takes::Value,
        _ if OPTIONS_WITHOUT_VALUE.contains(&name) => Takes::Nothing,
        _ => Takes::Unknown,
    }
}

/// The full name of an abbreviated option: `sbatch` takes a beginning that only one option has.
pub(super) fn whole(name: &str) -> String {
    let mut fitting = all().filter(|known| known.starts_with(name));
    match (takes(name), fitting.next(), fitting.next()) {
        (Takes::Unknown, Some(only), None) => only.to_owned(),
        _ => name.to_owned(),
    }
}

/// The most similar option, if one is similar.
pub(super) fn suggested(name: &str) -> Option<&'static str> {
    nearest(name, all())
}

fn all() -> impl Iterator<Item = &'static str> {
    OPTIONS_WITH_VALUE.into_iter().chain(OPTIONS_WITHOUT_VALUE)
}

/// The long name of a short option.
pub(super) fn of_letter(letter: char) -> Option<&'static str> {
    Some(match letter {
        'A' => "account",
        'a' => "array",
        'B' => "extra-node-info",
        'b' => "begin",
        'C' => "constraint",
        'c' => "cpus-per-task",
        'D' => "chdir",
        'd' => "dependency",
        'e' => "error",
        'F' => "nodefile",
        'G' => "gpus",
        'H' => "hold",
        'h' => "help",
        'i' => "input",
        'J' => "job-name",
        'k' => "no-kill",
        'L' => "licenses",
        'M' => "clusters",
        'm' => "distribution",
        'N' => "nodes",
        'n' => "ntasks",
        'O' => "overcommit",
        'o' => "output",
        'p' => "partition",
        'Q' => "quiet",
        'q' => "qos",
        'S' => "core-spec",
        's' => "oversubscribe",
        't' => "time",
        'V' => "version",
        'v' => "verbose",
        'W' => "wait",
        'w' => "nodelist",
        'x' => "exclude",
        _ => return None,
    })
}
