//! The interface keeps what its own description says, for any arguments: calls made from the
//! OpenAPI document by schemathesis, in a home of its own with a folder as its datastore.

use super::home;
use super::web::Web;
use std::process::{Command, Stdio};
use towline_testkit::campaign::{is_soak, seed};
use towline_testkit::real::part;

/// Calls for each of the about 70 operations.
const CALLS_EACH: u32 = 15;
const CALLS_EACH_IN_SOAK: u32 = 160;

/// The server answers each within this, because nothing here is far away.
const ANSWER_SECONDS: &str = "60";

#[test]
fn no_arguments_break_it_and_every_answer_is_as_described() {
    let home = home();
    let store = home.path("nas");
    std::fs::create_dir_all(&store).unwrap();
    // Room for all that is held: `alloc` answers when its nodes are there.
    home.configure(&format!(
        "clusters: {{local: {{cpus: 2000, memory: 900G}}}}\ndatastores: {{nas: {{kind: folder, path: '{}'}}}}\n\
            folders: {{data: {{datastore: nas, path: d}}}}\n",
        store.display()
    ));
    home.write("train.py", "print('hello')\n");
    for name in ["first", "second"] {
        let id = home.tow(["submit", "--name", name, "true"]).ok().id();
        home.wait_for_state(&id, "succeeded");
    }
    let web = Web::new(&home);
    let document = home.tow(["api", "--openapi"]).ok();
    let description = home.write("openapi.json", &document.stdout);
    let each = if is_soak() {
        CALLS_EACH_IN_SOAK
    } else {
        CALLS_EACH
    };
    // Its program in `bin` contains the path of the folder before it was renamed.
    let main = "from schemathesis.cli import schemathesis; schemathesis()";
    let output = Command::new(part("schemathesis/bin/python"))
        .args(["-c", main, "run"])
        .arg(&description)
        .args(["--url", &format!("http://{}", web.host())])
        .args(["--header", &format!("X-Towline-Token: {}", web.token)])
        // The stream of events has no end; it has tests of its own.
        .args(["--exclude-path", "/api/events"])
        .args([
            "--checks",
            "not_a_server_error,response_schema_conformance,content_type_conformance",
        ])
        .args([
            "--phases",
            "fuzzing",
            "--workers",
            "2",
            "--continue-on-failure",
        ])
        .args(["--suppress-health-check", "all", "--warnings", "off"])
        .args(["--request-timeout", ANSWER_SECONDS])
        .args(["--seed", &seed().to_string()])
        .args(["--max-examples", &each.to_string()])
        .current_dir(home.path("home"))
        .env("HOME", home.path("home"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let made = said.lines().find(|line| line.contains(" generated, "));
    let made = made.unwrap_or_else(|| panic!("it called nothing: {said}"));
    let count: u32 = made.trim().split(' ').next().unwrap().parse().unwrap();
    assert!(count >= each * 40, "too few calls: {made}");
    println!("described: {}", made.trim());
}
