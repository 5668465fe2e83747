//! The sessions of the pages on this machine are run, and print what the pages show. Those of
//! Slurm, Azure ML and tunnels are in the suites that have such clusters and hosts.
#![allow(clippy::unwrap_used)]

use towline_testkit::Home;
use towline_testkit::console::{Reader, Setting, read_page};

#[track_caller]
fn read(page: &str) {
    read_page(page, Setting::Local, || {
        Reader::new(Home::new(env!("CARGO_BIN_EXE_tow")))
    });
}

#[test]
fn the_readme() {
    read("README.md");
}

#[test]
fn first_steps() {
    read("docs/guide/first-steps.md");
}

#[test]
fn when_things_fail() {
    read("docs/guide/failures.md");
}

#[test]
fn sweeps() {
    read("docs/guide/sweeps.md");
}

#[test]
fn the_job_file() {
    read("docs/guide/job-file.md");
}

#[test]
fn code() {
    read("docs/guide/code.md");
}

#[test]
fn data() {
    read("docs/guide/data.md");
}

#[test]
fn images() {
    read("docs/guide/images.md");
}

#[test]
fn workspaces() {
    read("docs/guide/workspaces.md");
}

#[test]
fn secrets() {
    read("docs/concepts/secrets.md");
}

#[test]
fn the_local_cluster() {
    read("docs/concepts/local-cluster.md");
}

#[test]
fn runs_and_states() {
    read("docs/concepts/runs-and-states.md");
}

#[test]
fn configuration() {
    read("docs/reference/configuration.md");
}

#[test]
fn environment() {
    read("docs/reference/environment.md");
}

#[test]
fn exit_codes() {
    read("docs/reference/exit-codes.md");
}
