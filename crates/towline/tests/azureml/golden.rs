//! What is put, byte for byte, for a large job on each flavour; and that job for real, with ranks
//! that need no GPUs. `TOW_WRITE_GOLDEN=1` writes the files anew: look at what has changed, then
//! keep them.

use crate::lab::{FLAVOURS, Lab};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use towline_testkit::aml::{JobSchema, judge};

const NODES: usize = 4;
const EACH: usize = 8;

/// A job file that uses all there is, with each flavour's own words.
fn job(flavour: &str, gpus: bool) -> String {
    let gpus = if gpus { "gpus_per_node: 8, " } else { "" };
    let own = match flavour {
        "itp" => "cpus_per_node: 40, memory: 600G, ",
        "sing" => "tier: premium, location: [westus3], ",
        _ => "tier: basic, ",
    };
    let launch = if gpus.is_empty() { "8" } else { "per_gpu" };
    format!(
        "cluster: {flavour}
name: vitl_contitrain
experiment: hoi_experiment_v1
resources: {{nodes: {NODES}, {gpus}{own}time: 14d, native: [shm_size=64g]}}
launch: {launch}
io:
  voc: {{datastore: research, path: alice/voc20, mode: read}}
  model: {{datastore: research, path: alice/model, mode: write}}
  blobmnt: {{datastore: research, path: alice/work, mode: mount}}
environment:
  image: amsword/setup:py36pt16
  setup: [echo ready > ready]
  env: {{NCCL_IB_DISABLE: '0'}}
tags: [vitl, of=ablation]
script: |
  cat ready ${{{{voc}}}}/words.txt
  echo $RANK > ${{{{model}}}}/$RANK
  echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK $MASTER_ADDR $MASTER_PORT \
      $OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_SIZE \\
    $OMPI_COMM_WORLD_LOCAL_RANK $OMPI_COMM_WORLD_LOCAL_SIZE $AZ_BATCH_HOST_LIST \
        $AZ_BATCHAI_JOB_MASTER_NODE_IP
"
    )
}

/// With a container that the workspace does not know yet.
fn lab() -> Lab {
    let mut lab = Lab::new();
    let azurite = lab.aml.azurite();
    azurite.make_container("research");
    let words = lab.home.write("words.txt", "words of the data\n");
    let put = azurite.client().run([
        "put",
        "research",
        "alice/voc20/words.txt",
        words.to_str().unwrap(),
    ]);
    assert!(put.good, "{put:?}");
    let (account, key) = (azurite.account().to_owned(), azurite.key().to_owned());
    let endpoint = format!("https://{account}.blob.{}", lab.aml.storage_suffix());
    lab.home.set("RESEARCH_KEY", &key);
    lab.configure(&format!(
        "datastores:\n  research: {{kind: azure_blob, account: {account}, container: research, \
            endpoint: '{endpoint}', credential: {{account_key: 'env:RESEARCH_KEY'}}}}\n"
    ));
    lab
}

/// The body that would be put, without what differs from day to day.
fn body(plan: &Value) -> Value {
    let text = plan["request"]["text"].as_str().unwrap();
    let (first, body) = text.split_once('\n').unwrap();
    let id = plan["id"].as_str().unwrap();
    assert!(
        first.starts_with("PUT /subscriptions/")
            && first.ends_with(&format!("/jobs/{id}?api-version=2024-04-01")),
        "{first}"
    );
    let mut body = body.replace(id, "RUN");
    let at = body.find("/bin/tow-").unwrap() + "/bin/tow-".len();
    let end = at + body[at..].find('"').unwrap();
    body.replace_range(at..end, "DIGEST");
    serde_json::from_str(&body).unwrap()
}

fn golden(flavour: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/azureml/golden/{flavour}.json"))
}

#[test]
fn the_request_of_a_large_job_is_known_to_the_byte() {
    let lab = lab();
    let schema = judge::published().map(|spec| JobSchema::read(&spec));
    for flavour in FLAVOURS {
        lab.home.write("job.yaml", &job(flavour, true));
        let plan = lab
            .tow(["submit", "-f", "job.yaml", "--dry-run", "--json"])
            .ok()
            .json();
        let body = body(&plan);
        let text = format!("{body:#}\n");
        if std::env::var_os("TOW_WRITE_GOLDEN").is_some() {
            std::fs::write(golden(flavour), &text).unwrap();
        }
        assert_eq!(
            text,
            std::fs::read_to_string(golden(flavour)).unwrap(),
            "{flavour}: see this file's first lines"
        );
        if let Some(schema) = &schema {
            assert_eq!(schema.faults(&body), None, "{flavour}");
            assert!(
                schema.faults(&spoiled(&body)).is_some(),
                "{flavour}: the judge sleeps"
            );
        }
        let shown = lab
            .tow(["submit", "-f", "job.yaml", "--dry-run"])
            .ok()
            .stdout;
        assert!(shown.contains("\"jobType\": \"Command\""), "{shown}");
    }
    let recorded = lab.aml.recorded();
    assert!(
        !recorded.is_empty() && recorded.iter().all(|pair| pair.method != "PUT"),
        "nothing is sent"
    );
}

/// What nobody asked for is known too: the shared memory, the image, the experiment.
#[test]
fn the_request_of_a_plain_job_is_known_to_the_byte() {
    let lab = Lab::new();
    let schema = judge::published().map(|spec| JobSchema::read(&spec));
    for flavour in FLAVOURS {
        let plan = lab
            .tow([
                "-c",
                flavour,
                "submit",
                "--dry-run",
                "--json",
                "--name",
                "plain",
                "true",
            ])
            .ok()
            .json();
        let body = body(&plan);
        assert_eq!(body["properties"]["resources"]["shmSize"], "1024g");
        let (text, file) = (format!("{body:#}\n"), golden(&format!("plain-{flavour}")));
        if std::env::var_os("TOW_WRITE_GOLDEN").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        assert_eq!(
            text,
            std::fs::read_to_string(&file).unwrap(),
            "{flavour}: see this file's first lines"
        );
        if let Some(schema) = &schema {
            assert_eq!(schema.faults(&body), None, "{flavour}");
        }
    }
}

fn spoiled(body: &Value) -> Value {
    let mut spoiled = body.clone();
    spoiled["properties"]["inputs"]["voc"]["mode"] = "ReadOnlymount".into();
    spoiled
}

/// Rank r of 4 × 8 says who it is; what it should say of its number, and of the company it keeps.
fn check_ranks(lab: &Lab, run: &str, flavour: &str) {
    let mut company = BTreeSet::new();
    for rank in 0..NODES * EACH {
        let log = lab
            .tow(["logs", run, "--rank", &rank.to_string()])
            .ok()
            .stdout;
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!(
            lines[..2],
            ["ready", "words of the data"],
            "{flavour} {rank}: {log}"
        );
        let words: Vec<&str> = lines[2].split(' ').collect();
        let (local, node) = (rank % EACH, rank / EACH);
        let numbers = [rank, NODES * EACH, local, EACH, node].map(|number| number.to_string());
        assert_eq!(words[..5], numbers, "{flavour}: {log}");
        let of_mpi = [rank, NODES * EACH, local, EACH].map(|number| number.to_string());
        assert_eq!(words[7..11], of_mpi, "{flavour}: {log}");
        company.insert([words[5], words[6], words[11], words[12]].map(ToOwned::to_owned));
    }
    assert_eq!(
        company.len(),
        1,
        "{flavour}: one master and one list for all: {company:?}"
    );
    let [master, port, hosts, batch] = company.pop_first().unwrap();
    assert!(port.parse::<u16>().is_ok(), "{flavour}: {port}");
    let hosts: Vec<&str> = hosts.split(',').collect();
    assert_eq!(
        (hosts.len(), hosts[0], batch.as_str()),
        (NODES, master.as_str(), master.as_str()),
        "{flavour}"
    );
}

#[test]
fn a_large_job_has_all_its_ranks() {
    let lab = lab();
    for flavour in FLAVOURS {
        let run = lab.home.submit_file(&job(flavour, false), &[]);
        let record = lab.ended(&run);
        assert_eq!(
            record["state"],
            "succeeded",
            "{flavour}: {record} {:?}",
            lab.tow(["logs", &run])
        );
        check_ranks(&lab, &run, flavour);
    }
    let kept = lab.aml.azurite().client().list("research", "alice/model/");
    assert_eq!(kept.len(), NODES * EACH, "{kept:?}");
}
