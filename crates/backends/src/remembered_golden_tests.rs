//! The cached facts of far clusters: every later version reads the samples that earlier versions
//! wrote. See `towline_samples` for the rules.

use crate::azureml::site::AzureSite;
use crate::remembered::Stored;
use std::path::{Path, PathBuf};
use towline_samples::Samples;
use towline_wire::site::SiteFacts;

fn check(mut samples: Samples) {
    samples.covered_elsewhere::<SiteFacts>();
    samples.covered_elsewhere::<AzureSite>();
    samples.check::<Stored<SiteFacts>>("slurm");
    samples.check::<Stored<AzureSite>>("azureml").finish();
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/facts.json")
}

#[test]
fn every_remembered_cluster_is_still_read() {
    check(Samples::open(file()));
}

#[test]
#[ignore = "appends the samples of TOW_GOLDEN_DRAFTS"]
fn append_samples() {
    let drafts = towline_samples::drafts();
    check(Samples::append(file(), &drafts));
}
