//! Sweeps: several runs, one object.

use super::{assert_matches, busy_home, ended, home, ids, runs};
use serde_json::{Value, json};
use towline_testkit::Home;

/// The sweep's runs in their order.
fn in_order(home: &Home, sweep: &str) -> Vec<Value> {
    let mut runs = runs(home, &[sweep]);
    runs.reverse();
    runs
}

fn logs(home: &Home, runs: &[Value]) -> Vec<String> {
    runs.iter()
        .map(|run| home.tow(["logs", run["id"].as_str().unwrap()]).ok().stdout)
        .collect()
}

#[test]
fn the_product_of_lists_tuples_and_ranges() {
    let home = home();
    let words = [
        "--sweep",
        "lr=0.10,1e-3",
        "--sweep",
        "(bs,acc)=(8,4),(16,2)",
        "--sweep",
        "seed=1-2",
        "echo",
        "${{lr}}",
        "${{ bs }}x${{acc}}",
        "s${{seed}}",
    ];
    let sweep = ended(&home, &words);
    let runs = in_order(&home, &sweep);
    let expected = [
        "0.10 8x4 s1",
        "0.10 8x4 s2",
        "0.10 16x2 s1",
        "0.10 16x2 s2",
        "1e-3 8x4 s1",
        "1e-3 8x4 s2",
        "1e-3 16x2 s1",
        "1e-3 16x2 s2",
    ];
    assert_eq!(
        logs(&home, &runs),
        expected.map(|line| format!("{line}\n")),
        "values keep their spelling, the last moves fastest"
    );
    let names: Vec<String> = (1..=8).map(|number| format!("{sweep}-{number}")).collect();
    assert_eq!(ids(&runs), names);
    assert_eq!(
        runs[0]["parameters"],
        json!({"lr": "0.10", "bs": "8", "acc": "4", "seed": "1"})
    );
    assert!(runs.iter().all(|run| run["sweep"] == sweep.as_str()));
}

#[test]
fn ranges_and_words_in_a_job_file() {
    let home = home();
    home.write(
        "job.yaml",
        "sweep: {a: 08-10, b: ['1-3', yes], c: 1.50}\ncommand: [echo, '${{a}}', \
        '${{b}}', '${{c}}']\n",
    );
    let sweep = ended(&home, &["-f", "job.yaml"]);
    let expected = [
        "08 1-3 1.50\n",
        "08 yes 1.50\n",
        "09 1-3 1.50\n",
        "09 yes 1.50\n",
        "10 1-3 1.50\n",
        "10 yes 1.50\n",
    ];
    assert_eq!(logs(&home, &in_order(&home, &sweep)), expected);
    let sweep = ended(&home, &["--sweep", "w='a,b',c", "echo", "${{w}}"]);
    assert_eq!(logs(&home, &in_order(&home, &sweep)), ["a,b\n", "c\n"]);
}

#[test]
fn values_stand_in_command_script_name_and_environment() {
    let home = home();
    home.write(
        "job.yaml",
        "name: 'fit-${{lr}}'\nsweep: {lr: [0.1, 0.2]}\nenvironment: {env: {LR: \
        'v${{lr}}'}}\nscript: |\n  echo ${{lr}} $LR '$${{lr}}'\n",
    );
    let sweep = ended(&home, &["-f", "job.yaml"]);
    assert_matches(&sweep, r"\Afit-\d+-[0-9a-f]{8}\z");
    let runs = in_order(&home, &sweep);
    assert_eq!(
        logs(&home, &runs),
        ["0.1 v0.1 ${{lr}}\n", "0.2 v0.2 ${{lr}}\n"]
    );
    assert_eq!(
        runs.iter()
            .map(|run| run["name"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["fit-0.1", "fit-0.2"]
    );
}

#[test]
fn a_value_of_the_command_line_replaces_the_file_s() {
    let home = home();
    home.write(
        "job.yaml",
        "sweep: {lr: [1, 2, 3], seed: [7]}\ncommand: [echo, '${{lr}}', '${{seed}}']\n",
    );
    let sweep = ended(&home, &["-f", "job.yaml", "--sweep", "lr=9"]);
    assert_eq!(logs(&home, &in_order(&home, &sweep)), ["9 7\n"]);
}

#[test]
fn a_sweep_is_listed_as_one() {
    let home = home();
    ended(&home, &["true"]);
    let submitted = home
        .tow(["submit", "--sweep", "a=1-3", "echo", "${{a}}"])
        .ok();
    let sweep = submitted.id();
    assert!(submitted.stderr.contains("3 runs"), "{}", submitted.stderr);
    home.tow(["wait", &sweep]).ok();
    ended(&home, &["true"]);
    let listed = home.tow(["ps", &sweep]).ok();
    assert_eq!(listed.stdout.lines().count(), 4, "{}", listed.stdout);
    for number in 1..=3 {
        assert!(
            listed.stdout.contains(&format!("a={number}")),
            "{}",
            listed.stdout
        );
    }
    assert_eq!(
        runs(&home, &[&sweep[sweep.len() - 4..]]).len(),
        3,
        "by the end of its id"
    );
    assert_eq!(runs(&home, &[&sweep, "--state", "failed"]).len(), 0);
}

#[test]
fn one_run_of_a_sweep_can_be_named() {
    let home = home();
    let sweep = ended(&home, &["--sweep", "a=1-3", "echo", "${{a}}"]);
    let second = format!("{}-2", &sweep[sweep.len() - 5..]);
    assert_eq!(home.tow(["logs", &second]).ok().stdout, "2\n");
    assert_eq!(home.show(&second)["id"], format!("{sweep}-2"));
    let listed = runs(&home, &[&second]);
    assert_eq!(
        ids(&listed),
        [format!("{sweep}-2")],
        "`tow ps RUN` is this run"
    );
}

#[test]
fn verbs_that_need_one_run_say_which_ones_there_are() {
    let home = home();
    let sweep = ended(&home, &["--sweep", "a=0,1,2", "sh", "-c", "exit ${{a}}"]);
    let short = super::short(&sweep);
    for words in [&["ssh", &sweep][..], &["port", &sweep, "8888"]] {
        let output = home.tow(words);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (122, ""),
            "{words:?}"
        );
        assert!(
            output.stderr.contains("sweep of 3 runs")
                && output
                    .stderr
                    .contains(&format!("failed {short}-2, {short}-3; succeeded {short}-1")),
            "{words:?}: {}",
            output.stderr
        );
    }
}

#[test]
fn a_sweep_is_aborted_as_one() {
    let (home, holder) = busy_home();
    let other = home.tow(["submit", "true"]).ok().id();
    let sweep = home
        .tow(["submit", "--sweep", "a=1-3", "sleep", "300"])
        .ok()
        .id();
    let aborted = home.tow(["abort", &sweep]).ok();
    assert_eq!(
        aborted.stdout,
        [1, 2, 3]
            .map(|number| format!("aborting {sweep}-{number}\n"))
            .concat()
    );
    for run in in_order(&home, &sweep) {
        assert_eq!(
            (run["state"].as_str(), run["exit_code"].as_i64()),
            (Some("cancelled"), Some(143))
        );
    }
    assert_eq!(
        (home.state_of(&other), home.state_of(&holder)),
        ("queued".into(), "running".into()),
        "others stay"
    );
    assert_eq!(home.tow(["wait", &sweep]).code, 143);
}

#[test]
fn only_the_failed_ones_of_a_sweep_are_done_again() {
    let home = home();
    let sweep = ended(
        &home,
        &[
            "--name",
            "s-${{a}}",
            "--sweep",
            "a=1-4",
            "--sweep",
            "b=x",
            "sh",
            "-c",
            "echo ${{a}}${{b}}; [ ${{a}} -ge 3 ] || [ -e fixed ]",
        ],
    );
    assert_eq!(home.tow(["wait", &sweep]).code, 1);
    home.write("fixed", "");
    let again = home.tow(["resubmit", &sweep]).ok();
    let new = again.id();
    home.tow(["wait", &new]).ok();
    let runs = in_order(&home, &new);
    assert_eq!(
        runs.iter()
            .map(|run| run["parameters"]["a"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["1", "2"]
    );
    assert_eq!(logs(&home, &runs), ["1x\n", "2x\n"]);
    assert!(
        runs.iter().all(|run| run["sweep"] == new.as_str()),
        "{runs:?}"
    );
    assert_eq!(runs[0]["name"], "s-1");
    // Nothing failed now.
    let nothing = home.tow(["resubmit", &new]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (123, ""));
    assert!(nothing.stderr.contains("--all"), "{}", nothing.stderr);
    let all = home.tow(["resubmit", &sweep, "--all"]).ok().id();
    assert_eq!(in_order(&home, &all).len(), 4);
    home.tow(["wait", &all]).ok();
}

#[test]
fn one_run_of_a_sweep_is_done_again_with_its_values() {
    let home = home();
    let sweep = ended(&home, &["--sweep", "a=1-3", "echo", "value", "${{a}}"]);
    let again = home.tow(["resubmit", &format!("{sweep}-2")]).ok().id();
    home.tow(["wait", &again]).ok();
    let listed = runs(&home, &[&again]);
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["parameters"], json!({"a": "2"}));
    assert_eq!(logs(&home, &listed), ["value 2\n"]);
}

#[test]
fn waiting_for_a_sweep_leaves_with_its_first_failure() {
    let home = home();
    let sweep = home
        .tow(["submit", "--sweep", "a=0,7,9", "sh", "-c", "exit ${{a}}"])
        .ok()
        .id();
    let waited = home.tow(["wait", &sweep]);
    assert_eq!(waited.code, 7);
    assert_eq!(
        waited.stdout,
        format!("{sweep}-1 succeeded\n{sweep}-2 failed\n{sweep}-3 failed\n")
    );
}

/// The words after `tow` in the first hint on stderr that begins like this.
fn hinted<'t>(stderr: &'t str, begins: &str) -> Vec<&'t str> {
    let at = stderr
        .find(begins)
        .unwrap_or_else(|| panic!("`{begins}` is not in {stderr:?}"));
    stderr[at..]
        .lines()
        .next()
        .unwrap()
        .split("    ")
        .next()
        .unwrap()
        .split_whitespace()
        .skip(1)
        .collect()
}

#[test]
fn a_sweep_of_one_value_is_one_run_to_every_verb() {
    let home = home();
    let submitted = home
        .tow(["submit", "--sweep", "lr=0.5", "echo", "${{lr}}"])
        .ok();
    home.tow(["wait", "@"]).ok();
    assert_eq!(
        home.tow(hinted(&submitted.stderr, "tow logs -f"))
            .ok()
            .stdout,
        "0.5\n",
        "the hint works"
    );
    for words in [
        &["logs", "@"][..],
        &["show", "@"],
        &["why", "@"],
        &["query", "@"],
    ] {
        home.tow(words).ok();
    }
}

#[test]
fn what_is_hinted_after_doing_a_sweep_again_works() {
    let home = home();
    let sweep = ended(&home, &["--sweep", "a=1,2", "false"]);
    let again = home.tow(["resubmit", &sweep]).ok();
    home.tow(["wait", &again.id()]);
    home.tow(hinted(&again.stderr, "tow ")).ok();
}

#[test]
fn the_plan_of_a_sweep_shows_its_values() {
    let home = home();
    for (axis, values) in [
        ("lr=0.5", &["lr=0.5"][..]),
        ("lr=0.5,0.25", &["lr=0.5", "lr=0.25"]),
    ] {
        let plan = home
            .tow(["submit", "--dry-run", "--sweep", axis, "train", "${{lr}}"])
            .ok()
            .stdout;
        for value in values {
            assert!(plan.contains(value), "{value} is not in the plan:\n{plan}");
        }
    }
}
