//! Verbs and options of other schedulers' tools, and our words for them.

/// Verbs of other tools that none of ours resembles, and ours.
pub const VERBS: [(&str, &str); 14] = [
    ("sbatch", "submit"),
    ("qsub", "submit"),
    ("srun", "run"),
    ("squeue", "ps"),
    ("queue", "ps"),
    ("qstat", "ps"),
    ("sacct", "ps"),
    ("jobs", "ps"),
    ("scancel", "abort"),
    ("qdel", "abort"),
    ("delete", "abort"),
    ("sinfo", "nodes"),
    ("tail", "logs -f"),
    ("retry", "resubmit"),
];

/// Options of `sbatch` and others that `submit` and `run` do not have under that name.
pub const OPTIONS: [(&[&str], &str); 14] = [
    (
        &["-p", "--partition"],
        "`--native=--partition=NAME` for this submission, `partition:` of the cluster in the \
            configuration for all",
    ),
    (
        &["-q", "--qos"],
        "`--tier`, which the configuration maps to a QOS, or `--native=--qos=NAME`",
    ),
    (
        &["-A", "--account"],
        "`--native=--account=NAME`, or `resources.account` in a job file",
    ),
    (&["-N"], "`--nodes NODES`"),
    (&["-t"], "`--time 2h30m`"),
    (&["-J", "--job-name"], "`--name NAME`"),
    (&["--mem"], "`--memory 16G`, for each node"),
    (
        &["-G", "--gres", "--gpus-per-node", "--num-gpus"],
        "`-n GPUS` is the number in all; with `--nodes` they are shared out",
    ),
    (
        &["--cpus-per-task", "--num-cpus"],
        "`--cpus CPUS`, for each node",
    ),
    (
        &["--ntasks", "--ntasks-per-node"],
        "`--launch RANKS` is the number of processes on each node",
    ),
    (
        &["-a", "--array"],
        "`--sweep seed=0-9`, and `${{seed}}` in the command",
    ),
    (&["-d", "--dependency"], "`--after RUN`"),
    (
        &["-o", "--output", "-e", "--error"],
        "the output of every rank is kept: `tow logs RUN`, `tow query RUN`",
    ),
    (
        &["--wrap"],
        "the command itself, as the last word: `tow submit 'make && ./bench'`",
    ),
];

/// Our verb for one of another tool.
pub fn verb(theirs: &str) -> Option<&'static str> {
    let found = VERBS.iter().find(|(known, _)| *known == theirs);
    found.map(|(_, ours)| *ours)
}

/// Our way to say an option of another tool.
pub fn option(theirs: &str) -> Option<&'static str> {
    let found = OPTIONS.iter().find(|(names, _)| names.contains(&theirs));
    found.map(|(_, ours)| *ours)
}
