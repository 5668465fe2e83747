//! Names, ports, and what is refused before anything happens.

use crate::lab::{assert_says, home, row, rows};
use std::fs;
use std::net::TcpListener;

fn add<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [
        &[
            "tunnel",
            "add",
            "box",
            "--to",
            "gcrazgdl1234",
            "--via",
            "bastion",
        ],
        more,
    ]
    .concat()
}

#[test]
fn a_name_that_exists_is_refused_and_nothing_changes() {
    let home = home();
    home.tow(add(&[])).ok();
    let file = home.path("config/towline/tunnels/box.yaml");
    let before = fs::read(&file).unwrap();
    assert_says(
        &home.tow(add(&["--port", "23333"])),
        123,
        &[
            "tunnel `box` exists already",
            "box.yaml",
            "tow tunnel rm box",
        ],
    );
    assert_eq!(fs::read(&file).unwrap(), before);
    home.configure("tunnels:\n  mine: {to: a, via: b}\n");
    assert_says(
        &home.tow(["tunnel", "add", "mine", "--to", "x", "--via", "y"]),
        123,
        &["config.yaml:2"],
    );
}

#[test]
fn ports_are_the_first_free_ones() {
    let home = home();
    let taken: Vec<TcpListener> = (22222..22224)
        .filter_map(|port| TcpListener::bind(("127.0.0.1", port)).ok())
        .collect();
    let first = home.tow(add(&["--json"])).ok().json()["port"]
        .as_u64()
        .unwrap();
    assert!(first >= 22224, "{first}");
    let second = home
        .tow([
            "tunnel", "add", "other", "--to", "x", "--via", "y", "--json",
        ])
        .ok()
        .json()["port"]
        .as_u64()
        .unwrap();
    assert!(
        second > first,
        "{second} after {first}: a closed tunnel keeps its port"
    );
    drop(taken);
    assert_says(
        &home.tow([
            "tunnel",
            "add",
            "third",
            "--to",
            "x",
            "--via",
            "y",
            "--port",
            &first.to_string(),
        ]),
        123,
        &["is that of tunnel `box`"],
    );
    assert_says(
        &home.tow([
            "tunnel", "add", "third", "--to", "x", "--via", "y", "--port", "80",
        ]),
        121,
        &["not for users"],
    );
}

#[test]
fn names_are_checked_and_unknown_ones_get_a_suggestion() {
    let home = home();
    home.tow(add(&[])).ok();
    for verb in ["open", "close", "rm"] {
        assert_says(
            &home.tow(["tunnel", verb, "bxo"]),
            122,
            &["no tunnel is called `bxo`", "did you mean `box`?"],
        );
    }
    for name in ["-x", "a b", "../up", "node", "x\ny", ".hidden", ""] {
        assert_says(
            &home.tow(["tunnel", "add", "--to", "x", "--via", "y", "--", name]),
            120,
            &[],
        );
    }
    assert_eq!(rows(&home).len(), 1);
    assert_says(&home.tow(["tunnel", "open", "--all", "box"]), 120, &[]);
    assert_says(&home.tow(["tunnel"]), 120, &["include"]);
}

#[test]
fn what_needs_no_tunnel_or_makes_no_sense_is_told() {
    let home = home();
    assert_says(
        &home.tow(["tunnel", "add", "box", "--to", "host"]),
        123,
        &[
            "needs no tunnel: ssh host",
            "--via BASTION",
            "--to host:8888",
        ],
    );
    assert_says(
        &home.tow(["tunnel", "add", "box", "--to", "host:x", "--via", "b"]),
        121,
        &["is not HOST or HOST:PORT"],
    );
    assert_says(
        &home.tow(["tunnel", "add", "box", "--to", "host", "--via", "b;c"]),
        121,
        &["is no hop"],
    );
    assert_says(
        &home.tow([
            "tunnel", "add", "box", "--to", "host", "--via", "b", "--probe", "htp",
        ]),
        120,
        &["did you mean `http`?"],
    );
    assert_says(
        &home.tow([
            "tunnel",
            "add",
            "box",
            "--to",
            "host",
            "--via",
            "b",
            "--ssh-config",
            "nowhere",
        ]),
        121,
        &["there is no file"],
    );
    assert_says(
        &home.tow([
            "tunnel",
            "add",
            "box",
            "--to",
            "host",
            "--via-command",
            "--",
            "az",
        ]),
        121,
        &["has no `{port}`"],
    );
    assert_says(
        &home.tow([
            "tunnel",
            "add",
            "box",
            "--az-bastion",
            "b",
            "--resource-group",
            "g",
            "--target",
            "vm",
        ]),
        120,
        &["is not the id of a resource"],
    );
    assert!(rows(&home).is_empty());
}

#[test]
fn the_preset_for_azure_makes_the_words() {
    let home = home();
    let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/GCRAZGDL1234";
    home.tow([
        "tunnel",
        "add",
        "box",
        "--az-bastion",
        "b",
        "--resource-group",
        "g",
        "--target",
        id,
        "--subscription",
        "s",
        "--user",
        "DOMAIN.me",
    ])
    .ok();
    let text = fs::read_to_string(home.path("config/towline/tunnels/box.yaml")).unwrap();
    let command = format!(
        "command: [az, network, bastion, tunnel, \"--name\", b, \"--resource-group\", \
            g, \"--target-resource-id\", {id}, \"--resource-port\", \
                22, \"--port\", \"{{port}}\", \"--subscription\", s]\n"
    );
    assert_eq!(
        text,
        format!(
            "to: GCRAZGDL1234\nport: {}\nuser: DOMAIN.me\n{command}",
            row(&home, "box")["port"]
        )
    );
    let shown = row(&home, "box");
    assert_eq!(
        (&shown["via"], &shown["to"], &shown["alias"]),
        (&"az".into(), &"GCRAZGDL1234".into(), &"tow-box".into())
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_the_others_work() {
    let home = home();
    home.tow(add(&[])).ok();
    fs::write(
        home.path("config/towline/tunnels/odd.yaml"),
        "to: x\nvai: y\n",
    )
    .unwrap();
    let listed = home.tow(["tunnel", "ls"]).ok();
    assert!(
        listed.stdout.contains("box") && listed.stderr.contains("odd.yaml:2:1: unknown key `vai`"),
        "{listed:?}"
    );
    assert_says(
        &home.tow(["tunnel", "open", "odd"]),
        121,
        &["unknown key `vai`", "did you mean `via`?"],
    );
}

#[test]
fn the_number_of_a_sandbox_chooses_its_bastion() {
    let home = home();
    home.configure("bastions:\n  - {sandboxes: 0-999, via: jump0, user: alice}\n  - \
        {sandboxes: 1000-1115, name: bastion1, resource_group: group1, subscription: sub1, user: DOMAIN.me}\n");
    let added = home
        .tow([
            "tunnel",
            "add",
            "--sandbox",
            "1010",
            "--port",
            "22345",
            "--json",
        ])
        .ok()
        .json();
    assert_eq!(
        (&added["name"], &added["port"], &added["to"]),
        (&"gcr1010".into(), &22345.into(), &"GCRAZGDL1010".into())
    );
    let text = fs::read_to_string(home.path("config/towline/tunnels/gcr1010.yaml")).unwrap();
    assert!(
        text.contains("az, network, bastion, tunnel")
            && text.contains("virtualMachines/GCRAZGDL1010")
            && text.contains("user: DOMAIN.me"),
        "{text}"
    );
    home.tow([
        "tunnel",
        "add",
        "near",
        "--sandbox",
        "0123",
        "--user",
        "bob",
    ])
    .ok();
    let near = fs::read_to_string(home.path("config/towline/tunnels/near.yaml")).unwrap();
    assert!(
        near.contains("to: GCRAZGDL0123")
            && near.contains("via: jump0")
            && near.contains("user: bob"),
        "{near}"
    );
    assert_says(
        &home.tow(["tunnel", "add", "--sandbox", "1500"]),
        121,
        &[
            "no bastion of the configuration leads to sandbox 1500",
            "0-999, 1000-1115",
        ],
    );
    assert_says(
        &home.tow(["tunnel", "add", "--sandbox", "12x4"]),
        120,
        &["not the number of a sandbox"],
    );
    assert_says(
        &home.tow(["tunnel", "add", "x", "--sandbox", "1010", "--via", "b"]),
        120,
        &["--via"],
    );
    assert_says(&home.tow(["tunnel", "add", "--to", "x"]), 120, &["NAME"]);
    assert_eq!(rows(&home).len(), 2);
}
