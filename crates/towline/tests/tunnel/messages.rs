//! Every reason why a tunnel does not open, each in words that say what to do.

use crate::lab::{
    alive, assert_says, changed_config, free_port, home, hosts, nothing_is_left, row, until_state,
};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use towline_testkit::real::Sshd;
use towline_testkit::{Home, Output, exposure};

fn define(home: &Home, via: &str, ssh_config: Option<&Path>) -> u16 {
    let port = free_port();
    let own = ssh_config
        .map(|path| format!(", ssh_config: {}", path.display()))
        .unwrap_or_default();
    home.configure(&format!(
        "tunnels:\n  box: {{to: localhost, via: '{via}', port: {port}{own}}}\n"
    ));
    port
}

/// Refused for good: the exit code says so, and nothing is left that tries again.
#[track_caller]
fn nothing_came_of_it(home: &Home) {
    assert_eq!(row(home, "box")["state"], "closed");
    nothing_is_left(home);
}

#[test]
fn a_port_in_use_is_told_with_its_owner() {
    let (sshd, home) = (Sshd::start(), home());
    let port = define(&home, sshd.host(), Some(&sshd.config()));
    let taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let own = fs::read_to_string("/proc/self/comm")
        .unwrap()
        .trim()
        .to_owned();
    let who = format!(
        "port {port} of this machine is in use by `{own}` (process {})",
        std::process::id()
    );
    assert_says(&home.tow(["tunnel", "open", "box"]), 123, &[&who, "--port"]);
    nothing_came_of_it(&home);
    drop(taken);
}

#[test]
fn keys_that_are_missing_or_not_let_in() {
    let (sshd, home) = (Sshd::start(), home());
    define(&home, sshd.host(), Some(&sshd.strange_config()));
    assert_says(
        &home.tow(["tunnel", "open", "box"]),
        123,
        &[
            "does not let you in",
            "strange_key",
            "your public key has to be known there: add it at `login`",
        ],
    );
    nothing_came_of_it(&home);
    let gone = changed_config(&home, &sshd.config(), "no_key", |text| {
        text.replace("/key\n", "/gone\n")
    });
    define(&home, sshd.host(), Some(gone.as_ref()));
    assert_says(
        &home.tow(["tunnel", "open", "box"]),
        121,
        &[
            "/gone is not there, and `login`",
            "ssh-keygen -t ed25519 -f",
            "public half",
        ],
    );
    nothing_came_of_it(&home);
    // A program in the place of ssh that is told no, by a server that would also ask a person.
    let ssh = home.path("programs/ssh");
    fs::create_dir_all(ssh.parent().unwrap()).unwrap();
    let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("ssh"))
        .find(|path| path.is_file())
        .unwrap();
    let says = "no such identity: /home/me/gone: No such file or directory\nme@login: Permission \
        denied (publickey,keyboard-interactive).";
    towline_testkit::program(
        &ssh,
        format!(
            "#!/bin/sh\ncase \" $* \" in *' -G '*) exec {} \"$@\" ;; esac\necho '{says}' >&2\nexit \
                255\n",
            real.display()
        ),
    );
    let path = format!(
        "{}:{}",
        ssh.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let refused: Output = home
        .command(["tunnel", "open", "box"])
        .env("PATH", path)
        .output()
        .unwrap()
        .into();
    assert_says(
        &refused,
        121,
        &[
            "the key /home/me/gone that your ssh configuration names is not there",
            "a second factor",
            "ssh-keygen",
        ],
    );
}

#[test]
fn a_host_key_that_has_changed() {
    let (mut sshd, home) = (Sshd::start(), home());
    define(&home, sshd.host(), Some(&sshd.config()));
    let port = sshd.port();
    home.configure(
        &fs::read_to_string(home.path("config/towline/config.yaml"))
            .unwrap()
            .replace(
                "to: localhost",
                &format!("probe: ssh, to: 'localhost:{port}'"),
            ),
    );
    home.tow(["tunnel", "open", "box"]).ok();
    home.tow(["tunnel", "close", "box"]).ok();
    sshd.new_host_key();
    assert_says(
        &home.tow(["tunnel", "open", "box"]),
        123,
        &[
            "shows another host key than the one in",
            "ssh-keygen -f",
            "ask whoever runs it",
        ],
    );
    nothing_came_of_it(&home);
}

#[test]
fn hosts_that_are_unknown_refuse_or_do_not_answer() {
    let (mut sshd, home) = (Sshd::start(), home());
    define(&home, "no-such-host.invalid", None);
    assert_says(
        &home.tow(["tunnel", "open", "box"]),
        121,
        &[
            "there is no host called `no-such-host.invalid`",
            "ssh configuration",
        ],
    );
    nothing_came_of_it(&home);
    sshd.stop();
    define(&home, sshd.host(), Some(&sshd.config()));
    assert_says(
        &home.tow(["tunnel", "open", "box"]),
        125,
        &[
            "refuses connections",
            "is its ssh server running",
            "tow tunnel close box",
        ],
    );
    // That may pass: it is tried again, and comes up by itself.
    let failing = until_state(&home, "box", "failing");
    assert!(
        failing["reason"]
            .as_str()
            .unwrap()
            .contains("refuses connections"),
        "{failing}"
    );
    home.tow(["tunnel", "close", "box"]).ok();
    define(&home, "10.255.255.1", None);
    assert_says(
        &home.tow(["tunnel", "open", "box"]),
        125,
        &["does not answer", "VPN"],
    );
    home.tow(["tunnel", "close", "box"]).ok();
    nothing_is_left(&home);
}

#[test]
fn it_opens_by_itself_when_the_host_is_back() {
    let (mut sshd, home) = (Sshd::start(), home());
    let port = define(&home, sshd.host(), Some(&sshd.config()));
    home.configure(&format!(
        "tunnels:\n  box: {{to: 'localhost:{}', via: login, probe: ssh, port: {port}, ssh_config: \
            {}}}\n",
        sshd.port(),
        sshd.config().display()
    ));
    sshd.stop();
    assert_eq!(home.tow(["tunnel", "open", "box"]).code, 125);
    sshd.restart();
    until_state(&home, "box", "open");
    home.tow(["tunnel", "close", "box"]).ok();
    nothing_is_left(&home);
}

#[test]
fn what_the_last_hop_says_of_the_target() {
    let (slurm, home) = (hosts(), home());
    let config = slurm.ssh_config();
    for (to, code, words) in [
        (
            "no-such-node",
            121,
            "`login` knows no host called `no-such-node`",
        ),
        ("c1:2200", 125, "`c1` refuses connections at port 2200"),
        (
            "ctl:6817",
            125,
            "`ctl` accepts connections and does not answer",
        ),
    ] {
        home.configure(&format!(
            "tunnels:\n  box: {{to: '{to}', via: login, probe: ssh, port: {}, ssh_config: {}}}\n",
            free_port(),
            config.display()
        ));
        assert_says(&home.tow(["tunnel", "open", "box"]), code, &[words]);
        assert_eq!(
            row(&home, "box")["state"],
            if code == 121 { "closed" } else { "failing" }
        );
        home.tow(["tunnel", "close", "box"]).ok();
    }
    nothing_is_left(&home);
}

#[test]
fn ssh_that_is_not_installed() {
    let home = home();
    fs::create_dir(home.path("empty")).unwrap();
    let path = home.path("empty").display().to_string();
    let home = home.with("PATH", &path);
    define(&home, "bastion", None);
    assert_says(
        &home.tow(["tunnel", "open", "box"]),
        121,
        &[
            "the program `ssh` is not on this machine",
            "apt install openssh-client",
        ],
    );
    nothing_came_of_it(&home);
}

/// ssh looks for its configuration in the home that the machine's list of users names: one is put
/// in its place, for `tow` alone.
#[test]
fn a_configuration_of_ssh_that_others_may_write_to() {
    let home = home();
    let real = std::env::home_dir().unwrap();
    fs::create_dir_all(home.path("own/.ssh")).unwrap();
    fs::write(home.path("own/.ssh/config"), "Host x\n").unwrap();
    fs::set_permissions(
        home.path("own/.ssh/config"),
        fs::Permissions::from_mode(0o666),
    )
    .unwrap();
    define(&home, "bastion", None);
    let tow = home.command(["tunnel", "open", "box"]);
    let mut command = Command::new("unshare");
    command
        .args([
            "--mount",
            "sh",
            "-c",
            "mount --bind \"$1\" \"$2\" && shift 2 && exec \"$@\"",
            "sh",
        ])
        .arg(home.path("own"))
        .arg(&real);
    command
        .arg(tow.get_program())
        .args(tow.get_args())
        .current_dir(home.project())
        .env_clear();
    for (name, value) in tow
        .get_envs()
        .filter_map(|(name, value)| value.map(|value| (name, value)))
    {
        command.env(name, value);
    }
    let output = Output::from(command.output().unwrap());
    let file = real.join(".ssh/config").display().to_string();
    assert_says(
        &output,
        121,
        &[
            &format!("ssh does not use {file}: it is not yours, or others may write to it"),
            &format!("chmod 600 {file}"),
        ],
    );
    nothing_came_of_it(&home);
}

#[test]
fn a_hop_that_forwards_nothing() {
    let (sshd, home) = (Sshd::start_with("AllowTcpForwarding no"), home());
    define(&home, sshd.host(), Some(&sshd.config()));
    assert_says(
        &home.tow(["tunnel", "open", "box"]),
        123,
        &[
            "`login` does not allow connections to `localhost` port 22",
            "AllowTcpForwarding",
        ],
    );
    nothing_came_of_it(&home);
}

/// The port is this machine's alone, and the sockets behind it are the user's alone.
#[test]
fn nobody_else_reaches_what_an_open_tunnel_listens_on() {
    let (sshd, mut home) = (Sshd::start(), home());
    // Short enough for the sockets of ssh.
    let runtime = home.path("r");
    home.set("XDG_RUNTIME_DIR", runtime.to_str().unwrap());
    let port = free_port();
    let (via, there, config) = (sshd.host(), sshd.port(), sshd.config());
    home.configure(&format!(
        "tunnels:\n  box: {{to: 'localhost:{there}', via: '{via}', probe: ssh, \
        port: {port}, ssh_config: {}}}\n",
        config.display()
    ));
    home.tow_with_open_umask(["tunnel", "open", "box"]).ok();
    let sockets = exposure::sockets(&home.path(""));
    for folder in [home.state().tunnel("box"), runtime] {
        assert!(
            sockets.iter().any(|path| path.starts_with(&folder)),
            "{}: {sockets:?}",
            folder.display()
        );
    }
    for socket in &sockets {
        assert_eq!(
            exposure::mode(socket.parent().unwrap()),
            Some(0o700),
            "{}",
            socket.display()
        );
    }
    let addresses: Vec<String> = alive(&home)
        .into_iter()
        .flat_map(|(pid, _)| exposure::listens_at(pid))
        .collect();
    assert!(
        addresses.contains(&format!("0100007F:{port:04X}")),
        "{addresses:?}"
    );
    let is_loopback = |address: &&String| {
        address.starts_with("0100007F:") || address.starts_with("00000000000000000000000001000000:")
    };
    assert_eq!(
        addresses
            .iter()
            .filter(|address| !is_loopback(address))
            .count(),
        0,
        "{addresses:?}"
    );
    home.tow(["tunnel", "close", "box"]).ok();
    nothing_is_left(&home);
}
