//! The page for those who come from the MSRA Toolkit: every command on it, in order, on real hosts.

use crate::lab::{home, hosts, nothing_is_left, rows};
use std::fs;
use towline_testkit::page;

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/guide/from-msra-toolkit-tunnels.md"
);

#[test]
fn every_command_of_the_page_runs_in_order() {
    let (slurm, home) = (hosts(), home());
    // The sandbox of the page is a node, by the name that the bastion has for it.
    slurm
        .root(
            "bastion",
            [
                "sh",
                "-c",
                "sed -n 's/\\<c1\\>/gcrazgdl1234/p' /etc/hosts >> /etc/hosts",
            ],
        )
        .ok();
    let config = slurm.ssh_config();
    let given = fs::read_to_string(&config).unwrap();
    let keys: Vec<&str> = given
        .lines()
        .filter(|line| line.trim_start().starts_with("Identit"))
        .collect();
    // What `tow tunnel include` writes to counts, as it would for the reader.
    let own = home.path("reader_ssh_config");
    let text = format!(
        "Include {}\nHost 127.0.0.1\n  UserKnownHostsFile {}\n  StrictHostKeyChecking \
            accept-new\nHost *\n{}\n",
        home.path("home/.ssh/config").display(),
        home.path("known").display(),
        keys.join("\n")
    );
    fs::write(&own, text).unwrap();
    let commands = page::commands(PAGE);
    assert!(commands.len() >= 9, "{commands:?}");
    for begin in ["ssh", "tow tunnel ls"] {
        assert!(
            commands.iter().any(|line| line.starts_with(begin)),
            "no `{begin}` among {commands:?}"
        );
    }
    for line in &commands {
        // The reader's own configuration of ssh, which a test has in another place.
        let typed = if line.starts_with("tow tunnel add") {
            format!("{line} --ssh-config {}", config.display())
        } else {
            line.clone()
        };
        let ran = page::run(&home, &own, &typed);
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
        if line.starts_with("ssh") {
            assert_eq!(ran.stdout, "c1\n", "{line}");
        }
        if line.starts_with("tow tunnel ls") {
            assert_eq!(
                (
                    rows(&home)[0]["state"].as_str(),
                    rows(&home)[0]["port"].as_u64()
                ),
                (Some("open"), Some(22222))
            );
        }
    }
    assert!(rows(&home).is_empty());
    assert!(
        !home.path("home/.ssh/config").exists(),
        "the one line is gone, and so is the file that was made for it"
    );
    nothing_is_left(&home);
}
