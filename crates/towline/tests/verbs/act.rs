//! A project of ACT, used as it lies: its files are a layer of the configuration.

use super::home;
use super::import::{account, act_project};
use serde_json::Value;
use towline_testkit::{Home, Output};

fn entry(home: &Home, key: &str) -> (String, String) {
    let json = home.tow(["config", "show", "--json"]).ok().json();
    let found = json["values"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["key"] == key)
        .cloned()
        .unwrap_or_else(|| panic!("no {key}: {json}"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&found["value"]), text(&found["origin"]))
}

#[test]
fn the_files_count_where_they_lie_and_are_named_as_origins() {
    let home = home();
    act_project(&home);
    home.trust();
    for (key, value, origin) in [
        ("default_cluster", "aml", "aux_data/aml/aml.yaml"),
        ("clusters.aml.kind", "azureml", "aux_data/aml/aml.yaml:1:1"),
        ("clusters.aml.compute", "NC24RSV3", "aux_data/aml/aml.yaml:"),
        (
            "clusters.aml.workspace",
            "space",
            "aux_data/aml/config.json:4:",
        ),
        ("clusters.aml.gpus_per_node", "4", "aux_data/aml/aml.yaml:"),
        (
            "folders.data.path",
            "path/to/data",
            "aux_data/aml/aml.yaml:",
        ),
        (
            "datastores.vigeastblob.account",
            "vigeastblobacct",
            "aux_data/configs/vigeastblob_account.yaml:1:15",
        ),
    ] {
        let found = entry(&home, key);
        assert_eq!(found.0, value, "{key}");
        assert!(found.1.contains(origin), "{key}: {found:?}");
    }
    let (reference, _) = entry(&home, "datastores.vigeastblob.credential.sas");
    assert!(
        reference.starts_with("yaml:/")
            && reference.ends_with("aux_data/configs/vigeastblob_account.yaml#sas_token"),
        "{reference}"
    );
    // All that is missing is somebody who is signed in.
    let refused = Output::from(
        home.command(["submit", "ls"])
            .env("PATH", "/nowhere")
            .output()
            .unwrap(),
    );
    assert!(
        refused.code == 123
            && refused
                .stderr
                .contains("cluster `aml`: Azure CLI not installed."),
        "{refused:?}"
    );
    // From below, too; and `towline.yaml` goes over it.
    home.write("src/deep/x", "");
    let below = home
        .command(["config", "show"])
        .current_dir(home.project().join("src/deep"))
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&below.stdout).contains("NC24RSV3"),
        "{below:?}"
    );
    home.write(
        "towline.yaml",
        "default_cluster: local\nclusters: {aml: {compute: other}}\n",
    );
    home.trust();
    assert_eq!(
        (
            entry(&home, "clusters.aml.compute").0,
            entry(&home, "default_cluster").0
        ),
        ("other".into(), "local".into())
    );
}

#[test]
fn a_nearer_towline_yaml_is_another_project() {
    let home = home();
    act_project(&home);
    home.trust();
    home.write("inner/towline.yaml", "");
    let output = home
        .command(["config", "show"])
        .current_dir(home.project().join("inner"))
        .output()
        .unwrap();
    assert!(
        !String::from_utf8_lossy(&output.stdout).contains("NC24RSV3"),
        "{output:?}"
    );
}

#[test]
fn files_build_on_each_other_and_a_loop_is_named() {
    let home = home();
    act_project(&home);
    home.trust();
    home.write(
        "aux_data/aml/c1.yaml",
        "_base_: parts/c.yaml\ncompute_target: C1\nenv: {B: 2}\n",
    );
    home.write(
        "aux_data/aml/parts/c.yaml",
        "_base_: ../aml.yaml\ncompute_target: parts\nenv: {C: 3}\n",
    );
    home.trust();
    assert_eq!(entry(&home, "clusters.c1.compute").0, "C1");
    assert_eq!(entry(&home, "clusters.c1.workspace").0, "space");
    for (name, value) in [("NCCL_IB_DISABLE", "0"), ("B", "2"), ("C", "3")] {
        assert_eq!(
            entry(&home, &format!("clusters.c1.job.environment.env.{name}")).0,
            value
        );
    }
    assert!(
        entry(&home, "clusters.c1.job.environment.env.C")
            .1
            .contains("parts/c.yaml:3:")
    );
    // Another cluster's file that leads nowhere is a warning until it is used.
    home.write("aux_data/aml/l1.yaml", "_base_: l2.yaml\n");
    home.write("aux_data/aml/l2.yaml", "_base_: ./l1.yaml\n");
    home.trust();
    let shown = home.tow(["config", "show"]).ok();
    assert!(
        shown.stderr.contains("warning")
            && shown.stderr.contains("cluster `l1`")
            && shown.stdout.contains("C1"),
        "{shown:?}"
    );
    let used = home.tow(["-c", "l1", "submit", "ls"]);
    assert_eq!(used.code, 121, "{used:?}");
    assert!(
        used.stderr.contains("leads back")
            && used.stderr.contains("aux_data/aml/l1.yaml → ")
            && used.stderr.contains("aux_data/aml/l2.yaml"),
        "{used:?}"
    );
    let listed = home.tow(["-c", "l2", "ls", "data"]);
    assert_eq!(listed.code, 121, "{listed:?}");
    home.write("aux_data/aml/aml.yaml", "a: !!python/object:os.x {}\n");
    let default = home.tow(["config", "show"]);
    assert_eq!(default.code, 121, "{default:?}");
    assert!(
        default
            .stderr
            .contains("aml.yaml:1:4: a value with the tag"),
        "{default:?}"
    );
}

#[test]
fn the_variable_chooses_a_file_anywhere() {
    let mut home = home();
    act_project(&home);
    home.trust();
    home.write(
        "elsewhere/we3v32.yaml",
        "compute_target: WE\naml_config: aux_data/aml/config.json\n",
    );
    std::os::unix::fs::symlink("elsewhere/we3v32.yaml", home.project().join("link.yaml")).unwrap();
    home.set("AML_CONFIG_PATH", "link.yaml");
    home.trust();
    assert_eq!(
        entry(&home, "default_cluster"),
        ("we3v32".into(), "AML_CONFIG_PATH".into())
    );
    assert_eq!(entry(&home, "clusters.we3v32.compute").0, "WE");
    assert_eq!(entry(&home, "clusters.we3v32.workspace").0, "space");
    assert_eq!(entry(&home, "clusters.aml.compute").0, "NC24RSV3");
    home.set("AML_CONFIG_PATH", "none.yaml");
    home.trust();
    let gone = home.tow(["config", "show"]);
    assert!(
        gone.code == 121 && gone.stderr.contains("none.yaml"),
        "{gone:?}"
    );
    home.unset("AML_CONFIG_PATH");
    // qd makes `aml.yaml` a link to the last one used.
    std::fs::rename(
        home.project().join("aux_data/aml/aml.yaml"),
        home.project().join("aux_data/aml/c2.yaml"),
    )
    .unwrap();
    std::os::unix::fs::symlink("c2.yaml", home.project().join("aux_data/aml/aml.yaml")).unwrap();
    home.trust();
    assert_eq!(entry(&home, "default_cluster").0, "c2");
}

#[test]
fn what_jobs_have_on_a_cluster_is_the_clusters_word() {
    let home = home();
    home.configure(
        "clusters:\n  local: {kind: local, cpus: 4, gpus: 4, gpus_per_node: 2, job: {experiment: \
            usual, launch: per_gpu, resources: {gpus_per_node: 2, time: 1h}, environment: \
                {env: {A: theirs, B: theirs}}, code: {ignore: ['*.big']}}}\n",
    );
    let plan = |words: &[&str]| {
        home.tow([&["submit", "--dry-run", "--json"], words, &["true"]].concat())
            .ok()
            .json()
    };
    let usual = plan(&[]);
    assert_eq!(
        (
            &usual["job"]["experiment"],
            &usual["job"]["launch"],
            &usual["resolved"]["shape"]["ranks_per_node"]
        ),
        (&"usual".into(), &"per_gpu".into(), &2.into())
    );
    let own = plan(&["--experiment", "own", "--env", "A=own", "-n", "4"]);
    assert_eq!(
        (
            &own["job"]["experiment"],
            &own["job"]["environment"]["env"]["A"],
            &own["job"]["environment"]["env"]["B"]
        ),
        (&"own".into(), &"own".into(), &"theirs".into())
    );
    assert_eq!(
        (
            &own["resolved"]["shape"]["nodes"],
            &own["resolved"]["shape"]["gpus_per_node"]
        ),
        (&2.into(), &2.into()),
        "-n is divided by what is configured"
    );
    let uneven = home.tow(["-n", "3", "submit", "true"]);
    assert!(
        uneven.code == 123 && uneven.stderr.contains("ask for 2 or 4"),
        "{uneven:?}"
    );
    let none = plan(&["-n", "0"]);
    assert_eq!(none["resolved"]["shape"]["ranks_per_node"], 1);
    let single = home
        .tow([
            "-single",
            "-no-wl",
            "-n",
            "2",
            "submit",
            "--dry-run",
            "--json",
            "true",
        ])
        .ok()
        .json();
    assert_eq!(single["job"]["launch"], "per_node");
    // The same again is the same, whatever the cluster says by now.
    let id = super::ended(&home, &["--launch", "per_node", "true"]);
    home.configure(
        "clusters:\n  local: {kind: local, cpus: 4, gpus: 4, job: {experiment: new, \
        hold_on_failure: 1h, tags: [new]}}\n",
    );
    let again = home.tow(["resubmit", &id]).ok().id();
    home.tow(["wait", &again]).ok();
    let (old, new) = (home.show(&id), home.show(&again));
    for key in ["experiment", "tags", "hold_on_failure"] {
        assert_eq!(old[key], new[key], "{key}: {new}");
    }
    assert_eq!(new["experiment"], "usual", "{new}");
}

#[test]
fn old_verbs_work() {
    let home = home();
    home.write("a.py", "");
    let first = home.tow(["init"]).ok().stdout;
    for verb in ["initc", "initi", "initic"] {
        assert_eq!(home.tow([verb]).ok().stdout, first);
    }
    assert_eq!(
        home.tow(["s"]).ok().stdout,
        home.tow(["clusters"]).ok().stdout
    );
    assert_eq!(home.tow(["summary"]).ok().code, 0);
    home.tow(["blame"]).ok();
    for verb in ["qf", "qq", "qr"] {
        home.tow([verb]).ok();
    }
}

/// What the page's example has as `true` may be `false`: where that means nothing here, it is said
/// with the reason.
#[test]
fn a_value_without_effect_is_told_where_it_lies() {
    let home = home();
    act_project(&home);
    let text = super::import::AML
        .replace("use_custom_docker: true", "use_custom_docker: False")
        .replace("use_cli_auth: True", "use_cli_auth: False");
    home.write("aux_data/aml/aml.yaml", &text);
    home.trust();
    let line = 1 + text
        .lines()
        .position(|line| line.starts_with("use_custom_docker"))
        .unwrap();
    let shown = home.tow(["config", "show"]).ok();
    let why = "AML's own estimator does not exist here; the image below `docker` is used";
    assert!(
        shown.stderr.contains(&format!("aml.yaml:{line}:")) && shown.stderr.contains(why),
        "{shown:?}"
    );
    assert_eq!(
        entry(&home, "clusters.aml.job.environment.image").0,
        "amsword/setup:py36pt16"
    );
    let report = home
        .tow([
            "import",
            "act",
            "aux_data/aml/aml.yaml",
            "--dry-run",
            "--json",
        ])
        .ok()
        .json()["reports"][0]
        .clone();
    assert_eq!(
        super::import::keys(&report, "not_mapped"),
        ["use_custom_docker"],
        "{report}"
    );
    let told = report["not_needed"]
        .as_array()
        .unwrap()
        .iter()
        .find(|line| line["key"] == "use_cli_auth")
        .unwrap();
    assert_eq!(
        told["says"], "the Azure CLI's login is what is used",
        "{report}"
    );
}

#[test]
fn two_account_files_of_one_name_are_two_stores() {
    let home = home();
    act_project(&home);
    home.trust();
    account(&home, "vigblob");
    home.write(
        "other/vigblob_account.yaml",
        "account_name: b\naccount_key: a2V5\ncontainer_name: c\n",
    );
    home.write(
        "aux_data/aml/eu.yaml",
        "config_param:\n  data_folder: \
        {azure_blob_config_file: ./aux_data/configs/vigblob_account.yaml, path: x}\n  more_folder: \
            {azure_blob_config_file: other/vigblob_account.yaml, path: y}\n",
    );
    home.trust();
    assert_eq!(
        entry(&home, "clusters.eu.folders.data.datastore").0,
        "vigblob"
    );
    assert_eq!(
        entry(&home, "clusters.eu.folders.more.datastore").0,
        "vigblob-2"
    );
    assert!(
        entry(&home, "datastores.vigblob-2.credential.account_key")
            .0
            .ends_with("other/vigblob_account.yaml#account_key")
    );
}
