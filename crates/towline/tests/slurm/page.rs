//! The page in a real browser, with runs on a real Slurm cluster.

use super::lab::Lab;
use towline_testkit::real::Page;

fn passes(file: &str) {
    let lab = Lab::shared();
    lab.home.write("train.py", "print('trained')\n");
    Page::serve(&lab.home).passes(&lab.home, file, "lab", &[]);
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
