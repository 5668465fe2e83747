//! Nodes to enter: what the service is told, and the way in where it gives one.

use crate::lab::Lab;
use towline_testkit::real::Sshd;

/// A home that has a key.
fn lab_with_key() -> Lab {
    let lab = Lab::new();
    std::fs::create_dir_all(lab.home.path("home/.ssh")).unwrap();
    std::fs::write(
        lab.home.path("home/.ssh/id_ed25519.pub"),
        "ssh-ed25519 AAAA alice\n",
    )
    .unwrap();
    lab
}

#[test]
fn a_job_of_kubernetes_is_entered_by_the_address_in_its_tag() {
    let sshd = Sshd::start();
    let mut lab = lab_with_key();
    lab.home.set(
        "TOW_CLUSTERS__ITP__SSH_CONFIG",
        sshd.config().to_str().unwrap(),
    );
    let run = lab.tow(["-c", "itp", "submit", "ssh"]).ok().id();
    let body = lab.put(&run);
    let entered = &body["resources"]["properties"]["itp"]["interactive_configuration"];
    assert_eq!(
        (
            entered["is_ssh_enabled"].as_bool(),
            entered["ssh_public_key"].as_str()
        ),
        (Some(true), Some("ssh-ed25519 AAAA alice")),
        "{body}"
    );
    lab.until_state(&run, "running");
    // The configuration says as whom.
    lab.aml.tag(
        &run,
        "ssh",
        &format!("ssh://{}:{}", sshd.host(), sshd.port()),
    );
    let said = lab
        .tow(["ssh", &run, "--", "printf", "%s|", "a b", "$HOME"])
        .ok();
    assert_eq!(said.stdout, "a b|$HOME|");
    lab.tow(["abort", &run, "--wait"]).ok();
}

#[test]
fn a_virtual_cluster_keeps_nodes_that_run_nothing() {
    let lab = lab_with_key();
    let run = lab.tow(["-c", "sing", "submit", "ssh"]).ok().id();
    let bag = lab.put(&run)["resources"]["properties"]["AISuperComputer"].clone();
    assert_eq!(
        (bag["interactive"].as_bool(), bag["sshPublicKey"].as_str()),
        (Some(true), Some("ssh-ed25519 AAAA alice")),
        "{bag}"
    );
    lab.until_state(&run, "running");
    let refused = lab.tow(["ssh", &run]);
    assert!(
        refused.code == 123 && refused.stderr.contains("no address yet"),
        "{refused:?}"
    );
    lab.tow(["abort", &run, "--wait"]).ok();
    assert_eq!(lab.home.state_of(&run), "cancelled");
}

#[test]
fn a_relay_is_named_with_who_speaks_it() {
    let lab = lab_with_key();
    let run = lab.tow(["submit", "ssh"]).ok().id();
    assert_eq!(lab.put(&run)["services"]["ssh"]["jobServiceType"], "SSH");
    lab.until_state(&run, "running");
    let refused = lab.tow(["ssh", &run]);
    assert!(
        refused.code == 123
            && refused
                .stderr
                .contains(&format!("az ml job connect-ssh --name {run}")),
        "{refused:?}"
    );
    lab.tow(["abort", &run, "--wait"]).ok();
}

#[test]
fn without_a_key_nobody_could_enter() {
    let lab = Lab::new();
    let refused = lab.tow(["submit", "ssh"]);
    assert!(
        refused.code == 123 && refused.stderr.contains("ssh-keygen"),
        "{refused:?}"
    );
}
