//! `tow submit`: words, options, job files, the plan.

use super::{assert_is_run, assert_matches, ended, home, home_with_gpus, runs, short};
use towline_testkit::Home;

fn log(home: &Home, id: &str) -> String {
    home.tow(["logs", id]).ok().stdout
}

#[test]
fn the_id_is_all_of_stdout_and_the_next_step_is_on_stderr() {
    let home = home();
    let output = home.tow(["submit", "echo", "hi"]).ok();
    assert_matches(&output.stdout, r"\Aecho-\d{10}-[0-9a-f]{8}\n\z");
    let id = output.id();
    assert!(
        output
            .stderr
            .contains(&format!("tow logs -f {}", short(&id))),
        "{}",
        output.stderr
    );
    assert!(
        output.stderr.contains(&format!("tow abort {}", short(&id))),
        "{}",
        output.stderr
    );
    assert_eq!(home.tow(["wait", &id]).ok().stderr, "");
    assert_eq!(log(&home, &id), "hi\n");
}

#[test]
fn ids_are_made_of_the_name_made_safe_and_cut() {
    let home = home();
    for (name, begins) in [
        ("Vit_L Conti/Train", "vit-l-conti-train"),
        ("../../etc", "etc"),
        ("ÄÖÜ", "run"),
        (
            "a-name-that-is-much-longer-than-thirty-characters",
            "a-name-that-is-much-longer-tha",
        ),
    ] {
        let id = home.tow(["submit", "--name", name, "true"]).ok().id();
        assert_matches(&id, &format!(r"\A{begins}-\d{{10}}-[0-9a-f]{{8}}\z"));
        assert!(id.len() <= 50, "{id}");
        assert_eq!(home.show(&id)["name"], name, "the name itself is kept");
    }
}

#[test]
fn words_keep_their_boundaries() {
    let home = home();
    let words = [
        "a  b",
        "it's",
        "\"q\"",
        "new\nline",
        "",
        "$HOME",
        "`id`",
        "*",
        "\\n",
        "-n",
        "--json",
        "ünï",
        "${X}",
        "a;b",
        "|",
    ];
    let output = home
        .tow([&["run", "printf", "<%s>\n"][..], &words].concat())
        .ok();
    assert_eq!(
        output.stdout,
        words.map(|word| format!("<{word}>\n")).concat()
    );
}

#[test]
fn several_words_run_without_a_shell_and_one_with_shell_characters_in_sh() {
    let home = home();
    assert_eq!(
        home.tow(["run", "echo", "$HOME", "&&", "exit", "3"])
            .ok()
            .stdout,
        "$HOME && exit 3\n"
    );
    assert_eq!(
        home.tow(["run", "echo $((1 + 2)) && echo \"$0\" | tr a-z A-Z"])
            .ok()
            .stdout,
        "3\nSH\n"
    );
    assert_eq!(home.tow(["run", "exit 3"]).code, 3);
    assert_eq!(home.tow(["run", "X=5;echo $X"]).ok().stdout, "5\n");
    // One plain word is a program.
    assert_eq!(
        home.tow(["run", "pwd"]).ok().stdout.trim_end(),
        home.project().canonicalize().unwrap().display().to_string()
    );
}

#[test]
fn options_of_tow_end_at_the_first_word() {
    let home = home();
    let output = home
        .tow([
            "run",
            "echo",
            "--json",
            "-n",
            "5",
            "-c",
            "nowhere",
            "--dry-run",
            "--",
            "--help",
        ])
        .ok();
    assert_eq!(
        output.stdout,
        "--json -n 5 -c nowhere --dry-run -- --help\n"
    );
    assert_eq!(
        home.tow(["run", "--", "echo", "--", "-x"]).ok().stdout,
        "-- -x\n"
    );
    assert_eq!(
        home.tow(["run", "--name", "n", "--", "echo", "--name"])
            .ok()
            .stdout,
        "--name\n"
    );
    assert_eq!(
        home.tow(["run", "sh", "-c", "echo \"$@\"", "sh", "--version", "-h"])
            .ok()
            .stdout,
        "--version -h\n"
    );
    // `--` lets a program begin with a dash.
    assert!(
        home.tow(["submit", "--dry-run", "--", "-weird", "x"])
            .ok()
            .stdout
            .contains("-weird x")
    );
}

#[test]
fn options_may_stand_before_the_verb() {
    let home = home_with_gpus();
    let id = home.tow(["-n", "0", "submit", "true"]).ok().id();
    assert_eq!(home.show(&id)["gpus"], 0);
    let json = home
        .tow(["--json", "-n", "1", "-c", "local", "submit", "true"])
        .ok()
        .json();
    let run = home.show(json["id"].as_str().unwrap());
    assert_eq!(
        (run["gpus"].as_u64(), run["cluster"].as_str()),
        (Some(1), Some("local"))
    );
    let id = home
        .tow(["--num_gpu", "2", "--tier", "basic", "submit", "true"])
        .ok()
        .id();
    assert_eq!(
        (
            home.show(&id)["gpus"].as_u64(),
            home.show(&id)["tier"].as_str()
        ),
        (Some(2), Some("basic"))
    );
    assert!(
        home.tow(["--dry-run", "submit", "true"])
            .ok()
            .stdout
            .starts_with("would submit")
    );
    assert_eq!(
        home.tow(["-n", "0", "run", "echo", "-n", "x"]).ok().stdout,
        "x"
    );
}

#[test]
fn any_option_may_stand_before_the_verb() {
    let home = home();
    for (words, key, value) in [
        (
            &["--name", "before", "submit", "true"][..],
            "name",
            "before",
        ),
        (&["--name=glued", "submit", "true"], "name", "glued"),
        (
            &["--experiment", "e1", "submit", "true"],
            "experiment",
            "e1",
        ),
        (
            &["--time", "1h", "--name", "timed", "submit", "true"],
            "name",
            "timed",
        ),
        (
            &["--env", "A=b", "--name", "env", "submit", "true"],
            "name",
            "env",
        ),
    ] {
        let output = home.tow(words);
        assert_eq!(output.code, 0, "{words:?}: {}", output.stderr);
        assert_eq!(home.show(&output.id())[key], value, "{words:?}");
    }
}

#[test]
fn a_dry_run_prints_the_plan_and_makes_nothing() {
    let home = home();
    let output = home
        .tow([
            "submit",
            "--dry-run",
            "--time",
            "2h",
            "python",
            "train.py",
            "--lr",
            "0.1",
        ])
        .ok();
    assert_matches(
        &output.stdout,
        r"\Awould submit train-\d+-[0-9a-f]{8} to `local`",
    );
    assert!(
        output.stdout.contains("python train.py --lr 0.1") && output.stdout.contains("2h"),
        "{}",
        output.stdout
    );
    assert_eq!(output.stderr, "");
    home.write(
        "job.yaml",
        "command: 'touch made; echo ${{lr}}'\nsweep: {lr: [1, 2, 3]}\n",
    );
    for words in [
        &["submit", "-f", "job.yaml", "--dry-run"][..],
        &["run", "--dry-run", "touch", "made"],
        &["submit", "--follow", "--dry-run", "touch", "made"],
    ] {
        assert!(
            home.tow(words).ok().stdout.starts_with("would submit"),
            "{words:?}"
        );
    }
    let plan = home
        .tow(["submit", "-f", "job.yaml", "--dry-run", "--json"])
        .ok()
        .json();
    assert_eq!(plan["runs"].as_array().unwrap().len(), 3);
    assert_eq!(
        (plan["cluster"].as_str(), plan["kind"].as_str()),
        (Some("local"), Some("local"))
    );
    assert!(
        !home.path("state/towline").exists(),
        "a state folder was made"
    );
    assert!(!home.project().join("made").exists(), "it ran");
    assert_eq!(home.daemon(), None, "a daemon was started");
}

#[test]
fn what_submit_tells_a_program() {
    let home = home();
    let json = home
        .tow(["submit", "--json", "--sweep", "a=1,2", "true"])
        .ok();
    assert_eq!(json.stderr, "");
    let json = json.json();
    assert_matches(json["id"].as_str().unwrap(), r"\Atrue-\d+-[0-9a-f]{8}\z");
    let listed = json["runs"].as_array().unwrap();
    assert_eq!(listed.len(), 2);
    listed.iter().for_each(assert_is_run);
}

#[test]
fn options_win_over_the_job_file() {
    let home = home_with_gpus();
    home.write(
        "job.yaml",
        "name: filed\nexperiment: e1\ntags: [a]\nresources: \
            {gpus_per_node: 1, cpus_per_node: 1, tier: basic, time: 1h}\nenvironment: {env: {A: \
                file, B: file}}\ncommand: [sh, -c, 'echo $A $B']\n",
    );
    let id = ended(&home, &["-f", "job.yaml"]);
    let run = home.show(&id);
    assert_eq!(
        (
            run["name"].as_str(),
            run["experiment"].as_str(),
            run["tier"].as_str(),
            run["gpus"].as_u64()
        ),
        (Some("filed"), Some("e1"), Some("basic"), Some(1))
    );
    assert_eq!(log(&home, &id), "file file\n");
    let id = ended(
        &home,
        &[
            "-f", "job.yaml", "--name", "given", "--tier", "standard", "-n", "2", "--env",
            "B=given", "--tag", "b",
        ],
    );
    let run = home.show(&id);
    assert_eq!(
        (
            run["name"].as_str(),
            run["tier"].as_str(),
            run["gpus"].as_u64()
        ),
        (Some("given"), Some("standard"), Some(2))
    );
    assert_eq!(run["tags"], serde_json::json!(["a", "b"]));
    assert_eq!(log(&home, &id), "file given\n");
    let id = ended(&home, &["-f", "job.yaml", "echo", "another", "command"]);
    assert_eq!(log(&home, &id), "another command\n");
}

#[test]
fn from_a_former_run_is_the_same_job_unless_changed() {
    let home = home();
    let first = ended(
        &home,
        &[
            "--name",
            "base",
            "--experiment",
            "e",
            "--tag",
            "t",
            "--env",
            "A=1",
            "sh",
            "-c",
            "echo $A",
        ],
    );
    let again = ended(&home, &["--from", &first]);
    assert_ne!(first, again);
    assert_eq!(log(&home, &again), "1\n");
    let run = home.show(&again);
    assert_eq!(
        (
            run["name"].as_str(),
            run["experiment"].as_str(),
            &run["tags"]
        ),
        (Some("base"), Some("e"), &serde_json::json!(["t"]))
    );
    let changed = ended(&home, &["--from", "@", "--name", "other", "--env", "A=2"]);
    assert_eq!(log(&home, &changed), "2\n");
    assert_eq!(home.show(&changed)["name"], "other");
    let command = ended(&home, &["--from", &first, "echo", "new"]);
    assert_eq!(log(&home, &command), "new\n");
    assert_eq!(home.show(&command)["name"], "base");
    assert_eq!(home.tow(["submit", "--from", "nothing-like-it"]).code, 122);
}

#[test]
fn from_a_former_run_keeps_its_size() {
    let home = home_with_gpus();
    let first = ended(&home, &["-n", "2", "--cpus", "2", "true"]);
    let again = ended(&home, &["--from", &first]);
    assert_eq!(home.show(&again)["gpus"], 2);
    let changed = ended(&home, &["--from", &first, "-n", "1"]);
    assert_eq!(home.show(&changed)["gpus"], 1);
}

#[test]
fn from_a_former_run_keeps_its_cluster() {
    let home = home();
    home.configure(
        "default_cluster: local\nclusters:\n  local: {kind: local}\n  here: {kind: local}\n",
    );
    let first = ended(&home, &["-c", "here", "true"]);
    assert_eq!(home.show(&first)["cluster"], "here");
    let again = ended(&home, &["--from", &first]);
    assert_eq!(home.show(&again)["cluster"], "here");
    let moved = ended(&home, &["--from", &first, "-c", "local"]);
    assert_eq!(home.show(&moved)["cluster"], "local");
}

#[test]
fn of_several_clusters_the_first_that_can_start_it() {
    let home = home();
    home.configure("clusters:\n  far: {kind: slurm, host: nowhere}\n  here: {kind: local}\n");
    home.write("job.yaml", "cluster: [far, here, local]\ncommand: 'true'\n");
    let id = ended(&home, &["-f", "job.yaml"]);
    assert_eq!(home.show(&id)["cluster"], "here");
}

#[test]
fn follow_is_run() {
    let home = home();
    let output = home.tow(["submit", "--follow", "sh", "-c", "echo out; exit 5"]);
    assert_eq!((output.code, output.stdout.as_str()), (5, "out\n"));
}

#[test]
fn every_rank_gets_the_variables_of_all_launchers() {
    let home = home();
    let line = "$RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $NODE_RANK $GROUP_RANK \
        $OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_SIZE $OMPI_COMM_WORLD_LOCAL_RANK \
            $OMPI_COMM_WORLD_LOCAL_SIZE";
    let id = ended(
        &home,
        &[
            "--nodes",
            "2",
            "--launch",
            "2",
            "sh",
            "-c",
            &format!("echo {line}"),
        ],
    );
    for (rank, says) in [
        "0 0 4 2 0 0 0 4 0 2\n",
        "1 1 4 2 0 0 1 4 1 2\n",
        "2 0 4 2 1 1 2 4 0 2\n",
        "3 1 4 2 1 1 3 4 1 2\n",
    ]
    .iter()
    .enumerate()
    {
        assert_eq!(
            home.tow(["logs", &id, "--rank", &rank.to_string()])
                .ok()
                .stdout,
            *says
        );
    }
    let shared = ended(
        &home,
        &[
            "--launch",
            "2",
            "sh",
            "-c",
            "echo $MASTER_ADDR:$MASTER_PORT $AZ_BATCH_HOST_LIST $AZ_BATCHAI_JOB_MASTER_NODE_IP \
                $TOW_RUN_ID $TOW_ATTEMPT",
        ],
    );
    let logs = [0, 1].map(|rank| {
        home.tow(["logs", &shared, "--rank", &rank.to_string()])
            .ok()
            .stdout
    });
    assert_eq!(logs[0], logs[1]);
    assert_matches(&logs[0], &format!(r"\A\S+:[1-9]\d+ \S+ \S+ {shared} 1\n\z"));
}

#[test]
fn scripts_stop_at_the_first_failure_or_follow_their_own_line() {
    let home = home();
    home.write("stop.yaml", "script: |\n  echo one\n  false\n  echo two\n");
    let output = home.tow(["run", "-f", "stop.yaml"]);
    assert_eq!((output.code, output.stdout.as_str()), (1, "one\n"));
    home.write(
        "bash.yaml",
        "script: |\n  words=(a b)\n  echo ${words[1]}\n",
    );
    assert_eq!(home.tow(["run", "-f", "bash.yaml"]).ok().stdout, "b\n");
    // `cat` as the interpreter prints what it was given.
    home.write("own.yaml", "script: |\n  #!/bin/cat\n    $HOME \"kept\"\n");
    assert_eq!(
        home.tow(["run", "-f", "own.yaml"]).ok().stdout,
        "#!/bin/cat\n  $HOME \"kept\"\n"
    );
}

#[test]
fn the_job_has_the_shell_s_variables_but_not_ours_and_starts_where_i_am() {
    let home = home()
        .with("MINE", "kept as it is")
        .with("TOW_SOMETHING", "ours");
    std::fs::create_dir(home.project().join("sub")).unwrap();
    let mut command = home.command(["run", "sh", "-c", "echo \"$MINE|$TOW_SOMETHING|$(pwd)\""]);
    let output = command
        .current_dir(home.project().join("sub"))
        .output()
        .unwrap();
    let folder = home.project().join("sub").canonicalize().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("kept as it is||{}\n", folder.display())
    );
}

#[test]
fn ssh_alone_keeps_its_nodes_and_ssh_with_words_is_the_program() {
    let home = home();
    let id = home.tow(["submit", "ssh"]).ok().id();
    assert_matches(&id, r"\Assh-\d+-[0-9a-f]{8}\z");
    home.wait_for_state(&id, "running");
    assert_eq!(
        home.tow(["ssh", &id, "--", "sh", "-c", "echo in $TOW_RUN_ID"])
            .ok()
            .stdout,
        format!("in {id}\n")
    );
    home.tow(["abort", "--wait", &id]).ok();
    assert!(
        home.tow(["submit", "--dry-run", "ssh", "-V"])
            .ok()
            .stdout
            .contains("ssh -V")
    );
    assert!(
        !home
            .tow(["submit", "--dry-run", "ssh", "-V"])
            .ok()
            .stdout
            .contains("sleep")
    );
}

#[test]
fn gpus_are_a_total_and_none_when_unasked_with_a_hint() {
    let home = home_with_gpus();
    let unasked = home
        .tow([
            "submit",
            "--name",
            "unasked",
            "sh",
            "-c",
            "echo \"[$CUDA_VISIBLE_DEVICES]\"",
        ])
        .ok();
    assert!(unasked.stderr.contains("-n 1"), "{}", unasked.stderr);
    home.tow(["wait", &unasked.id()]).ok();
    assert_eq!(
        (
            home.show(&unasked.id())["gpus"].as_u64(),
            log(&home, &unasked.id())
        ),
        (Some(0), "[]\n".to_owned())
    );
    let two = home
        .tow(["run", "-n", "2", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"])
        .ok();
    assert_eq!(two.stdout, "0,1\n");
    assert!(!two.stderr.contains("-n 1"), "{}", two.stderr);
    let remainder = home.tow(["submit", "-n", "3", "true"]);
    assert_eq!((remainder.code, remainder.stdout.as_str()), (123, ""));
    assert!(remainder.stderr.contains("2 or 4"), "{}", remainder.stderr);
    assert_eq!(runs(&home, &[]).len(), 2);
}

#[test]
fn who_asks_for_no_gpu_is_not_told_to_ask() {
    let home = home_with_gpus();
    let none = home.tow(["submit", "-n", "0", "true"]).ok();
    assert!(
        !none.stderr.contains("no GPU was asked for"),
        "{}",
        none.stderr
    );
}

#[test]
fn a_run_without_a_name_is_called_after_its_program() {
    let home = home();
    for (words, name) in [
        (&["python", "-u", "src/train.py", "--lr=0.1"][..], "train"),
        (&["/usr/bin/env"], "env"),
        (&["sh", "-c", "sleep 0.01; echo done"], "sh"),
        (&["bash", "-c", "python src/train.py --lr 0.1"], "bash"),
        (&["sleep 0.01; echo done"], "sleep"),
    ] {
        let plan = home
            .tow([&["submit", "--dry-run", "--json"], words].concat())
            .ok()
            .json();
        assert_eq!(plan["runs"][0]["name"], name, "{words:?}");
    }
}

#[test]
fn a_job_file_from_standard_input() {
    let home = home();
    let mut child = home
        .command(["run", "-f", "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(
        &mut child.stdin.take().unwrap(),
        b"command: [echo, from, stdin]\n",
    )
    .unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"from stdin\n");
    let mut wrong = home
        .command(["submit", "-f", "-"])
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut wrong.stdin.take().unwrap(), b"comand: x\n").unwrap();
    let refused = wrong.wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(121));
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("standard input:1:1"),
        "{refused:?}"
    );
}

#[test]
fn what_follows_a_job_that_only_keeps_its_nodes_is_a_shell() {
    let home = home();
    let made = home.tow(["submit", "ssh"]).ok();
    assert!(
        made.stderr.contains("tow ssh ") && !made.stderr.contains("tow logs"),
        "{}",
        made.stderr
    );
    home.tow(["abort", "@", "--wait"]).ok();
}

#[test]
fn what_this_machine_does_not_do_is_said() {
    let home = home();
    let refused = home.tow(["submit", "-n", "1", "true"]);
    assert_eq!(refused.code, 123);
    assert!(
        refused.stderr.contains("leave out `-n`")
            && refused.stderr.contains("TOW_CLUSTERS__LOCAL__GPUS=1"),
        "{}",
        refused.stderr
    );
    let plan = home
        .tow(["submit", "--memory", "64M", "--dry-run", "true"])
        .ok()
        .stdout;
    assert_eq!(
        plan.contains("counted and not limited"),
        !towline_testkit::ability::may_limit_memory(),
        "{plan}"
    );
    let doctor = home.tow(["doctor"]).stdout;
    assert_eq!(
        doctor.contains("counted and not limited"),
        !towline_testkit::ability::may_limit_memory(),
        "{doctor}"
    );
    let odd = <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(vec![b'a', 0xff]);
    let told = home
        .command(["run", "sh", "-c", "echo [$ODD]"])
        .env("ODD", odd)
        .output()
        .unwrap();
    assert_eq!(told.stdout, b"[]\n");
    assert!(
        String::from_utf8_lossy(&told.stderr)
            .contains("the variable `ODD` of this shell is not UTF-8 text"),
        "{told:?}"
    );
    let home = home_with_gpus();
    assert!(home.tow(["submit", "true"]).ok().stderr.contains("`-n 0`"));
    assert!(
        !home
            .tow(["submit", "-n", "0", "true"])
            .ok()
            .stderr
            .contains("no GPU was asked for")
    );
}

/// The local cluster has no kinds of machines: an option that asks for one is refused, and the key
/// of a job file that also goes elsewhere is only noted.
#[test]
fn a_kind_of_machine_is_refused_where_there_is_none() {
    let home = home();
    for verb in ["submit", "run"] {
        let refused = home.tow([verb, "--instance-type", "h200", "true"]);
        assert_eq!(refused.code, 123, "{refused:?}");
        assert!(
            refused
                .stderr
                .contains("`--instance-type h200`: cluster `local` has no kinds of machines"),
            "{refused:?}"
        );
    }
    assert_eq!(home.tow(["alloc", "--instance-type", "h200"]).code, 123);
    assert_eq!(
        home.tow(["submit", "--instance-type", "", "true"]).code,
        120
    );
    home.write(
        "job.yaml",
        "resources: {instance_type: h200}\ncommand: [true]\n",
    );
    let noted = home.tow(["submit", "-f", "job.yaml"]).ok();
    assert!(
        noted
            .stderr
            .contains("no use for `resources.instance_type`"),
        "{noted:?}"
    );
}

#[test]
fn a_script_that_is_not_there_is_told_with_the_one_that_was_meant() {
    let home = home();
    home.write("train.py", "");
    let said = home
        .tow(["submit", "--dry-run", "python3", "-u", "trian.py"])
        .ok();
    let note = "there is no trian.py where it starts: did you mean `train.py`?";
    assert!(said.stdout.contains(note), "{said:?}");
    for words in [
        &["python3", "train.py"][..],
        &["python3", "made_by_set_up.py"],
        &["python3", "/nowhere/trian.py"],
        &["cat", "trian.txt"],
    ] {
        let said = home.tow([&["submit", "--dry-run"], words].concat()).ok();
        assert!(!said.stdout.contains("there is no"), "{said:?}");
    }
}

#[test]
fn options_and_verbs_of_other_tools_are_told_in_our_words() {
    let home = home();
    for (words, hint) in [
        (
            &["submit", "-p", "gpu", "true"][..],
            "--native=--partition=NAME",
        ),
        (
            &["run", "--partition=gpu", "true"],
            "--native=--partition=NAME",
        ),
        (&["submit", "-N", "2", "true"], "--nodes NODES"),
        (&["submit", "--mem", "4G", "true"], "--memory 16G"),
        (&["submit", "--array=0-9", "true"], "--sweep seed=0-9"),
        (&["squeue"], "here it is `tow ps`"),
        (&["scancel", "@"], "here it is `tow abort`"),
        (&["tail", "@"], "here it is `tow logs -f`"),
    ] {
        let refused = home.tow(words);
        assert_eq!(refused.code, 120, "{words:?}: {refused:?}");
        assert!(
            refused.stderr.contains(hint),
            "{words:?}: {}",
            refused.stderr
        );
        assert!(!refused.stderr.contains("as a value"), "{}", refused.stderr);
        let json = home.tow([words, &["--json"]].concat());
        if words[0] != "run" && words[0] != "submit" {
            assert!(
                json.stderr.contains(hint) || json.stdout.contains(hint),
                "{json:?}"
            );
        }
    }
    let odd = home.tow(["ps", "--bogus"]);
    assert_eq!(odd.code, 120);
    assert!(!odd.stderr.contains("as a value"), "{}", odd.stderr);
    assert!(runs(&home, &[]).is_empty());
    // What another scheduler's clock writes is read.
    let timed = home
        .tow(["submit", "--time", "01:30:00", "--dry-run", "true"])
        .ok();
    assert!(timed.stdout.contains("1h30m"), "{}", timed.stdout);
}
