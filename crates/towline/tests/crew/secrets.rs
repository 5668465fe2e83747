//! Secrets of a run, in a vault that the job's identity may read.

use crate::lab::Lab;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use towline_core::reason::Cause;
use towline_wire::crew::SecretPlace;

/// An identity and a vault behind one port, and the heads of what they were asked.
struct Vault {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Vault {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heads = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n")
                    && stream.read(&mut byte).is_ok_and(|count| count == 1)
                {
                    head.push(byte[0]);
                }
                let head = String::from_utf8(head).unwrap().to_lowercase();
                let (status, body) = match head.split(' ').nth(1).unwrap_or_default() {
                    path if path.starts_with("/token?") => {
                        ("200 OK", r#"{"access_token":"a-token"}"#)
                    }
                    path if path.starts_with("/secrets/run-pat?") => {
                        ("200 OK", r#"{"value":"canary"}"#)
                    }
                    _ => ("403 Forbidden", r#"{"error":{"code":"Forbidden"}}"#),
                };
                heads.lock().unwrap().push(head);
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
            }
        });
        Self { address, asked }
    }

    fn lab(&self, script: &str, key: &str) -> Lab {
        let mut lab = Lab::new(script).with(|resolved| resolved.secrets = vec!["PAT".into()]);
        let names = [("PAT".into(), key.to_owned())].into();
        lab.order.secrets = Some(SecretPlace {
            vault: self.address.clone(),
            names,
            client_id: Some("who".into()),
        });
        lab.variables.push((
            "IDENTITY_ENDPOINT".into(),
            format!("{}/token", self.address),
        ));
        lab.variables
            .push(("IDENTITY_HEADER".into(), "a-header".into()));
        lab
    }
}

#[test]
fn a_secret_comes_from_the_vault_by_the_jobs_identity() {
    let vault = Vault::open();
    let lab = vault.lab("[ \"$PAT\" = canary ]", "run-pat");
    assert_eq!(lab.all(), [0], "{:?}", lab.endings());
    let asked = vault.asked.lock().unwrap();
    assert!(
        asked[0].contains("client_id=who") && asked[0].contains("x-identity-header: a-header"),
        "{asked:?}"
    );
    assert!(
        asked[1].contains("authorization: bearer a-token"),
        "{asked:?}"
    );
}

#[test]
fn a_secret_that_is_not_given_keeps_the_run_from_starting() {
    let vault = Vault::open();
    let lab = vault.lab("touch \"$LAB/began\"", "not-ours");
    assert_eq!(lab.all(), [1]);
    let ending = &lab.endings()[0];
    assert_eq!(ending.cause, Some(Cause::NotStarted));
    let detail = ending.detail.as_ref().unwrap();
    assert!(
        detail.contains("not-ours") && detail.contains("403") && !detail.contains("token"),
        "{detail}"
    );
    assert!(!lab.path("began").exists());
}
