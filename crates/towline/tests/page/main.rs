//! The page in real Chromium, on the shipped binary, with real runs of this machine. With runs on a
//! cluster: `slurm/page.rs`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::fs;
use towline_testkit::Home;
use towline_testkit::real::Page;

/// A home with a folder as its datastore, and code.
fn passes(file: &str) {
    let home = Home::new(env!("CARGO_BIN_EXE_tow")).freezing();
    let store = home.path("nas");
    fs::create_dir_all(&store).unwrap();
    home.configure(&format!(
        "clusters: {{local: {{cpus: 8}}}}\n\
            datastores: {{nas: {{kind: folder, path: '{}'}}}}\n",
        store.display()
    ));
    home.write("train.py", "print('trained')\n");
    Page::serve(&home).passes(&home, file, "local", &[("TOW_STORE", &store)]);
}

#[test]
fn runs_are_seen_changed_and_compared() {
    passes("runs.test.js");
}

#[test]
fn all_about_a_run_is_there() {
    passes("run.test.js");
}

#[test]
fn logs_come_without_gap_or_repeat() {
    passes("logs.test.js");
}

#[test]
fn the_form_submits_what_it_shows() {
    passes("submit.test.js");
}

#[test]
fn data_tunnels_and_workspaces_are_worked_with() {
    passes("places.test.js");
}

#[test]
fn nobody_else_gets_in_and_no_text_of_others_acts() {
    passes("attacks.test.js");
}

#[test]
fn strangers_on_this_machine_and_in_the_browser_are_refused() {
    passes("strangers.test.js");
}

#[test]
fn everybody_can_use_it() {
    passes("a11y.test.js");
}
