//! Several hops that the user's own configuration does not connect.

use crate::lab::{banner, changed_config, free_port, home, hosts, nothing_is_left, row, ssh};
use std::fs;

#[test]
fn through_the_bastion_then_the_login_host_to_a_node() {
    let (slurm, home) = (hosts(), home());
    let config = changed_config(&home, &slurm.ssh_config(), "plain config", |text| {
        text.replace("  ProxyJump bastion\n", "")
    });
    let port = free_port();
    let words = [
        "tunnel",
        "add",
        "inner",
        "--to",
        "c1",
        "--via",
        "bastion,login",
        "--ssh-config",
        &config,
        "--open",
        "--port",
        &port.to_string(),
    ];
    home.tow(words).ok();
    assert!(banner(port).is_some());
    assert_eq!(ssh(&home, "tow-inner", &["hostname"]).ok().stdout, "c1\n");
    assert_eq!(row(&home, "inner")["via"], "bastion, login");
    let made = fs::read_to_string(home.state().tunnel("inner").join("ssh_config")).unwrap();
    assert!(
        made.contains("Host login\n  ProxyJump bastion\n")
            && made.contains(&format!("Include \"{config}\"")),
        "{made}"
    );
    // The login host is found again where only the bastion knows it.
    slurm.drop_connections();
    towline_testkit::until("it to be back", || banner(port));
    home.tow(["tunnel", "close", "inner"]).ok();
    nothing_is_left(&home);
}

/// A page that only the host itself can reach: no hop but the host.
#[test]
fn a_page_on_the_hosts_own_loopback() {
    let (slurm, home) = (hosts(), home());
    let mut server = slurm
        .command(
            "c1",
            "alice",
            [
                "python3",
                "-m",
                "http.server",
                "8888",
                "--bind",
                "127.0.0.1",
            ],
        )
        .spawn()
        .unwrap();
    let listens = "import socket; socket.create_connection(('127.0.0.1', 8888), 1)";
    towline_testkit::until("the page to be there", || {
        (slurm.exec("c1", "alice", ["python3", "-c", listens]).code == 0).then_some(())
    });
    let port = free_port();
    home.configure(&format!(
        "tunnels:\n  page: {{to: 'c1:8888', port: {port}, probe: http, ssh_config: {}}}\n",
        slurm.ssh_config().display()
    ));
    let opened = home.tow(["tunnel", "open", "page"]).ok();
    assert!(
        opened
            .stderr
            .contains(&format!("127.0.0.1:{port} leads to c1:8888")),
        "{opened:?}"
    );
    let page = std::process::Command::new("curl")
        .args(["-s", "-o", "/dev/null", "-w", "%{http_code}"])
        .arg(format!("http://127.0.0.1:{port}/"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&page.stdout), "200");
    home.tow(["tunnel", "close", "page"]).ok();
    nothing_is_left(&home);
    server.kill().unwrap();
    server.wait().unwrap();
}
