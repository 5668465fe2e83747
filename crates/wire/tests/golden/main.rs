//! Every message and every stored document: samples that earlier versions wrote are read by every
//! later one, and nothing of them is lost. See `towline_samples` for the rules.
//!
//! New samples are appended by hand, or from drafts by
//! `TOW_GOLDEN_DRAFTS=FOLDER cargo test -p towline-wire --test golden -- --ignored`.

mod bytes;
mod names;
mod reports;
mod stages;

use std::path::{Path, PathBuf};
use towline_core::cluster::{self as core_cluster, Facts};
use towline_core::config::{Cluster, ClusterKind};
use towline_core::job::Job;
use towline_core::plan::Plan;
use towline_core::process_limits::ProcessLimits;
use towline_core::reason::Ending;
use towline_core::resolve::{Container, CopyPlan, IoPlan, NamedStore, Runtime, Shape};
use towline_core::state::{Native, RunState};
use towline_core::tunnel::Definition;
use towline_core::workspace::Workspace;
use towline_samples::{Samples, assert_every_variant};
use towline_wire::daemon::Observation;
use towline_wire::{cluster, crew, daemon, journal, runner, site, stage, tunnel, workspace};

type Open = dyn Fn(&str) -> Samples;

fn samples(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

#[test]
fn every_message_and_document_is_still_read() {
    check(&|name| Samples::open(samples(name)));
}

#[test]
#[ignore = "appends the samples of TOW_GOLDEN_DRAFTS"]
fn append_samples() {
    let drafts = towline_samples::drafts();
    check(&move |name| Samples::append(samples(name), &drafts));
}

fn check(open: &Open) {
    check_daemon(open);
    check_runner(open);
    check_journal(open);
    check_stage(open);
    check_site(open);
    check_crew(open);
    check_tunnel(open);
    check_workspace(open);
    let mut clusters = open("cluster.json");
    clusters
        .covered_elsewhere::<Cluster>()
        .covered_elsewhere::<ClusterKind>()
        .covered_elsewhere::<Job>();
    clusters.check::<cluster::NamedCluster>("cluster");
    clusters.check::<cluster::ClusterStatus>("status").finish();
}

fn check_daemon(open: &Open) {
    let mut samples = open("daemon.json");
    samples
        .covered_elsewhere::<Plan>()
        .covered_elsewhere::<Cluster>();
    samples
        .covered_elsewhere::<ClusterKind>()
        .covered_elsewhere::<Job>();
    samples
        .covered_elsewhere::<RunState>()
        .covered_elsewhere::<Facts>();
    samples
        .covered_elsewhere::<Observation>()
        .covered_elsewhere::<core_cluster::Explanation>();
    samples.covered_elsewhere::<tunnel::TunnelStatus>();
    samples.check::<daemon::Hello>("hello");
    samples
        .check::<daemon::Request>("request")
        .check::<daemon::Reply>("reply");
    samples
        .check::<daemon::Limits>("limits")
        .check::<daemon::PrivateSecrets>("secrets")
        .finish();
}

fn check_runner(open: &Open) {
    let mut samples = open("runner.json");
    samples
        .covered_elsewhere::<Shape>()
        .covered_elsewhere::<ProcessLimits>();
    samples.covered_elsewhere::<towline_core::command::Program>();
    samples.covered_elsewhere::<towline_core::cluster::GpuMake>();
    samples
        .covered_elsewhere::<Container>()
        .covered_elsewhere::<IoPlan>();
    samples
        .covered_elsewhere::<CopyPlan>()
        .covered_elsewhere::<Ending>();
    samples
        .check::<runner::ToRunner>("to_runner")
        .check::<runner::FromRunner>("from_runner");
    samples
        .check::<runner::DataOrder>("data_order")
        .check::<runner::DataWord>("data_word");
    samples.finish();
}

fn check_journal(open: &Open) {
    let mut samples = open("journal.json");
    let records: Vec<journal::JournalRecord> = samples.read("record");
    for record in &records {
        assert_eq!(
            journal::parse(&journal::line(record)),
            std::slice::from_ref(record)
        );
    }
    assert_every_variant!(
        records,
        journal::JournalRecord::Claim { .. },
        journal::JournalRecord::Started { .. },
        journal::JournalRecord::Held { .. },
        journal::JournalRecord::End { .. },
    );
    samples.finish();
}

fn check_stage(open: &Open) {
    let mut samples = open("stage.json");
    samples
        .covered_elsewhere::<Plan>()
        .covered_elsewhere::<Ending>();
    samples
        .check::<core_cluster::Claim>("claim")
        .check::<core_cluster::Started>("started");
    samples
        .check::<core_cluster::Held>("held")
        .check::<core_cluster::End>("end");
    samples
        .check::<stage::CodeRemoved>("code_removed")
        .check::<stage::StopOrder>("stop");
    samples
        .check::<stage::Order>("order")
        .check::<stage::Sent>("sent");
    samples.check::<stage::JobRecord>("job").finish();
}

fn check_site(open: &Open) {
    let mut samples = open("site.json");
    samples
        .covered_elsewhere::<Plan>()
        .covered_elsewhere::<stage::Sent>();
    samples
        .covered_elsewhere::<Facts>()
        .covered_elsewhere::<Native>();
    samples
        .covered_elsewhere::<Ending>()
        .covered_elsewhere::<Runtime>()
        .covered_elsewhere::<RunState>();
    samples.covered_elsewhere::<daemon::Refusal>();
    samples.check::<site::SiteHello>("hello");
    samples
        .check::<site::SiteRequest>("request")
        .check::<site::SiteReply>("reply")
        .finish();
}

fn check_crew(open: &Open) {
    let mut samples = open("crew.json");
    samples
        .covered_elsewhere::<Plan>()
        .covered_elsewhere::<Ending>();
    samples.covered_elsewhere::<core_cluster::AttemptReport>();
    samples
        .check::<crew::CrewOrder>("order")
        .check::<crew::StatusDocument>("news");
    samples
        .check::<crew::FromNode>("from_node")
        .check::<crew::ToNode>("to_node")
        .finish();
}

fn check_tunnel(open: &Open) {
    let mut samples = open("tunnel.json");
    samples.covered_elsewhere::<Definition>();
    samples
        .check::<tunnel::Wanted>("wanted")
        .check::<tunnel::TunnelStatus>("status");
    samples.check::<tunnel::ToTunnel>("to_tunnel").finish();
}

fn check_workspace(open: &Open) {
    let mut samples = open("workspace.json");
    samples
        .covered_elsewhere::<NamedStore>()
        .covered_elsewhere::<Workspace>();
    samples.covered_elsewhere::<daemon::Refusal>();
    samples.check::<workspace::ScratchHello>("hello");
    samples.check::<workspace::ScratchOrder>("order");
    samples
        .check::<workspace::ScratchReply>("reply")
        .check::<workspace::Auto>("auto");
    samples.check::<workspace::BackupStatus>("status").finish();
}
