//! The session of the page on Azure ML is run, and prints what the page shows.

use towline_testkit::aml::Aml;
use towline_testkit::console::{Reader, Setting, read_page};

#[test]
fn the_page_on_azure_ml() {
    let aml = Aml::start();
    read_page("docs/guide/azure-ml.md", Setting::Azure, || {
        Reader::new(aml.home_of("ann", env!("CARGO_BIN_EXE_tow")))
    });
}
