//! Other Slurms, on other Debians, whose C library is older or newer than the one `tow` was built
//! with.

use crate::lab::Lab;
use std::fs;
use std::time::Duration;
use towline_testkit::real::slurm::Options;
use towline_testkit::until;

/// What a run needs of a cluster: code, several nodes, GPUs, a sweep as an array, an end by the
/// user.
fn a_cluster_of(release: &str, version: &str) {
    let lab = Lab::own(&Options::default().debian(release));
    let nodes = lab.tow(["nodes"]).ok();
    assert!(
        nodes.stdout.contains(&format!("Slurm {version}")),
        "{nodes:?}"
    );
    lab.home
        .write("who.sh", "echo $RANK $(hostname) $CUDA_VISIBLE_DEVICES\n");
    let ran = lab
        .tow(["run", "--nodes", "2", "-n", "4", "sh", "who.sh"])
        .ok();
    let mut lines: Vec<&str> = ran.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 2, "{ran:?}");
    assert!(
        lines
            .iter()
            .zip(["[0] 0 c", "[1] 1 c"])
            .all(|(line, begin)| line.starts_with(begin) && line.ends_with(" 0,1")),
        "{lines:?}"
    );
    // A shell beside a run that has all its GPUs, and another.
    let held = lab
        .tow(["submit", "--nodes", "2", "-n", "2", "sleep", "1000"])
        .ok()
        .id();
    lab.until_state(&held, "running");
    for rank in ["0", "1", "1"] {
        let host = lab
            .tow([
                "ssh",
                &held,
                "--rank",
                rank,
                "--",
                "sh",
                "-c",
                "echo $(hostname) $RANK $CUDA_VISIBLE_DEVICES",
            ])
            .ok()
            .stdout;
        assert!(
            host.starts_with('c') && host.ends_with(&format!(" {rank} 0\n")),
            "{host}"
        );
    }
    lab.tow(["abort", &held, "--wait"]).ok();
    assert_eq!(lab.tow(["run", "sh", "-c", "exit 5"]).code, 5);
    let sweep = lab
        .tow([
            "submit",
            "--sweep",
            "x=1-5",
            "--",
            "sh",
            "-c",
            "exit ${{x}}",
        ])
        .ok()
        .id();
    assert_eq!(lab.tow(["wait", &sweep]).code, 1, "the first that is not 0");
    let codes: Vec<i64> = (1..=5)
        .map(|number| {
            lab.tow(["show", &format!("{sweep}-{number}"), "--json"])
                .json()["exit_code"]
                .as_i64()
                .unwrap()
        })
        .collect();
    assert_eq!(codes, [1, 2, 3, 4, 5]);
    let long = lab.tow(["submit", "sleep", "1000"]).ok().id();
    lab.until_state(&long, "running");
    lab.tow(["abort", &long, "--wait"]).ok();
    assert_eq!(
        lab.tow(["show", &long, "--json"]).json()["state"],
        "cancelled"
    );
}

/// Programs of other versions go when they are old and nothing will start with them.
#[test]
fn old_programs_are_removed_over_there() {
    let lab = Lab::shared();
    let held = lab
        .home
        .submit_file("resources: {native: [--hold]}\nscript: echo never\n", &[]);
    let month = Duration::from_secs(31 * 86_400);
    let make = |letter: &str, age: Duration| {
        let path = lab
            .stage()
            .join("bin")
            .join(format!("tow-{}", letter.repeat(64)));
        let file = fs::File::create(&path).unwrap();
        file.set_modified(file.metadata().unwrap().modified().unwrap() - age)
            .unwrap();
        path
    };
    let script = lab.stage().join("submissions").join(&held).join("batch.sh");
    let text = fs::read_to_string(&script).unwrap();
    fs::write(&script, format!("{text}# tow-{}\n", "b".repeat(64))).unwrap();
    let (old, needed, young) = (
        make("a", month),
        make("b", month),
        make("c", Duration::ZERO),
    );
    // What has ended needs nothing.
    let done = lab.tow(["submit", "true"]).ok().id();
    lab.ended(&done);
    let other = lab.stage().join("submissions").join(&done).join("batch.sh");
    fs::write(&other, format!("# tow-{}\n", "a".repeat(64))).unwrap();
    // A site looks once a day: this is another.
    lab.tow(["daemon", "stop"]).ok();
    lab.tow(["wait", &held, "--timeout", "1s"]);
    until("the old program to go", || (!old.exists()).then_some(()));
    assert!(needed.exists() && young.exists(), "others stay");
    lab.tow(["abort", "--wait", &held]).ok();
    assert_eq!(
        lab.tow(["run", "echo", "still"]).ok().stdout,
        "still\n",
        "and so does the one in use"
    );
    // The sites of other tests may have come first.
    for path in [needed, young] {
        let _ = fs::remove_file(path);
    }
}

#[test]
fn debian_11_with_slurm_20_11() {
    a_cluster_of("bullseye", "20.11");
}

#[test]
fn debian_13_with_slurm_24_11() {
    a_cluster_of("trixie", "24.11");
}
