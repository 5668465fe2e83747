//! An S3 server of another author, on loopback, with one bucket. It does not check signatures.

use super::server::{Recipe, Server};
use super::{ObjectClient, http, parts};
use std::ffi::OsString;

const BUCKET: &str = "towtest";

#[derive(Debug)]
pub struct S3Server {
    server: Server,
}

impl S3Server {
    #[track_caller]
    pub fn start() -> Self {
        let program = parts::file("python/bin/python");
        let words = move |port: u16| {
            let mut words: Vec<OsString> = vec![program.clone().into()];
            words.extend(
                ["-I", "-m", "moto.server", "--host", "127.0.0.1", "--port"].map(Into::into),
            );
            words.push(port.to_string().into());
            words
        };
        let server = Self {
            server: Server::start(Recipe {
                words: Box::new(words),
                variables: Vec::new(),
                ready_text: "Running on",
            }),
        };
        let answer =
            http::request("PUT", &format!("{}/{BUCKET}", server.endpoint()), &[], b"").unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        server
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.server.port())
    }
    pub fn bucket(&self) -> &'static str {
        BUCKET
    }
    pub fn access_key(&self) -> &'static str {
        "AKIATOWTESTTOWTEST00"
    }
    pub fn secret_key(&self) -> &'static str {
        "nobody checks this one"
    }

    /// Amazon's own client.
    pub fn client(&self) -> ObjectClient {
        let endpoint = self.endpoint();
        let options = [
            "--url",
            &endpoint,
            "--access-key",
            self.access_key(),
            "--secret-key",
            self.secret_key(),
        ];
        ObjectClient {
            options: options.map(Into::into).into(),
        }
    }

    pub fn kill(&mut self) {
        self.server.kill();
    }
}
