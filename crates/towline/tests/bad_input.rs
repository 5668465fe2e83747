//! Bad input: each gets a clear error that names the thing, the documented code, and changes
//! nothing.
#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    clippy::disallowed_methods
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use towline_testkit::{Home, Output, ability};

struct Case {
    name: &'static str,
    /// `job.yaml`, when given.
    job: Option<&'static str>,
    words: &'static [&'static str],
    code: i32,
    /// What the message must hold.
    says: &'static [&'static str],
}

const fn job(
    name: &'static str,
    job: &'static str,
    code: i32,
    says: &'static [&'static str],
) -> Case {
    Case {
        name,
        job: Some(job),
        words: &["submit", "-f", "job.yaml"],
        code,
        says,
    }
}

const fn words(
    name: &'static str,
    words: &'static [&'static str],
    code: i32,
    says: &'static [&'static str],
) -> Case {
    Case {
        name,
        job: None,
        words,
        code,
        says,
    }
}

const CASES: &[Case] = &[
    // Job files: 121, with line and column.
    job(
        "unknown key",
        "comand: true\n",
        121,
        &[
            "job.yaml:1:1",
            "unknown key `comand`",
            "did you mean `command`",
        ],
    ),
    job(
        "unknown nested key",
        "command: x\nresources:\n  gpus: 2\n",
        121,
        &["job.yaml:3:3", "`gpus`"],
    ),
    job(
        "key given twice",
        "command: x\nname: a\nname: b\n",
        121,
        &["job.yaml:3:1", "given twice"],
    ),
    job(
        "not YAML",
        "command: [a, b\nname: x\n",
        121,
        &["job.yaml:", "not valid YAML"],
    ),
    job(
        "tabs for indentation",
        "resources:\n\tnodes: 1\n",
        121,
        &["job.yaml:2"],
    ),
    job("not a mapping", "- a\n- b\n", 121, &["expected a mapping"]),
    job(
        "two documents",
        "command: a\n---\ncommand: b\n",
        121,
        &["second document"],
    ),
    job("empty file", "", 121, &["neither `command` nor `script`"]),
    job(
        "only a comment",
        "# nothing\n",
        121,
        &["neither `command` nor `script`"],
    ),
    job(
        "both command and script",
        "command: a\nscript: b\n",
        121,
        &["both `command` and `script`"],
    ),
    job(
        "blank command",
        "command: '  '\n",
        121,
        &["neither `command` nor `script`"],
    ),
    job(
        "empty first word",
        "command: ['', a]\n",
        121,
        &["first word is empty"],
    ),
    job(
        "a number too large",
        "command: x\nresources: {nodes: 99999999999}\n",
        121,
        &["job.yaml:2:", "whole number"],
    ),
    job(
        "a negative number",
        "command: x\nresources: {nodes: -1}\n",
        121,
        &["whole number", "-1"],
    ),
    job(
        "nodes zero",
        "command: x\nresources: {nodes: 0}\n",
        121,
        &["at least 1"],
    ),
    job(
        "cpus zero",
        "command: x\nresources: {cpus_per_node: 0}\n",
        121,
        &["at least 1"],
    ),
    job(
        "a bad size",
        "command: x\nresources: {memory: lots}\n",
        121,
        &["`lots` is not a size", "600G"],
    ),
    job(
        "a bad span",
        "command: x\nresources: {time: 5 fortnights}\n",
        121,
        &["is not a span of time"],
    ),
    job(
        "a span of mixed order",
        "command: x\nresources: {time: 5m3h}\n",
        121,
        &["`5m3h`"],
    ),
    job(
        "no time at all",
        "command: x\nresources: {time: 0s}\n",
        121,
        &["`0s` is no time at all"],
    ),
    job(
        "more time than there is",
        "command: x\nresources: {time: 99999d}\n",
        121,
        &["`99999d` is longer than 100 years"],
    ),
    job(
        "NUL in a word",
        "command: [echo, \"a\\0b\"]\n",
        121,
        &["the command holds the character NUL"],
    ),
    job(
        "NUL in a script",
        "script: \"echo \\0\"\n",
        121,
        &["`script` holds the character NUL"],
    ),
    job(
        "NUL in a variable",
        "command: x\nenvironment: {env: {A: \"\\0\"}}\n",
        121,
        &["the variable `A` holds the character NUL"],
    ),
    job(
        "NUL in set-up",
        "command: x\nenvironment: {setup: [\"\\0\"]}\n",
        121,
        &["`environment.setup` holds the character NUL"],
    ),
    job(
        "a range that is too large",
        "command: x\nsweep: {a: 1-99999999999999999999}\n",
        121,
        &["1-99999999999999999999", "more than 100000 values"],
    ),
    job(
        "a bad tier",
        "command: x\nresources: {tier: preemium}\n",
        121,
        &["premium", "did you mean `premium`"],
    ),
    job(
        "a bad launch",
        "command: x\nlaunch: per_cpu\n",
        121,
        &["`per_cpu` is not a launch"],
    ),
    job(
        "per_gpu without GPUs",
        "command: x\nlaunch: per_gpu\n",
        121,
        &["one rank per GPU"],
    ),
    job(
        "a bad retry reason",
        "command: x\nretry: {when: [node_fail]}\n",
        121,
        &["did you mean `node_failed`"],
    ),
    job(
        "retry without a start",
        "command: x\nretry: {when: [signal], max: 0}\n",
        121,
        &["at least 1"],
    ),
    job(
        "an unknown template name",
        "command: 'train ${{lrr}}'\nsweep: {lr: [1, 2]}\n",
        121,
        &["${{lrr}}", "did you mean `lr`"],
    ),
    job(
        "an unclosed template",
        "command: 'train ${{lr'\nsweep: {lr: [1]}\n",
        121,
        &["no closing"],
    ),
    job(
        "a sweep tuple of the wrong length",
        "command: x\nsweep: {'(a, b)': [[1, 2], [3]]}\n",
        121,
        &["(a, b)", "2 values at a time"],
    ),
    job(
        "a sweep name given twice",
        "command: x\nsweep: {a: [1], '(a, b)': [[1, 2]]}\n",
        121,
        &["`a` is given twice"],
    ),
    job(
        "an empty sweep",
        "command: x\nsweep: {a: []}\n",
        121,
        &["`a` has no values"],
    ),
    job(
        "a variable of ours",
        "command: x\nenvironment: {env: {TOW_X: 1}}\n",
        121,
        &["TOW_X", "Towline's own"],
    ),
    job(
        "a variable with a bad name",
        "command: x\nenvironment: {env: {'A=B': 1}}\n",
        121,
        &["A=B"],
    ),
    job(
        "a folder outside the code root",
        "command: x\ncode: {workdir: ../..}\n",
        121,
        &["below the code root"],
    ),
    job(
        "a folder that is not there",
        "command: x\ncode: {workdir: nowhere}\n",
        121,
        &["nowhere", "does not exist"],
    ),
    job(
        "an unknown cluster",
        "command: x\ncluster: loacl\n",
        122,
        &["no cluster is called `loacl`", "did you mean `local`"],
    ),
    job(
        "a datastore that nobody knows",
        "command: x\nio: {d: {datastore: s}}\n",
        121,
        &["`io.d`", "no datastore is called `s`", "datastores:"],
    ),
    job(
        "a dataset of no store",
        "command: x\ncopy: {datastore: s}\n",
        121,
        &["`copy`", "no datastore is called `s`"],
    ),
    // What cannot be done: 123, with the reason.
    job(
        "a secret without a value",
        "command: x\nenvironment: {secrets: [NOT_THERE]}\n",
        123,
        &["secret `NOT_THERE` has no value", "export NOT_THERE"],
    ),
    job(
        "more CPUs than there are",
        "command: x\nresources: {cpus_per_node: 4096}\n",
        123,
        &["4096 CPUs", "there are"],
    ),
    job(
        "more memory than there is",
        "command: x\nresources: {memory: 900T}\n",
        123,
        &["900T of memory"],
    ),
    job(
        "an enormous sweep",
        "command: x\nsweep: {a: 1-9999, b: 1-9999}\n",
        123,
        &["more than 100000 runs"],
    ),
    words(
        "more GPUs than there are",
        &["submit", "-n", "64", "true"],
        123,
        &["64 GPUs", "none"],
    ),
    // The command line: 120.
    words("no verb", &[], 120, &["Usage"]),
    words(
        "an unknown verb",
        &["submti", "true"],
        120,
        &["there is no verb `submti`", "did you mean `submit`"],
    ),
    words(
        "an unknown option",
        &["submit", "--gups", "1", "true"],
        120,
        &["--gups"],
    ),
    words(
        "an option without its value",
        &["submit", "-n"],
        120,
        &["--gpus"],
    ),
    words(
        "GPUs that are no number",
        &["submit", "-n", "two", "true"],
        120,
        &["two", "a whole number"],
    ),
    words(
        "fewer GPUs than none",
        &["submit", "-n", "-1", "true"],
        120,
        &["-1", "a whole number"],
    ),
    words(
        "an unknown verb of a verb",
        &["snapshot", "lss"],
        120,
        &["lss", "ls"],
    ),
    words(
        "a bad time",
        &["submit", "--time", "soon", "true"],
        120,
        &["soon"],
    ),
    words(
        "a bad tier on the command line",
        &["submit", "--tier", "gold", "true"],
        120,
        &["gold", "premium"],
    ),
    words(
        "a sweep that is given twice",
        &["submit", "--sweep", "a=1", "--sweep", "a=2", "true"],
        120,
        &["--sweep gives `a` twice", "a=V1,V2"],
    ),
    words(
        "a job file without an end",
        &["submit", "-f", "/dev/zero"],
        121,
        &["/dev/zero", "larger than 16 MiB"],
    ),
    words(
        "fewer runs than none",
        &["ps", "-l", "-1"],
        120,
        &["-1", "a whole number"],
    ),
    words(
        "no state",
        &["ps", "-s", ""],
        120,
        &["`` is not a state", "states: "],
    ),
    words(
        "a bad sweep",
        &["submit", "--sweep", "lr", "true"],
        120,
        &["--sweep `lr`", "there is no `=`"],
    ),
    words(
        "a sweep that falls",
        &["submit", "--sweep", "s=3-1", "true"],
        121,
        &["3-1"],
    ),
    words(
        "a variable without a value",
        &["submit", "--env", "A", "true"],
        120,
        &["--env `A`", "NAME=VALUE"],
    ),
    words(
        "nothing to submit",
        &["submit"],
        121,
        &["neither `command` nor `script`", "tow submit"],
    ),
    words(
        "a job file that is not there",
        &["submit", "-f", "gone.yaml"],
        121,
        &["gone.yaml"],
    ),
    words(
        "a job file that is a folder",
        &["submit", "-f", "."],
        121,
        &["cannot be read"],
    ),
    words(
        "an unknown cluster on the command line",
        &["submit", "-c", "lab", "true"],
        122,
        &["no cluster is called `lab`", "known: local"],
    ),
    words(
        "a run that is not there",
        &["logs", "deadbeef"],
        122,
        &["there is no run"],
    ),
    words(
        "a state that is none",
        &["ps", "--state", "runing"],
        120,
        &["`runing` is not a state", "running"],
    ),
    words(
        "a bad pattern",
        &["prune", "--older-than", "x"],
        120,
        &["`x`"],
    ),
    words("an unknown shell", &["completions", "tcl"], 120, &["tcl"]),
];

#[test]
fn each_mistake_is_named_and_changes_nothing() {
    assert!(CASES.len() >= 40);
    for case in CASES {
        let home = Home::new(env!("CARGO_BIN_EXE_tow"));
        if let Some(text) = case.job {
            home.write("job.yaml", text);
        }
        let output = home.tow(case.words);
        assert_eq!(output.code, case.code, "{}: {output:?}", case.name);
        assert_eq!(output.stdout, "", "{}: data on stdout", case.name);
        for text in case.says {
            assert!(
                output.stderr.contains(text),
                "{}: `{text}` is not in: {}",
                case.name,
                output.stderr
            );
        }
        assert!(
            !output.stderr.contains("panicked"),
            "{}: {}",
            case.name,
            output.stderr
        );
        let made = fs::read_dir(home.state().runs()).map_or(0, Iterator::count);
        assert_eq!(made, 0, "{}: something was made", case.name);
        assert_eq!(
            home.tow(["ps", "--json"]).json()["runs"]
                .as_array()
                .unwrap()
                .len(),
            0,
            "{}: a run was made",
            case.name
        );
    }
}

/// What each case looks for is there once something was made.
#[test]
fn what_is_made_of_a_good_input_is_seen() {
    let home = Home::new(env!("CARGO_BIN_EXE_tow"));
    home.tow(["run", "true"]).ok();
    assert_eq!(
        fs::read_dir(home.state().runs()).map_or(0, Iterator::count),
        1
    );
    assert_eq!(
        home.tow(["ps", "--json"]).json()["runs"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn with_json_the_error_is_json_too() {
    let home = Home::new(env!("CARGO_BIN_EXE_tow"));
    let output = home.tow(["submit", "--json", "-c", "lab", "true"]);
    assert_eq!(output.code, 122);
    let error: serde_json::Value = serde_json::from_str(&output.stderr).unwrap();
    assert_eq!(
        (error["error"].as_str(), error["exit_code"].as_i64()),
        (Some("not_found"), Some(122))
    );
    let usage = home.tow(["ps", "--json", "--nope"]);
    assert_eq!(usage.code, 120);
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&usage.stderr).unwrap()["error"],
        "usage"
    );
}

#[test]
fn bad_configurations_are_named() {
    for (text, code, says) in [
        ("clusters: [a]\n", 121, "config.yaml:1:11"),
        ("clusters:\n  lab: {host: x}\n", 121, "missing field `kind`"),
        (
            "clusters:\n  lab: {kind: slrum}\n",
            121,
            "did you mean `slurm`",
        ),
        (
            "clusters:\n  local: {kind: local, gpus: many}\n",
            121,
            "config.yaml:2:30",
        ),
        (
            "default_cluster: nowhere\n",
            122,
            "no cluster is called `nowhere`",
        ),
        (
            "default_cluster: lab\nclusters:\n  lab: {kind: kubernetes}\n",
            123,
            "kind `kubernetes`",
        ),
        (
            "default_cluster: lab\nclusters:\n  lab: {kind: slurm, host: no-such-host.invalid}\n",
            121,
            "there is no host called `no-such-host.invalid`",
        ),
        (
            "default_cluster: lab\nclusters:\n  lab: {kind: slurm, host: -oProxyCommand=x}\n",
            121,
            "`host` is the name of a host",
        ),
        (
            "default_cluster: lab\nclusters:\n  lab: {kind: slurm, host: x, stage: ../up}\n",
            121,
            "cannot be the path of a folder",
        ),
        (
            "default_cluster: lab\nclusters:\n  lab: {kind: slurm, host: x, tiers: {gold: \
                {qos: a}}}\n",
            121,
            "there is no tier `gold`",
        ),
        ("clusters: {\n", 121, "config.yaml:"),
    ] {
        let home = Home::new(env!("CARGO_BIN_EXE_tow"));
        home.configure(text);
        if says.contains("no-such-host") && !ability::has_program("ssh") {
            ability::not_run("a host that does not exist: there is no ssh here");
            continue;
        }
        let output = home.tow(["submit", "true"]);
        assert_eq!(output.code, code, "{text}: {output:?}");
        assert!(output.stderr.contains(says), "{text}: {}", output.stderr);
    }
}

#[test]
fn unknown_keys_in_the_configuration_only_warn() {
    let home = Home::new(env!("CARGO_BIN_EXE_tow"));
    home.configure("defualt_cluster: x\n");
    let output = home.tow(["run", "echo", "hi"]).ok();
    assert_eq!(output.stdout, "hi\n");
    assert!(
        output.stderr.contains("did you mean `default_cluster`"),
        "{}",
        output.stderr
    );
}

/// Reading without a bound would fill the memory, and a named pipe would be waited for without end.
#[test]
fn files_without_an_end_are_refused_in_bounded_memory() {
    let home = Home::new(env!("CARGO_BIN_EXE_tow")).freezing();
    // One and a half gigabytes of address space, which are more than enough for the program itself.
    let bounded = |words: &[&str]| -> Output {
        let tow = home.command(words);
        let mut shell = std::process::Command::new("timeout");
        shell
            .args(["60", "sh", "-c", "ulimit -v 1500000; exec \"$0\" \"$@\""])
            .arg(tow.get_program())
            .args(tow.get_args());
        shell.current_dir(home.project()).env_clear().envs(
            tow.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        shell.output().unwrap().into()
    };
    let refused = bounded(&["submit", "-f", "/dev/zero"]);
    assert!(
        refused.code == 121 && refused.stderr.contains("larger than 16 MiB"),
        "{refused:?}"
    );
    let place = |name: &str| {
        let path = home.project().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    };
    let pipe = |path: &Path| {
        assert!(
            std::process::Command::new("mkfifo")
                .args(["-m", "644"])
                .arg(path)
                .status()
                .unwrap()
                .success()
        );
    };
    // What a repository may hold: a pipe, an endless device and a file of no sane size.
    for name in [
        "towline.yaml",
        ".gitignore",
        "below/.gitignore",
        "aux_data/aml/aml.yaml",
    ] {
        let path = place(name);
        for make in [
            &pipe as &dyn Fn(&Path),
            &|path| symlink("/dev/zero", path).unwrap(),
            &|path| fs::File::create(path).unwrap().set_len(3 << 30).unwrap(),
        ] {
            make(&path);
            let output = bounded(&["submit", "true"]);
            let is_passed_over = output.code == 0
                && output
                    .stderr
                    .contains(&format!("{name}: it can be written by everybody"));
            assert!(
                is_passed_over || matches!(output.code, 121 | 123) && output.stderr.contains(name),
                "{name}: {output:?}"
            );
            assert!(
                !output.stderr.contains("out of memory"),
                "{name}: {output:?}"
            );
            fs::remove_file(&path).unwrap();
        }
        let _ = fs::remove_dir_all(home.project().join("aux_data"));
    }
    // Without what git would know of it, the code travels all the same.
    for name in [".git/HEAD", ".git/config", ".git"] {
        let path = place(name);
        for make in [&pipe as &dyn Fn(&Path), &|path| {
            symlink("/dev/zero", path).unwrap();
        }] {
            make(&path);
            bounded(&["submit", "true"]).ok();
            fs::remove_file(&path).unwrap();
        }
        let _ = fs::remove_dir_all(home.project().join(".git"));
    }
}
