//! Shells of the far host: profiles and the user's own settings.

use super::*;

#[test]
fn a_profile_may_print_what_it_likes() {
    let far = Far::start_with("Banner /etc/passwd");
    let shell = Command::new("sh")
        .args(["-c", "getent passwd \"$(id -u)\" | cut -d: -f7"])
        .output()
        .expect("it runs")
        .stdout;
    if !String::from_utf8_lossy(&shell).trim().ends_with("/bash") {
        return ability::not_run("a noisy profile: the login shell is not bash");
    }
    fs::write(
        far.sshd.home().join(".bashrc"),
        "echo welcome to the cluster\necho beware >&2\necho \"$BASH_EXECUTION_STRING\"\ncd /\n",
    )
    .expect("written");
    let files = format!("UserKnownHostsFile={}", far.known_hosts().display());
    let mut plain = Command::new("ssh");
    plain.arg("-F").arg(far.sshd.config()).args([
        "-o",
        "StrictHostKeyChecking=accept-new",
        "-o",
        &files,
        "login",
        "true",
    ]);
    let noise = plain.output().expect("it runs").stdout;
    assert!(
        String::from_utf8_lossy(&noise).contains("welcome"),
        "{noise:?}"
    );
    transport_contract::check_output(&far);
    assert_eq!(far.sshd.authentications(), 2, "the plain one and ours");
}

#[test]
fn the_users_own_settings_for_shells_are_not_in_the_way() {
    let far = Far::start();
    let settings = [
        "RemoteCommand tmux",
        "RequestTTY force",
        "LocalForward 127.0.0.1:1 127.0.0.1:1",
        "ControlMaster auto",
        "ControlPath none",
        "LogLevel QUIET",
    ];
    let transport = reach(&far.config_with(&settings.join("\n")), far.folder.path());
    assert_eq!(
        transport
            .run(&["echo", "good"], b"", COMMAND_TIMEOUT)
            .expect("it runs")
            .out,
        b"good\n"
    );
    transport.close();
}

#[test]
fn a_shell_on_the_terminal_uses_the_same_connection() {
    let far = Far::start();
    far.transport.connect(false).expect("it is there");
    let words = far
        .transport
        .interactive(
            &[
                "sh",
                "-c",
                "echo \"it's $1\"; test -t 0 || exit 4",
                "sh",
                "a b",
            ],
            true,
        )
        .expect("words");
    // `script` gives it a terminal.
    let words: Vec<&str> = words
        .iter()
        .map(|word| word.to_str().expect("text"))
        .collect();
    let output = Command::new("script")
        .args(["-qec", &quote::line(&words), "/dev/null"])
        .output()
        .expect("it runs");
    assert!(
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains("it's a b"),
        "{output:?}"
    );
    assert_eq!(far.sshd.authentications(), 1);
}
