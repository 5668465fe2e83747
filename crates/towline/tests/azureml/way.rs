//! The way to the services: through a proxy, past a private authority, without the storage; and
//! what is told while there is none.

use crate::lab::Lab;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use towline_host::process;
use towline_testkit::aml::{Trouble, When};
use towline_testkit::{exposure, until_within};

const ALWAYS: usize = 100_000;

/// A port where nobody listens: what is asked there arrives through the proxy, or not at all.
const NOWHERE: &str = "1";

/// A proxy that knows where `localhost:1` is; every host that was asked for.
struct Proxy {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start(lab: &Lab) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let (told, port) = (
            asked.clone(),
            lab.aml.endpoint().rsplit(':').next().unwrap().to_owned(),
        );
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let (told, port) = (told.clone(), port.clone());
                std::thread::spawn(move || connect(near, &told, &port));
            }
        });
        Self { address, asked }
    }

    fn count(&self) -> usize {
        self.asked
            .lock()
            .unwrap()
            .iter()
            .filter(|host| host.ends_with(&format!(":{NOWHERE}")))
            .count()
    }
}

fn connect(mut near: TcpStream, told: &Mutex<Vec<String>>, port: &str) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if near.read(&mut byte).unwrap_or(0) == 0 {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let Some(host) = head
        .strip_prefix("CONNECT ")
        .and_then(|rest| rest.split(' ').next())
    else {
        return;
    };
    told.lock().unwrap().push(host.to_owned());
    let asked = host.rsplit(':').next().unwrap();
    let port = if asked == NOWHERE { port } else { asked };
    let Ok(mut far) = TcpStream::connect(format!("127.0.0.1:{port}")) else {
        return;
    };
    near.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        .unwrap();
    let (mut near_again, mut far_again) = (near.try_clone().unwrap(), far.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut near_again, &mut far_again);
        let _ = far_again.shutdown(std::net::Shutdown::Write);
    });
    let _ = std::io::copy(&mut far, &mut near);
    let _ = near.shutdown(std::net::Shutdown::Write);
}

/// The lab, with a workspace that only the proxy reaches.
fn behind_a_proxy() -> (Lab, Proxy) {
    let lab = Lab::new();
    let proxy = Proxy::start(&lab);
    let hidden = format!("https://localhost:{NOWHERE}");
    lab.home
        .configure(&lab.aml.configuration().replace(lab.aml.endpoint(), &hidden));
    (lab, proxy)
}

#[test]
fn a_proxy_and_an_authority_of_the_shell_reach_a_daemon_that_was_there_before() {
    let (mut lab, proxy) = behind_a_proxy();
    let authority = lab.aml.authority().to_str().unwrap().to_owned();
    lab.home.unset("SSL_CERT_FILE");
    lab.tow(["run", "-c", "local", "true"]).ok();
    let daemon = lab.home.daemon().unwrap();
    lab.home.set("SSL_CERT_FILE", &authority);
    lab.home.set("HTTPS_PROXY", &proxy.address);
    let id = lab.tow(["submit", "echo", "hello"]).ok().id();
    let record = lab.ended(&id);
    assert_eq!(
        (record["state"].as_str(), lab.log(&id, 1, 0).as_str()),
        (Some("succeeded"), "hello\n"),
        "{record}"
    );
    assert_eq!(lab.home.daemon(), Some(daemon), "the same daemon did it");
    assert!(proxy.count() > 0);
    // The next daemon is started by whoever looks, and goes the same way.
    let long = lab.tow(["submit", "sleep", "300"]).ok().id();
    lab.home.kill_daemon();
    lab.home.unset("HTTPS_PROXY");
    lab.home.unset("SSL_CERT_FILE");
    let before = proxy.count();
    lab.until_word(&long, "Running");
    until_within(60, "the next daemon to ask through the proxy", || {
        lab.tow(["ps"]).ok();
        (proxy.count() > before).then_some(())
    });
}

#[test]
fn a_password_of_a_proxy_is_not_kept_on_disk() {
    let (mut lab, proxy) = behind_a_proxy();
    lab.home.set(
        "https_proxy",
        &proxy.address.replace("http://", "http://me:canary-word@"),
    );
    let id = lab.tow(["submit", "echo", "hello"]).ok().id();
    lab.ended(&id);
    assert!(proxy.count() > 0, "the proxy was used");
    let holding = |needle: &str| -> Vec<PathBuf> {
        let holds = |path: &PathBuf| {
            std::fs::read(path).is_ok_and(|bytes| {
                bytes
                    .windows(needle.len())
                    .any(|part| part == needle.as_bytes())
            })
        };
        exposure::all_below(&lab.home.path("state"))
            .into_iter()
            .filter(|path| path.is_file() && holds(path))
            .collect()
    };
    assert_eq!(holding("canary-word"), Vec::<PathBuf>::new());
    assert!(
        !holding(&format!("localhost:{NOWHERE}")).is_empty(),
        "the search finds the address of the workspace"
    );
}

#[test]
fn a_proxy_that_is_not_there_is_told_with_the_host() {
    let (mut lab, _) = behind_a_proxy();
    lab.home.set("HTTPS_PROXY", "http://127.0.0.1:1");
    let output = lab.tow(["submit", "echo", "hello"]);
    assert!(
        output.code == 125 && output.stderr.contains("localhost:1"),
        "{output:?}"
    );
    assert_eq!(
        lab.tow(["ps", "--json"]).ok().json()["runs"]
            .as_array()
            .map(Vec::len),
        Some(0),
        "nothing was accepted"
    );
}

#[test]
fn storage_that_cannot_be_reached_is_named_by_submit_why_and_doctor() {
    let lab = Lab::new();
    // What the workspace has is known from before, as when a VPN goes off.
    lab.tow(["nodes", "--cluster", "aml"]).ok();
    process::signal(
        i32::try_from(lab.aml.azurite().pid().unwrap()).unwrap(),
        rustix::process::Signal::KILL,
    );
    let host = lab.aml.storage_suffix();
    let begun = Instant::now();
    let submitted = lab.tow(["--json", "submit", "echo", "hello"]).ok();
    assert!(
        begun.elapsed() < Duration::from_secs(40),
        "it took {:?}",
        begun.elapsed()
    );
    assert!(
        submitted.stderr.contains(&host)
            && submitted.stderr.contains("is recorded and will be sent"),
        "{}",
        submitted.stderr
    );
    assert!(
        submitted.stderr.contains("waiting for `aml`"),
        "{}",
        submitted.stderr
    );
    let run = submitted.json()["runs"][0].clone();
    assert!(
        run["stale"].as_str().is_some_and(|why| why.contains(&host)),
        "{run}"
    );
    let why = lab.tow(["why", "@"]).ok();
    assert!(
        format!("{}{}", why.stdout, why.stderr).contains(&host),
        "{why:?}"
    );
    let doctor = lab.tow(["doctor"]);
    assert_eq!(doctor.code, 125, "{doctor:?}");
    let line = doctor
        .stdout
        .lines()
        .find(|line| line.starts_with("cluster aml"))
        .unwrap();
    assert!(line.contains("wrong") && line.contains(&host), "{line}");
}

#[test]
fn a_service_that_is_too_busy_for_long_is_quoted() {
    let lab = Lab::new();
    lab.aml.trouble(
        ALWAYS,
        "PUT",
        "/jobs/mine-",
        Trouble::Status {
            status: 429,
            retry_after: None,
        },
        When::Before,
    );
    let submitted = lab.tow(["submit", "--name", "mine", "echo", "hello"]).ok();
    assert!(
        submitted.stderr.contains("TooManyRequests")
            && submitted.stderr.contains("The service was told to say so"),
        "{}",
        submitted.stderr
    );
    let why = lab.tow(["why", "@"]).ok();
    assert!(
        format!("{}{}", why.stdout, why.stderr).contains("The service was told to say so"),
        "{why:?}"
    );
}

#[test]
fn a_token_that_is_refused_twice_is_no_conflict() {
    let lab = Lab::new();
    lab.aml.trouble(
        ALWAYS,
        "PUT",
        "/jobs/mine-",
        Trouble::Status {
            status: 401,
            retry_after: None,
        },
        When::Before,
    );
    let refused = lab.tow(["submit", "--name", "mine", "echo", "hello"]);
    assert!(
        refused.code == 123 && refused.stderr.contains("The service was told to say so"),
        "{refused:?}"
    );
    assert!(
        refused.stderr.contains("tenant_id") && !refused.stderr.contains("conflict"),
        "{refused:?}"
    );
}
