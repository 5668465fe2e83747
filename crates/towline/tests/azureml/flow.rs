//! From the command to its logs, on each flavour.

use crate::lab::{FLAVOURS, Lab};

#[test]
fn a_command_runs_with_its_code_and_its_log_comes_back() {
    let lab = Lab::new();
    lab.home
        .write("train.sh", "echo trained by $TOW_RUN_ID; exit 3\n");
    for flavour in FLAVOURS {
        let ran = lab.tow(["-c", flavour, "run", "sh", "train.sh"]);
        assert_eq!(ran.code, 3, "{flavour}: {ran:?}");
        assert!(
            ran.stdout.contains("trained by train-"),
            "{flavour}: {ran:?}"
        );
    }
    let shown = lab.tow(["show", "@", "--json"]).ok().json();
    assert_eq!(
        (shown["state"].as_str(), shown["exit_code"].as_i64()),
        (Some("failed"), Some(3)),
        "{shown}"
    );
}
