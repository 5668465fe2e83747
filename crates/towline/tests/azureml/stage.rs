//! Makes the sample of a stage in a datastore that `towline-wire` keeps. Every later version reads
//! it.

use crate::lab::Lab;
use std::fs;
use std::path::Path;
use towline_testkit::until_within;

/// Orders, news and logs of a usual run are shorter.
const MOST_BYTES: usize = 16 << 10;

#[test]
#[ignore = "writes wire/tests/golden/stage-azureml, if it is missing"]
fn write_a_stage() {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/golden/stage-azureml");
    assert!(!target.exists(), "samples are never made again");
    let lab = Lab::new();
    lab.home.write("say.txt", "said\n");
    let submit = |name: &str, text: &str| {
        lab.home.write("job.yaml", text);
        let words = ["submit", "-f", "job.yaml", "--name", name];
        lab.tow(words).ok().id()
    };
    let wide = "resources: {nodes: 2}\nretry: {when: [exit_code], max: 3}\n\
        environment: {setup: [echo ready], env: {A: b}}\n\
        script: cat say.txt; mkdir -p outputs; echo x > outputs/model; test $TOW_ATTEMPT -ge 2\n";
    let retried = submit("retried", wide);
    lab.ended(&retried);
    let sweep = submit("sweep", "sweep: {lr: [1, 2]}\nscript: echo ${{lr}}\n");
    lab.tow(["wait", &sweep, "--timeout", "2m"]).ok();
    let cancelled = submit("cancelled", "script: echo here; sleep 600\n");
    lab.until_logged(&cancelled, "here");
    lab.tow(["abort", &cancelled, "--wait"]).ok();
    for run in [&retried, &cancelled] {
        lab.until_gone(run);
    }
    let container = lab.aml.container();
    let stage = "towline/";
    until_within(60, "the outputs to be carried", || {
        let end = format!("{retried}/outputs/model");
        let names = lab.aml.blobs(&container, stage);
        names.iter().any(|name| name.ends_with(&end)).then_some(())
    });
    let here = lab.home.path("").display().to_string();
    for name in lab.aml.blobs(&container, stage) {
        let key = name.split('/').skip(2).collect::<Vec<_>>().join("/");
        if key.starts_with("bin/") || key.starts_with("snapshots/") {
            continue;
        }
        let text = lab.aml.blob(&container, &name).unwrap();
        let file = target.join(&key);
        if text.len() <= MOST_BYTES && !key.is_empty() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(
                file,
                text.replace(here.trim_end_matches('/'), "/home/alice"),
            )
            .unwrap();
        }
    }
}
