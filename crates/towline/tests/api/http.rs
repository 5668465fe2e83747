//! Who is answered over HTTP, and who is not.

use super::home;
use super::web::Web;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use towline_testkit::until;

#[test]
fn the_page_is_for_everybody_and_calls_are_for_the_token() {
    let home = home();
    let id = home.tow(["submit", "true"]).ok().id();
    home.wait_for_state(&id, "succeeded");
    let web = Web::new(&home);
    let host = web.host();
    let page = web.raw("GET /", &[("Host", &host)], "");
    assert_eq!(
        (page.status, page.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    assert!(!String::from_utf8_lossy(&page.body).contains(&web.token));
    let answer = web.call("runs.page", &json!({}));
    assert_eq!((answer.status, &answer.json()["total"]), (200, &json!(1)));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    for answer in [&page, &answer] {
        let policy = answer.header("content-security-policy").unwrap();
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(rule), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    assert_eq!(web.interrupt(), 0);
}

#[test]
fn strangers_are_refused_whatever_they_say() {
    let home = home();
    let web = Web::new(&home);
    let (host, token) = (web.host(), web.token.clone());
    let json_type = ("Content-Type", "application/json");
    let good = [("Host", &*host), json_type, ("X-Towline-Token", &*token)];
    let status = |headers: &[(&str, &str)]| web.raw("POST /api/about", headers, "{}").status;
    assert_eq!(status(&good), 200);
    // Without the token, with a wrong one, and with one where others would look for it.
    assert_eq!(status(&good[..2]), 401);
    assert_eq!(status(&[good[0], good[1], ("X-Towline-Token", "0")]), 401);
    let cookie = format!("token={token}; x-towline-token={token}");
    assert_eq!(status(&[good[0], good[1], ("Cookie", &cookie)]), 401);
    let query = format!("POST /api/about?token={token}");
    assert_eq!(web.raw(&query, &good[..2], "{}").status, 401);
    // A name of a stranger that leads to this machine.
    for name in ["evil.example", "evil.example:80", "127.0.0.1"] {
        assert_eq!(status(&[("Host", name), good[1], good[2]]), 421, "{name}");
    }
    let rebound = web.raw("GET /", &[("Host", "evil.example")], "");
    assert_eq!(rebound.status, 421);
    // A page of another origin, even with the token.
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "https://localhost",
    ] {
        assert_eq!(
            status(&[good[0], good[1], good[2], ("Origin", origin)]),
            403,
            "{origin}"
        );
    }
    let cross = ("Sec-Fetch-Site", "cross-site");
    assert_eq!(status(&[good[0], good[1], good[2], cross]), 403);
    // What a form of a strange page can send without being asked for leave.
    for kind in ["text/plain", "application/x-www-form-urlencoded"] {
        assert_eq!(
            status(&[good[0], ("Content-Type", kind), good[2]]),
            415,
            "{kind}"
        );
    }
    // Being asked for leave, it gives none.
    let asked = web.raw(
        "OPTIONS /api/about",
        &[("Host", &host), ("Origin", "http://evil.example")],
        "",
    );
    assert_eq!(
        (asked.status, asked.header("access-control-allow-origin")),
        (405, None)
    );
    // Nothing changes by GET.
    let get = web.raw("GET /api/about", &good, "");
    assert_eq!(get.status, 405);
}

#[test]
fn only_files_of_the_page_are_served() {
    let home = home();
    let web = Web::new(&home);
    let host = web.host();
    for path in [
        "/../Cargo.toml",
        "/..%2f..%2fetc/passwd",
        "/etc/passwd",
        "//etc/passwd",
        "/assets/../index.html",
        "/history.db",
    ] {
        let answer = web.raw(&format!("GET {path}"), &[("Host", &host)], "");
        assert_eq!(answer.status, 404, "{path}");
    }
}

#[test]
fn wrong_arguments_are_the_callers_fault() {
    let home = home();
    let web = Web::new(&home);
    for (call, args, status) in [
        ("runs.page", json!({ "limit": "many" }), 400),
        ("runs.page", json!([]), 400),
        ("nothing", json!({}), 404),
        ("why", json!({ "run": "@" }), 404),
        ("events", json!({}), 406),
        ("logs.read", json!({}), 400),
    ] {
        let answer = web.call(call, &args);
        assert_eq!(answer.status, status, "{call}: {}", answer.json());
        assert!(answer.json()["message"].is_string());
    }
    let host = web.host();
    let headers = [
        ("Host", host.as_str()),
        ("Content-Type", "application/json"),
        ("X-Towline-Token", web.token.as_str()),
    ];
    let long = format!("{{\"filter\":{{\"text\":\"{}\"}}}}", "x".repeat(9 << 20));
    assert_eq!(web.raw("POST /api/runs.page", &headers, &long).status, 413);
    assert_eq!(web.raw("POST /api/runs.page", &headers, "{").status, 400);
}

pub(super) fn begin_stream(web: &Web) -> BufReader<TcpStream> {
    let mut stream = web.connect();
    let (host, token) = (web.host(), &web.token);
    write!(
        stream,
        "POST /api/events HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
            Accept: text/event-stream\r\nX-Towline-Token: {token}\r\nContent-Length: 2\r\n\r\n{{}}"
    )
    .unwrap();
    BufReader::new(stream)
}

pub(super) fn next_data(stream: &mut BufReader<TcpStream>) -> serde_json::Value {
    loop {
        let mut line = String::new();
        assert!(
            stream.read_line(&mut line).unwrap() > 0,
            "the stream goes on"
        );
        if let Some(data) = line.strip_prefix("data: ") {
            return serde_json::from_str(data).unwrap();
        }
    }
}

#[test]
fn a_stream_tells_what_happens_and_ends_with_its_reader() {
    let home = home();
    let web = Web::new(&home);
    let pid = web.pid();
    let threads = || {
        std::fs::read_dir(format!("/proc/{pid}/task"))
            .unwrap()
            .count()
    };
    let mut streams: Vec<_> = (0..20).map(|_| begin_stream(&web)).collect();
    for stream in &mut streams {
        assert_eq!(next_data(stream)["item"]["item"], "begun");
    }
    let id = home.tow(["submit", "true"]).ok().id();
    for stream in &mut streams {
        until("the run to be told", || {
            let told = next_data(stream);
            let runs = told["item"]["runs"].as_array().cloned().unwrap_or_default();
            runs.iter().any(|run| run["id"] == json!(id)).then_some(())
        });
    }
    assert!(threads() >= 20);
    drop(streams);
    // Threads that have nothing to do leave after a while; those of streams at once.
    until("the streams to end", || {
        let answer = web.call("events.logs", &json!({ "stream": "x", "logs": [] }));
        (answer.status == 404).then_some(())
    });
    assert_eq!(web.interrupt(), 0);
}
