//! Thousands of jobs: what is asked of the service grows with the pages of its lists, and nothing
//! else does.

use crate::lab::Lab;
use std::process::Stdio;
use std::time::{Duration, Instant};
use towline_testkit::aml::{Trouble, When};
use towline_testkit::{Home, Output, until_within};

const JOBS: usize = 2_000;
/// Entries on a page of the service.
const PAGE: usize = 50;
const PAGES: usize = JOBS / PAGE;
/// The service is not asked again sooner than this, whatever the number of jobs.
const ASK: Duration = Duration::from_secs(4);
/// Of the daemon, followed run and all; a build that is not stripped brings itself along.
const MOST_MEGABYTES: u64 = 128;

/// What was asked of the service, by kind.
#[derive(Debug, Default, PartialEq, Clone, Copy)]
struct Asked {
    put: usize,
    cancelled: usize,
    /// First pages of the daemon's lists, and all of them.
    lists: usize,
    pages: usize,
    /// Pages of a list for people.
    remote: usize,
    /// One job each.
    single: usize,
    history: usize,
    other: usize,
}

fn so_far(lab: &Lab) -> Asked {
    let mut asked = Asked::default();
    for (method, target) in lab.aml.asked() {
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let of_job = path.rsplit('/').nth(1) == Some("jobs");
        match method.as_str() {
            "PUT" if of_job => asked.put += 1,
            "POST" if path.ends_with("/cancel") => asked.cancelled += 1,
            "GET" if path.ends_with("/jobs") && query.contains("listViewType=All") => {
                asked.pages += 1;
                asked.lists += usize::from(!query.contains("skip="));
            }
            "GET" if path.ends_with("/jobs") => asked.remote += 1,
            "GET" if of_job => asked.single += 1,
            "GET" if path.starts_with("/history/") => asked.history += 1,
            _ => asked.other += 1,
        }
    }
    asked
}

/// Waits for the end of a list that begins after so many; when it began, and all that was asked by
/// then.
fn next_list(lab: &Lab, after: usize) -> (Instant, Asked) {
    until_within(60, "the daemon to ask again", || {
        (so_far(lab).lists > after).then_some(())
    });
    let begun = Instant::now();
    let asked = until_within(60, "all pages", || {
        Some(so_far(lab)).filter(|asked| asked.pages == asked.lists * PAGES)
    });
    (begun, asked)
}

fn resident_megabytes(home: &Home) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", home.daemon().unwrap())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

/// Listings of blobs, and every other request for one, that came since.
fn blobs_since(lab: &Lab, before: usize) -> (usize, usize) {
    let seen = lab.aml.azurite().seen();
    let listings = seen[before..]
        .iter()
        .filter(|asked| asked.contains("comp=list"))
        .count();
    (listings, seen.len() - before - listings)
}

#[test]
fn two_thousand_jobs_are_looked_after_with_forty_calls() {
    let lab = Lab::new();
    lab.aml.conditions(|conditions| conditions.asleep = true);
    let sweep = lab.home.submit_file(
        &format!("name: many\nsweep: {{i: 1-{JOBS}}}\nscript: echo ${{{{i}}}}\n"),
        &[],
    );
    let (_, asked) = next_list(&lab, 0);
    assert_eq!(asked.put, JOBS, "one call for each job: {asked:?}");
    assert_eq!(
        (asked.single, asked.history, asked.cancelled),
        (0, 0, 0),
        "{asked:?}"
    );
    assert!(
        asked.other <= 20,
        "what a submission needs does not grow with its runs: {asked:?}"
    );
    let queued = lab.tow(["ps", &sweep, "--all", "--json"]).ok().json();
    let queued = queued["runs"].as_array().unwrap();
    assert!(
        queued.len() == JOBS && queued.iter().all(|run| run["state"] == "queued"),
        "{} runs",
        queued.len()
    );

    // Left alone: pages of one list at a time, further and further apart.
    let (blobs, begun) = (lab.aml.azurite().seen().len(), Instant::now());
    let (second, asked) = next_list(&lab, asked.lists);
    let (third, after) = next_list(&lab, asked.lists);
    assert!(third - second >= ASK, "{:?}", third - second);
    assert_eq!(
        Asked {
            lists: asked.lists + 1,
            pages: asked.pages + PAGES,
            ..asked
        },
        after,
        "nothing but one list's pages"
    );
    let (listings, others) = blobs_since(&lab, blobs);
    let looks = 2 + usize::try_from(begun.elapsed().as_secs()).unwrap();
    assert!(
        listings <= looks && others == 0,
        "one listing of news for all of them and look: {listings} in {looks} s, {others}"
    );

    // What people ask.
    until_within(60, "`tow ps` to be told without a call", || {
        let before = lab.aml.asked().len();
        lab.tow(["ps"]).ok();
        (lab.aml.asked().len() == before).then_some(())
    });
    let before = so_far(&lab).remote;
    let shown = lab.tow(["ps", "--remote"]).ok().stdout;
    assert_eq!(
        (shown.lines().count(), so_far(&lab).remote - before),
        (JOBS + 1, PAGES)
    );

    follow_one(&lab, &format!("{sweep}-7"));
    let megabytes = resident_megabytes(&lab.home);
    assert!(megabytes < MOST_MEGABYTES, "{megabytes} MB");
    abort_all(&lab, &sweep);
}

/// Who follows one run's log asks for that run alone, and the service no sooner.
fn follow_one(lab: &Lab, run: &str) {
    let blobs = lab.aml.azurite().seen().len();
    let before = so_far(lab);
    let mut follower = lab
        .home
        .command(["logs", "-f", run])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let (_, asked) = next_list(lab, before.lists);
    let (_, after) = next_list(lab, asked.lists);
    let took = begun.elapsed();
    let _ = follower.kill();
    let _ = follower.wait();
    assert!(
        after.single + after.history <= before.single + before.history + 2,
        "{before:?} {after:?}"
    );
    let lists = after.lists - before.lists;
    assert!(
        lists as u64 <= took.as_secs() / ASK.as_secs() + 1,
        "{lists} lists in {took:?}"
    );
    let (listings, others) = blobs_since(lab, blobs);
    // Every 0.4 s the news of all and the logs of the one.
    let most = 2 * (usize::try_from(took.as_millis()).unwrap() / 400 + 3);
    assert!(
        listings <= most && others <= 4,
        "{listings} listings, {others} others in {took:?}"
    );
}

/// A wish that is longer than anybody waits holds for whatever else is to be sent.
#[test]
fn a_service_that_asks_to_be_left_alone_is() {
    let lab = Lab::new();
    let long = Trouble::Status {
        status: 429,
        retry_after: Some(900),
    };
    lab.tow(["ps", "--remote"]).ok();
    lab.aml
        .trouble(100_000, "PUT", "/jobs/", long, When::Before);
    let mut tried: Vec<_> = ["one", "two"]
        .iter()
        .map(|name| lab.home.spawn(["submit", "--name", name, "true"]))
        .collect();
    for child in &mut tried {
        until_within(120, "it to be written down", || {
            child.try_wait().unwrap().map(drop)
        });
    }
    for child in tried {
        let told = Output::from(child.wait_with_output().unwrap());
        assert!(
            told.code == 0 && told.stderr.contains("asked us to wait another 14m"),
            "{told:?}"
        );
    }
    assert_eq!(so_far(&lab).put, 1, "nothing is sent before that time");
    // What is read is counted apart.
    let before = so_far(&lab).remote;
    lab.tow(["ps", "--remote"]).ok();
    assert_eq!(so_far(&lab).remote, before + 1);
}

fn abort_all(lab: &Lab, sweep: &str) {
    let before = so_far(lab);
    lab.tow(["abort", sweep]).ok();
    let waited = lab.tow(["wait", sweep, "--timeout", "3m"]);
    assert_eq!(waited.code, 143, "{waited:?}");
    let after = so_far(lab);
    assert_eq!(
        after.cancelled - before.cancelled,
        JOBS,
        "one call for each job"
    );
    assert!(
        after.history - before.history <= JOBS,
        "and one for why it ended: {after:?}"
    );
}
