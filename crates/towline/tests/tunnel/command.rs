//! A program on the way instead of hops: started, watched, ended with all it has started.

use crate::lab::{
    alive, assert_says, banner, free_port, home, nothing_is_left, row, ssh, supervisors,
    until_state,
};
use rustix::process::Signal;
use std::fs;
use towline_host::process;
use towline_testkit::real::Sshd;
use towline_testkit::{Home, Output, until};

/// A bastion of one line: a real program that listens and leads on.
fn socat(sshd: &Sshd) -> Vec<String> {
    [
        "socat",
        "TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr",
        &format!("TCP:127.0.0.1:{}", sshd.port()),
    ]
    .map(str::to_owned)
    .into()
}

fn add(home: &Home, words: &[String]) -> (u16, Output) {
    let port = free_port();
    let fixed = [
        "tunnel",
        "add",
        "box",
        "--to",
        "vm1",
        "--open",
        "--via-command",
        "--port",
    ]
    .map(str::to_owned);
    let words: Vec<String> = fixed
        .into_iter()
        .chain([port.to_string(), "--".to_owned()])
        .chain(words.iter().cloned())
        .collect();
    (port, home.tow(words))
}

#[test]
fn it_is_started_again_whatever_ends_it_and_ends_with_us() {
    let (sshd, home) = (Sshd::start(), home());
    let (port, opened) = add(&home, &socat(&sshd));
    opened.ok();
    assert!(banner(port).is_some());
    let programs = || {
        alive(&home)
            .into_iter()
            .filter(|(_, words)| words.starts_with("socat"))
            .map(|(pid, _)| pid)
            .collect::<Vec<_>>()
    };
    // The program, and then its supervisor: each is back, and alone.
    for victims in [programs(), supervisors(&home)] {
        assert!(!victims.is_empty(), "nobody to kill");
        for pid in &victims {
            process::signal(*pid, Signal::KILL);
        }
        until("it to be gone", || {
            victims
                .iter()
                .all(|pid| process::facts(*pid).is_none_or(|facts| facts.zombie))
                .then_some(())
        });
        until("it to be back", || banner(port));
        until_state(&home, "box", "open");
        until(&format!("one program, not {:?}", alive(&home)), || {
            (programs().len() == 1).then_some(())
        });
        assert_eq!(supervisors(&home).len(), 1);
    }
    let text = fs::read_to_string(home.state().ssh().join("config")).unwrap();
    assert!(
        text.contains("Host tow-box") && text.contains("HostKeyAlias vm1"),
        "{text}"
    );
    home.tow(["tunnel", "close", "box"]).ok();
    nothing_is_left(&home);
}

/// The Azure CLI is a shell script around its program, which would outlive it.
#[test]
fn what_it_starts_in_the_background_ends_too() {
    let (sshd, home) = (Sshd::start(), home());
    let script = "setsid \"$@\" & wait";
    let words: Vec<String> = ["sh", "-c", script, "az"]
        .map(str::to_owned)
        .into_iter()
        .chain(socat(&sshd))
        .collect();
    let (port, opened) = add(&home, &words);
    opened.ok();
    let killed = supervisors(&home);
    assert_eq!(killed.len(), 1);
    for pid in killed {
        process::signal(pid, Signal::KILL);
    }
    until("it to be back", || banner(port));
    let programs = || {
        alive(&home)
            .iter()
            .filter(|(_, words)| words.starts_with("socat"))
            .count()
    };
    until(&format!("one program, not {:?}", alive(&home)), || {
        (programs() == 1).then_some(())
    });
    home.tow(["tunnel", "close", "box"]).ok();
    nothing_is_left(&home);
}

#[test]
fn its_host_key_is_that_of_the_machine_behind_it() {
    let (mut sshd, home) = (Sshd::start(), home());
    add(&home, &socat(&sshd)).1.ok();
    let key = sshd.config().with_file_name("key").display().to_string();
    let words = ["-o", "IdentitiesOnly=yes", "-i", &key, "-l", "root"];
    let ask = || {
        let mut command = crate::lab::ssh_command(&home, "tow-box", &["true"]);
        let rest: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        command = std::process::Command::new("ssh");
        Output::from(
            command
                .args(words)
                .args(rest)
                .stdin(std::process::Stdio::null())
                .output()
                .unwrap(),
        )
    };
    ask().ok();
    let known = fs::read_to_string(home.state().ssh().join("known_hosts")).unwrap();
    assert!(known.starts_with("vm1 "), "{known}");
    sshd.new_host_key();
    until("it to be back", || {
        (row(&home, "box")["state"] == "open"
            && banner(
                row(&home, "box")["port"]
                    .as_u64()
                    .unwrap()
                    .try_into()
                    .unwrap(),
            )
            .is_some())
        .then_some(())
    });
    let changed = ask();
    assert!(
        changed.code == 255 && changed.stderr.contains("HAS CHANGED"),
        "{changed:?}"
    );
    assert_eq!(ssh(&home, "tow-nothing", &["true"]).code, 255);
    home.tow(["tunnel", "close", "box"]).ok();
}

/// The toolkit's page has an entry written by hand. `ssh` has the same by itself, and looks at the
/// host's key.
#[test]
fn the_entry_of_the_toolkits_page_is_there_by_itself() {
    let (sshd, home) = (Sshd::start(), home());
    let port = free_port().to_string();
    let fixed = [
        "tunnel",
        "add",
        "gcr1234",
        "--to",
        "gcrazgdl1234",
        "--user",
        "DOMAIN.alice",
        "--open",
        "--port",
        &port,
        "--via-command",
        "--",
    ];
    home.tow(fixed.map(str::to_owned).into_iter().chain(socat(&sshd)))
        .ok();
    let config = home.state().ssh().join("config");
    let said = std::process::Command::new("ssh")
        .arg("-G")
        .arg("-F")
        .arg(&config)
        .arg("tow-gcr1234")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let known = home.state().ssh().join("known_hosts").display().to_string();
    for (key, value) in [
        ("hostname", "127.0.0.1"),
        ("port", &port),
        ("user", "DOMAIN.alice"),
        ("hostkeyalias", "gcrazgdl1234"),
        ("stricthostkeychecking", "accept-new"),
        ("userknownhostsfile", &known),
    ] {
        let fits = |line: &str| {
            line.split_once(' ')
                .is_some_and(|(name, rest)| name == key && rest.split(' ').next() == Some(value))
        };
        assert!(said.lines().any(fits), "{key} {value}: {said}");
    }
    home.tow(["tunnel", "close", "gcr1234"]).ok();
    nothing_is_left(&home);
}

#[test]
fn one_that_ends_at_once_is_told_with_its_words() {
    let home = home();
    let words = [
        "sh",
        "-c",
        "echo ERROR: no bastion here >&2; exit 3",
        "sh",
        "{port}",
    ]
    .map(str::to_owned);
    let (_, output) = add(&home, &words);
    assert_says(
        &output,
        125,
        &[
            "`sh` ended with code 3: no bastion here",
            "tow tunnel ls",
            "tow tunnel close box",
        ],
    );
    assert_eq!(row(&home, "box")["state"], "failing");
    home.tow(["tunnel", "close", "box"]).ok();
    nothing_is_left(&home);
}

#[test]
fn one_that_listens_and_never_answers_is_found() {
    let home = home();
    let words = [
        "socat",
        "TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr",
        "EXEC:sleep 1000",
    ]
    .map(str::to_owned);
    let (_, output) = add(&home, &words);
    assert_says(
        &output,
        125,
        &["`vm1` accepts connections and does not answer"],
    );
    home.tow(["tunnel", "close", "box"]).ok();
    nothing_is_left(&home);
}

#[test]
fn one_that_is_not_there_leaves_nothing() {
    let home = home();
    let (_, output) = add(&home, &["no-such-program".to_owned(), "{port}".to_owned()]);
    assert_says(
        &output,
        121,
        &[
            "the program `no-such-program` is not on this machine",
            "give its whole path",
        ],
    );
    assert_eq!(row(&home, "box")["state"], "closed");
    nothing_is_left(&home);
}

/// A program called `az` that says what the Azure CLI says, word for word.
fn azure(said: &str) -> Home {
    let home = home();
    let folder = home.path("bin");
    fs::create_dir(&folder).unwrap();
    if !said.is_empty() {
        let script = folder.join("az");
        towline_testkit::program(
            &script,
            format!("#!/bin/sh\ncat >&2 <<'X'\n{said}\nX\nexit 1\n"),
        );
    }
    let path = if said.is_empty() {
        folder.display().to_string()
    } else {
        format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
    };
    home.with("PATH", &path)
}

#[test]
fn the_azure_cli_is_understood() {
    let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/GCRAZGDL1234";
    let extension = "ERROR: The command requires the extension bastion. Unable to prompt for \
        extension install confirmation as no tty available. Run 'az config set \
                     extension.use_dynamic_install=yes_without_prompt' to allow installing \
                         extensions without prompt.";
    for (said, code, words) in [
        (
            "",
            121,
            [
                "the program `az` is not on this machine",
                "install-azure-cli",
            ],
        ),
        (
            "ERROR: Please run 'az login' to setup account.",
            123,
            ["the Azure CLI is not signed in", "hint: az login"],
        ),
        (
            extension,
            121,
            [
                "lacks its extension `bastion`",
                "az extension add --name bastion",
            ],
        ),
        (
            &extension.replace("bastion", "ssh"),
            121,
            ["lacks its extension `ssh`", "az extension add --name ssh"],
        ),
        (
            "ERROR: 'tunnel' is misspelled or not recognized by the system.",
            121,
            ["an old Azure CLI has no such command", "az upgrade"],
        ),
    ] {
        let home = azure(said);
        let port = free_port().to_string();
        let output = home.tow([
            "tunnel",
            "add",
            "box",
            "--az-bastion",
            "b",
            "--resource-group",
            "g",
            "--target",
            id,
            "--open",
            "--port",
            &port,
        ]);
        assert_says(&output, code, &words);
        // Nothing of it is tried again: it does not pass by itself.
        assert_eq!(row(&home, "box")["state"], "closed", "{said}");
        nothing_is_left(&home);
    }
}
