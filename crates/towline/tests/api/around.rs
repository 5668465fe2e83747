//! What the stream tells beside the runs: transfers, tunnels, workspaces.

use super::client::Client;
use super::home;
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::TcpListener;
use std::process::Stdio;
use towline_testkit::{Home, until};

/// A stream, and a look at its items until one fits.
struct Watcher {
    client: Client,
    stream: u64,
}

impl Watcher {
    fn new(home: &Home) -> Self {
        let mut client = Client::new(home);
        let stream = client.begin("events", &json!({}));
        assert_eq!(client.next(stream).unwrap()["item"]["item"], "begun");
        Self { client, stream }
    }

    /// The first entry of `list`, in an item of that kind, that fits.
    fn find(&mut self, kind: &str, list: &str, fits: impl Fn(&Value) -> bool) -> Value {
        until(kind, || {
            let reply = self.client.next(self.stream).expect("the stream goes on");
            let item = &reply["item"];
            if item["item"] != kind {
                return None;
            }
            let entries = item[list].as_array().unwrap();
            entries.iter().find(|entry| fits(entry)).cloned()
        })
    }
}

#[test]
fn a_transfer_of_another_process_is_told_and_its_end_too() {
    let home = home();
    // A service that takes everything and answers nothing: the transfer goes on for as long as the
    // test wants.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    home.configure(&format!(
        "datastores: {{far: {{kind: s3, bucket: b, endpoint: 'http://127.0.0.1:{port}', \
            credential: {{access_key_id: 'env:K', secret_access_key: 'env:K'}}}}}}\n\
        folders: {{data: {{datastore: far, path: x}}}}\n"
    ));
    home.write("data/a.bin", &"7".repeat(5 << 20));
    let mut watcher = Watcher::new(&home);
    for end in ["INT", "KILL"] {
        let mut transfer = home
            .command(["up", "data"])
            .env("K", "key")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let told = watcher.find("transfers", "transfers", |_| true);
        assert_eq!(
            (told["path"].as_str(), told["direction"].as_str()),
            (Some("data"), Some("up")),
            "{told}"
        );
        assert!(told["progress"]["bytes"].as_u64().unwrap() < 5 << 20);
        let signal = match end {
            "INT" => rustix::process::Signal::INT,
            _ => rustix::process::Signal::KILL,
        };
        rustix::process::kill_process(rustix::process::Pid::from_child(&transfer), signal).unwrap();
        transfer.wait().unwrap();
        let id = told["id"].clone();
        watcher.find("transfers", "over", |over| *over == id);
    }
}

#[test]
fn a_tunnel_is_told_from_its_opening_to_its_closing() {
    let home = home();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = nobody.local_addr().unwrap().port();
    drop(nobody);
    let hosts = format!("Host bastion\n  HostName 127.0.0.1\n  Port {port}\n");
    let hosts = home.write("ssh_config", &hosts);
    let hosts = hosts.to_str().unwrap();
    let words = [
        "tunnel",
        "add",
        "box",
        "--to",
        "c1:80",
        "--via",
        "bastion",
        "--ssh-config",
        hosts,
    ];
    home.tow(words).ok();
    let mut watcher = Watcher::new(&home);
    home.tow(["tunnel", "open", "box", "--no-wait"]);
    let told = watcher.find("tunnels", "tunnels", |told| told["state"] == "failing");
    assert_eq!(told["name"], "box");
    assert!(told["reason"].as_str().is_some_and(|why| !why.is_empty()));
    home.tow(["tunnel", "close", "box"]).ok();
    let told = watcher.find("tunnels", "tunnels", |told| told["state"] == "closed");
    assert_eq!(
        (&told["name"], &told["port"]),
        (&json!("box"), &Value::Null)
    );
}

#[test]
fn backups_of_a_workspace_are_told() {
    let home = home();
    let place = home.path("scratch");
    home.tow([
        "scratch".as_ref(),
        "create".as_ref(),
        "work".as_ref(),
        "--path".as_ref(),
        place.as_os_str(),
        "--to".as_ref(),
        home.path("backups").as_os_str(),
    ])
    .ok();
    let mut file = std::fs::File::create(place.join("notes")).unwrap();
    file.write_all(b"first").unwrap();
    let mut watcher = Watcher::new(&home);
    home.tow(["scratch", "backup", "work"]).ok();
    let told = watcher.find("workspaces", "workspaces", |told| !told["good"].is_null());
    assert_eq!(
        (&told["name"], &told["trouble"]),
        (&json!("work"), &Value::Null)
    );
    std::fs::remove_dir_all(&place).unwrap();
    home.tow(["scratch", "backup", "work"]);
    let told = watcher.find("workspaces", "workspaces", |told| {
        !told["trouble"].is_null()
    });
    assert!(told["trouble"].as_str().unwrap().contains("is not there"));
}
