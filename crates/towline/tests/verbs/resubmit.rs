//! `tow resubmit`: the same again.

use super::{assert_matches, busy_home, ended, home, home_with_gpus, ids, runs};
use serde_json::json;

#[test]
fn the_same_again_as_a_new_run() {
    let home = home();
    home.write(
        "job.yaml",
        "name: base\nexperiment: e\ntags: [t]\nresources: \
        {tier: basic, time: 1h, memory: 64M}\nlaunch: 2\nenvironment: {env: {A: kept}}\ncommand: \
            [sh, -c, 'echo $RANK $A \"$1\"', sh, 'two  words']\n",
    );
    let first = ended(&home, &["-f", "job.yaml"]);
    let output = home.tow(["resubmit", &first]).ok();
    assert_matches(&output.stdout, r"\Abase-\d+-[0-9a-f]{8}\n\z");
    assert!(output.stderr.contains("tow logs -f"), "{}", output.stderr);
    let second = output.id();
    assert_ne!(first, second);
    home.tow(["wait", &second]).ok();
    assert_eq!(
        home.tow(["logs", &second, "--rank", "1"]).ok().stdout,
        "1 kept two  words\n"
    );
    let (old, new) = (home.show(&first), home.show(&second));
    for key in [
        "name",
        "experiment",
        "tags",
        "cluster",
        "tier",
        "gpus",
        "nodes",
        "ranks",
        "command",
    ] {
        assert_eq!(old[key], new[key], "{key}");
    }
    assert_eq!(
        (&old["resubmits"], &new["resubmits"]),
        (&json!(null), &json!(first))
    );
    assert_eq!(
        home.tow(["diff", &first, &second, "--json"]).ok().json()["differences"],
        json!([])
    );
}

#[test]
fn the_same_number_of_gpus() {
    let home = home_with_gpus();
    let first = ended(
        &home,
        &["-n", "2", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"],
    );
    let same = home.tow(["resubmit", &first]).ok().id();
    home.tow(["wait", &same]).ok();
    assert_eq!(home.show(&same)["gpus"], 2);
    assert_eq!(home.tow(["logs", &same]).ok().stdout, "0,1\n");
}

#[test]
fn another_number_of_gpus() {
    let home = home_with_gpus();
    let first = ended(&home, &["-n", "2", "true"]);
    for words in [
        &["resubmit", &first, "-n", "1"][..],
        &["-n", "1", "resubmit", &first],
    ] {
        let other = home.tow(words).ok().id();
        assert_eq!(home.show(&other)["gpus"], 1, "{words:?}");
    }
    home.write(
        "job.yaml",
        "resources: {gpus_per_node: 2}\ncommand: 'true'\n",
    );
    let filed = ended(&home, &["-f", "job.yaml"]);
    let other = home.tow(["resubmit", &filed, "-n", "1"]).ok().id();
    assert_eq!(home.show(&other)["gpus"], 1);
}

#[test]
fn the_same_environment_whatever_this_shell_has() {
    let mut home = home().with("SETTING", "then");
    let first = ended(&home, &["sh", "-c", "echo $SETTING"]);
    home.set("SETTING", "now");
    let second = home.tow(["resubmit", &first]).ok().id();
    home.tow(["wait", &second]).ok();
    assert_eq!(
        home.tow(["logs", &second]).ok().stdout,
        "then\n",
        "`tow resubmit --help`: the same command, size and environment again"
    );
}

#[test]
fn it_starts_where_the_first_one_did() {
    let home = home();
    std::fs::create_dir_all(home.project().join("sub")).unwrap();
    home.command(["submit", "pwd"])
        .current_dir(home.project().join("sub"))
        .output()
        .unwrap();
    let second = home.tow(["resubmit", "@"]).ok().id();
    home.tow(["wait", &second]).ok();
    let folder = home.project().join("sub").canonicalize().unwrap();
    assert_eq!(
        home.tow(["logs", &second]).ok().stdout.trim_end(),
        folder.display().to_string()
    );
    std::fs::remove_dir(folder).unwrap();
    let gone = home.tow(["resubmit", &second]);
    assert_eq!((gone.code, gone.stdout.as_str()), (123, ""));
}

#[test]
fn the_old_one_is_aborted_first() {
    let home = home();
    let first = home
        .tow(["submit", "--name", "long", "sleep", "300"])
        .ok()
        .id();
    home.wait_for_state(&first, "running");
    let second = home.tow(["resubmit", "@"]).ok().id();
    assert_eq!(home.state_of(&first), "cancelled");
    home.wait_for_state(&second, "running");
    let (old, new) = (home.show(&first), home.show(&second));
    assert!(
        old["ended"].as_str().unwrap() <= new["started"].as_str().unwrap(),
        "never both at once: {old} {new}"
    );
}

#[test]
fn a_refusal_leaves_the_old_one_alone() {
    let (home, holder) = busy_home();
    for words in [
        &["resubmit", &holder, "-n", "64"][..],
        &["resubmit", &holder, "--to", "nowhere"],
        &["resubmit", &holder, "feedbeef"],
    ] {
        let output = home.tow(words);
        assert!(
            [122, 123].contains(&output.code) && output.stdout.is_empty(),
            "{words:?}: {output:?}"
        );
        let run = home.show(&holder);
        assert_eq!(
            (&run["state"], &run["cancel_requested"]),
            (&json!("running"), &json!(false)),
            "{words:?}"
        );
        assert_eq!(runs(&home, &[]).len(), 1, "{words:?}");
    }
}

#[test]
fn on_another_cluster_by_both_names() {
    let home = home();
    home.configure("clusters:\n  local: {kind: local}\n  here: {kind: local}\n");
    let first = ended(&home, &["true"]);
    for words in [
        &["resubmit", &first, "--to", "here"][..],
        &["resubmit", &first, "-rt", "here"],
        &["-rt", "here", "resubmit", &first],
        &["resubmit", "--resubmit_to", "here", &first],
    ] {
        let id = home.tow(words).ok().id();
        assert_eq!(home.show(&id)["cluster"], "here", "{words:?}");
    }
    let back = home.tow(["resubmit", "@"]).ok().id();
    assert_eq!(
        home.show(&back)["cluster"],
        "here",
        "the same cluster unless told"
    );
}

#[test]
fn several_at_once_and_for_programs() {
    let home = home();
    let (one, two) = (ended(&home, &["echo", "1"]), ended(&home, &["echo", "2"]));
    let output = home.tow(["resubmit", &one, &two, "--json"]).ok();
    assert_eq!(output.stderr, "");
    let json = output.json();
    let rows = json["resubmitted"].as_array().unwrap();
    assert_eq!(
        rows.iter()
            .map(|row| row["from"].as_str().unwrap())
            .collect::<Vec<_>>(),
        [one.as_str(), &two]
    );
    let new: Vec<&str> = rows
        .iter()
        .rev()
        .map(|row| row["id"].as_str().unwrap())
        .collect();
    let listed = runs(&home, &["--limit", "2"]);
    assert_eq!(ids(&listed), new);
    home.tow(["wait"]).ok();
}

#[test]
fn only_what_failed_and_not_what_was_cancelled() {
    let (home, holder) = busy_home();
    let words = ["--sweep", "a=0,3,4", "sh", "-c", "exit ${{a}}"];
    let sweep = home.tow([&["submit"][..], &words].concat()).ok().id();
    home.tow(["abort", "--wait", &format!("{sweep}-3")]).ok();
    home.tow(["abort", "--wait", &holder]).ok();
    home.tow(["wait", &sweep]);
    let why = home.tow(["why", &sweep]).ok().stdout;
    let next = format!("tow resubmit {} --failed", super::short(&sweep));
    assert!(why.contains(&next), "{why}");
    let values = |id: &str| -> Vec<String> {
        let mut runs = runs(&home, &[id]);
        runs.reverse();
        runs.iter()
            .map(|run| run["parameters"]["a"].as_str().unwrap().to_owned())
            .collect()
    };
    let failed = home.tow(["resubmit", &sweep, "--failed"]).ok().id();
    assert_eq!(values(&failed), ["3"]);
    let unwell = home.tow(["resubmit", &sweep]).ok().id();
    assert_eq!(values(&unwell), ["3", "4"]);
    home.tow(["wait", &failed, &unwell]);
    for words in [
        &["resubmit", &sweep, "--failed", "--all"][..],
        &["resubmit", &format!("{sweep}-1"), "--failed"],
    ] {
        let before = runs(&home, &["--all"]).len();
        let refused = home.tow(words);
        assert!(matches!(refused.code, 120 | 123), "{words:?}");
        assert_eq!(runs(&home, &["--all"]).len(), before, "{words:?}");
    }
    let refused = home.tow(["resubmit", &format!("{sweep}-1"), "--failed"]);
    assert_eq!(refused.code, 123);
    assert!(
        refused.stderr.contains("has not failed: 1 succeeded"),
        "{}",
        refused.stderr
    );
}
