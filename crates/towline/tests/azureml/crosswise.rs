//! Each other's jobs: what `tow` began, Microsoft's client lists, follows and ends, and the other
//! way round. All that `tow` sends in these flows is held against what Microsoft publishes.

use crate::lab::{FLAVOURS, Lab};
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;
use towline_testkit::aml::{JobSchema, judge, output_lines};
use towline_testkit::until_within;

/// Microsoft's client, with a home of its own.
struct Client<'a> {
    lab: &'a Lab,
    home: TempDir,
}

impl<'a> Client<'a> {
    fn new(lab: &'a Lab) -> Self {
        // It waits as long as the service asks it to between questions.
        lab.aml
            .conditions(|conditions| conditions.poll_after = None);
        Self {
            lab,
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// A file of the code that it sends.
    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.home.path().join("code")).unwrap();
        fs::write(self.home.path().join("code").join(name), text).unwrap();
    }

    /// A file that is there once it has seen a job run that it streams.
    fn flag(&self) -> String {
        self.home.path().join("flag").to_str().unwrap().to_owned()
    }

    #[track_caller]
    fn acts(&self, words: &[&str]) -> Vec<Value> {
        let output_lines =
            output_lines(self.lab.aml.client("crosswise.py", self.home.path(), words));
        output_lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// Holds all that was recorded against the published descriptions; at least so many jobs must have
/// been put.
#[track_caller]
fn judged(lab: &Lab, jobs: usize, operations: &[&str]) {
    let Some(spec) = judge::published() else {
        return;
    };
    let summary = judge::judge(&lab.aml, &spec);
    for operation in operations {
        assert!(
            summary["operations"][operation].as_u64() > Some(0),
            "{operation} is not among {summary}"
        );
    }
    assert!(JobSchema::read(&spec).judge(&lab.aml) >= jobs);
}

#[test]
fn microsofts_client_lists_shows_streams_and_cancels_what_tow_began() {
    let lab = Lab::new();
    let client = Client::new(&lab);
    let flag = client.flag();
    lab.home.write(
        "train.sh",
        &format!(
            "until [ -e {flag} ]; do sleep 0.05; done; for i in $(seq \
        200); do echo line $i of rank $RANK; done\n"
        ),
    );
    let talks = "name: talks\nexperiment: crosswise\ntags: [of=us]\nresources: {nodes: 2}\nlaunch: \
        2\ncommand: [sh, train.sh]\n";
    let talks = lab.home.submit_file(talks, &[]);
    let waits = lab
        .home
        .submit_file("name: waits\ncommand: [sleep, '600']\n", &[]);
    lab.until_state(&waits, "running");
    let acts = client.acts(&[
        "list",
        &format!("show:{talks}"),
        &format!("stream:{talks}"),
        &format!("cancel:{waits}"),
        &format!("show:{talks}"),
    ]);
    let names: Vec<&str> = acts[0]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, [waits.as_str(), talks.as_str()]);
    assert_eq!(
        (
            &acts[1]["display"],
            &acts[1]["experiment"],
            &acts[1]["tags"]["of"]
        ),
        (&json!("talks"), &json!("crosswise"), &json!("us"))
    );
    let streamed = acts[2].as_str().unwrap();
    let lines: Vec<&str> = streamed
        .lines()
        .filter(|line| line.starts_with("line "))
        .collect();
    let wanted: Vec<String> = (1..=200)
        .map(|number| format!("line {number} of rank 0"))
        .collect();
    assert_eq!(lines, wanted, "{streamed}");
    assert_eq!(
        (&acts[3]["status"], &acts[4]["status"]),
        (&json!("Canceled"), &json!("Completed"))
    );
    assert_eq!(lab.ended(&talks)["state"], "succeeded");
    let cancelled = lab.ended(&waits);
    assert_eq!(
        (&cancelled["state"], &cancelled["reason"]),
        (&json!("cancelled"), &json!("by_user")),
        "{cancelled}"
    );
    judged(
        &lab,
        2,
        &["Jobs_CreateOrUpdate", "Jobs_List", "Jobs_Cancel"],
    );
}

#[test]
fn tow_takes_follows_and_aborts_what_microsofts_client_began() {
    let lab = Lab::new();
    let client = Client::new(&lab);
    let flag = client.flag();
    client.write(
        "main.sh",
        &format!(
            "cat words.txt; echo rank $RANK; until [ -e {flag} ]; do \
        sleep 0.05; done; seq 2000; printf last\n"
        ),
    );
    client.write("words.txt", "words of the code\n");
    // Names as that client and its users give them.
    let (talks, waits) = ("gifted_bear_x12", "my-long-named-job");
    client.acts(&[
        &format!("submit:{talks},2,bash main.sh"),
        &format!("submit:{waits},0,sleep 600"),
    ]);
    let remote = lab.tow(["ps", "--remote", "--json"]).ok().json();
    let known: Vec<&str> = remote["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["job"].as_str().unwrap())
        .collect();
    assert_eq!(known, [waits, talks], "{remote}");
    assert!(lab.tow(["ps", "--remote"]).ok().stdout.contains(talks));

    let run = lab.tow(["adopt", talks]).ok().id();
    assert_eq!(
        lab.tow(["adopt", talks]).ok().id(),
        run,
        "the same job is the same run"
    );
    lab.until_state(&run, "running");
    fs::write(&flag, "").unwrap();
    assert_eq!(lab.ended(&run)["state"], "succeeded");
    let numbers: String =
        (1..=2000).fold(String::new(), |text, number| text + &format!("{number}\n"));
    for rank in 0..4 {
        let log = lab
            .tow(["logs", &run, "--rank", &rank.to_string()])
            .ok()
            .stdout;
        assert_eq!(
            log,
            format!("words of the code\nrank {rank}\n{numbers}last"),
            "rank {rank}"
        );
    }

    let run = lab.tow(["adopt", waits]).ok().id();
    lab.until_state(&run, "running");
    lab.tow(["abort", &run]).ok();
    assert_eq!(lab.ended(&run)["state"], "cancelled");
    until_within(30, "the job to be over there too", || {
        (lab.aml.status(waits).as_deref() == Some("Canceled")).then_some(())
    });
    let acts = client.acts(&[&format!("show:{waits}"), &format!("show:{talks}")]);
    assert_eq!(
        (&acts[0]["status"], &acts[1]["status"]),
        (&json!("Canceled"), &json!("Completed"))
    );
    judged(&lab, 2, &["Jobs_Get", "Jobs_List", "Jobs_Cancel"]);
}

/// Every verb that talks to the service, on each flavour, with as many ranks as a large job has.
#[test]
fn whatever_tow_sends_is_as_published() {
    let lab = Lab::new();
    lab.home
        .write("train.sh", "echo rank $RANK of $WORLD_SIZE\n");
    for flavour in FLAVOURS {
        let job = format!(
            "cluster: {flavour}\nresources: {{nodes: 4, time: 1h}}\nlaunch: 8\ncommand: [sh, \
                train.sh]\n"
        );
        let run = lab.home.submit_file(&job, &[]);
        assert_eq!(lab.ended(&run)["state"], "succeeded", "{flavour}");
        let log = lab.tow(["logs", &run, "--rank", "31"]).ok().stdout;
        assert_eq!(log, "rank 31 of 32\n", "{flavour}");
        let waits = lab.home.submit_file(
            &format!("cluster: {flavour}\ncommand: [sleep, '600']\n"),
            &[],
        );
        lab.until_state(&waits, "running");
        lab.tow(["why", &waits]).ok();
        let again = lab.tow(["resubmit", &waits]).ok().id();
        assert_eq!(lab.ended(&waits)["state"], "cancelled", "{flavour}");
        lab.tow(["abort", &again]).ok();
        assert_eq!(lab.ended(&again)["state"], "cancelled", "{flavour}");
        lab.tow(["nodes", "-c", flavour]).ok();
    }
    lab.tow(["ps", "--remote"]).ok();
    lab.tow(["clusters", "--discover"]).ok();
    lab.tow(["clusters", "--create-workspace", "another"]).ok();
    until_within(60, "the jobs to be forgotten", || {
        lab.tow(["prune", "--older-than", "1s", "--yes"]).ok();
        let deleted = lab
            .aml
            .recorded()
            .iter()
            .filter(|pair| {
                pair.method == "DELETE"
                    && pair.target.contains("/jobs/")
                    && pair.status == Some(200)
            })
            .count();
        (deleted == 9).then_some(())
    });
    judged(
        &lab,
        9,
        &[
            "Jobs_CreateOrUpdate",
            "Jobs_Get",
            "Jobs_List",
            "Jobs_Cancel",
            "Jobs_Delete",
            "Workspaces_CreateOrUpdate",
            "Workspaces_Get",
        ],
    );
    versions_are_known(&lab);
}

/// The validator judges all versions as one: that each is one that the service has is for us to
/// see.
fn versions_are_known(lab: &Lab) {
    const WORKSPACES: &str = "/providers/Microsoft.MachineLearningServices/workspaces";
    let recorded = lab.aml.recorded();
    let of_workspaces: Vec<_> = recorded
        .iter()
        .filter(|pair| {
            pair.target.starts_with("/subscriptions/") && pair.target.contains(WORKSPACES)
        })
        .collect();
    assert!(
        !of_workspaces.is_empty(),
        "nothing was asked of a workspace"
    );
    for pair in of_workspaces {
        assert!(
            pair.target.contains("api-version=2024-04-01"),
            "{} {}",
            pair.method,
            pair.target
        );
    }
}
