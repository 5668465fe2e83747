//! The cached facts of an Azure ML workspace: every later version reads the samples that earlier
//! versions wrote. See `towline_samples` for the rules.

use std::path::{Path, PathBuf};
use towline_backends::azureml::site::AzureSite;
use towline_core::cluster::Facts;
use towline_samples::Samples;

fn check(mut samples: Samples) {
    samples.covered_elsewhere::<Facts>();
    samples.check::<AzureSite>("site").finish();
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/azureml.json")
}

#[test]
fn every_remembered_site_is_still_read() {
    check(Samples::open(file()));
}

#[test]
#[ignore = "appends the samples of TOW_GOLDEN_DRAFTS"]
fn append_samples() {
    let drafts = towline_samples::drafts();
    check(Samples::append(file(), &drafts));
}
