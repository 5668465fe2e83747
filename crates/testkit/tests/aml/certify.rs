//! Programs of others against the emulator.

use serde_json::json;
use towline_testkit::aml::{Aml, Pair, judge, output_lines};
use towline_testkit::until;

/// Jobs on a page, fewer than the clients make.
const JOBS_PER_PAGE: usize = 7;

fn started() -> Aml {
    let aml = Aml::start();
    aml.conditions(|conditions| {
        conditions.page = JOBS_PER_PAGE;
        conditions.poll_after = None;
    });
    aml
}

#[test]
fn microsofts_client_does_everything_and_the_validator_agrees() {
    let aml = started();
    let home = tempfile::tempdir().unwrap();
    let mut command = aml.client("client.py", home.path(), &[]);
    command.env("AML_PAGE", JOBS_PER_PAGE.to_string());
    let output_lines = output_lines(command);
    assert_eq!(output_lines.len(), 46, "{output_lines:#?}");
    // A client that acts in the user's own name also sends a token for the workspace's services.
    let with_token =
        |pair: &&Pair| pair.json["liveRequest"]["headers"]["x-azureml-token"] == "removed";
    assert_eq!(
        aml.recorded()
            .iter()
            .filter(with_token)
            .map(|pair| pair.method.as_str())
            .collect::<Vec<_>>(),
        ["PUT"]
    );
    if let Some(spec) = judge::published() {
        let summary = judge::judge(&aml, &spec);
        assert!(summary["judged"].as_u64().unwrap() >= 200, "{summary}");
        assert!(
            summary["operations"].as_object().unwrap().len() >= 28,
            "{summary}"
        );
    }
}

/// Older services name no output for a run's artifacts, and give no keys. Then logs are found in
/// run history.
#[test]
fn microsofts_client_follows_logs_by_run_history() {
    let aml = started();
    aml.conditions(|conditions| {
        conditions.default_output = false;
        conditions.expirable_secrets = true;
    });
    let home = tempfile::tempdir().unwrap();
    let command = aml.client(
        "client.py",
        home.path(),
        &[
            "job_plain",
            "job_log",
            "job_stream",
            "job_distributed",
            "job_failing",
        ],
    );
    assert_eq!(output_lines(command).len(), 5);
    let details = aml
        .recorded()
        .iter()
        .filter(|pair| pair.target.contains("/details"))
        .count();
    assert!(details >= 2, "{details}");
}

#[test]
fn microsofts_library_signs_in_by_the_login_service() {
    let aml = started();
    aml.conditions(|conditions| conditions.device.interval = 1);
    let home = tempfile::tempdir().unwrap();
    let proof = home.path().join("proof");
    std::fs::write(&proof, aml.assertion(600)).unwrap();
    let known = aml.principal();
    let certificate = home.path().join("principal.pem");
    std::fs::write(&certificate, known.certificate).unwrap();
    let mut command = aml.client("login.py", home.path(), &[]);
    command.env("AML_CERTIFICATE", certificate);
    command.env("AML_PROOF", proof);
    command
        .env("AML_TENANT", known.tenant)
        .env("AML_CLIENT", known.client)
        .env("AML_SECRET", &known.secret);
    assert_eq!(
        output_lines(command),
        [
            "secret",
            "certificate",
            "newer_certificate",
            "workload",
            "device",
            "wrong_secret"
        ]
    );
    let recorded = serde_json::to_string(
        &aml.recorded()
            .into_iter()
            .map(|pair| pair.json)
            .collect::<Vec<_>>(),
    )
    .unwrap();
    assert!(!recorded.contains(&known.secret));
}

#[test]
fn az_signs_in_and_drives_a_job() {
    let aml = started();
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let good = |words: &[&str]| {
        let output_lines = aml.az(home, words);
        assert!(output_lines.good, "{words:?}: {output_lines:?}");
        output_lines
    };
    good(&[
        "cloud",
        "register",
        "--name",
        "TowCloud",
        "--endpoint-resource-manager",
        aml.endpoint(),
    ]);
    good(&["cloud", "set", "--name", "TowCloud"]);
    let signed_in = good(&["login", "--identity"]).json();
    assert_eq!(signed_in[0]["id"], aml.scope().subscription.as_str());
    let token = good(&[
        "account",
        "get-access-token",
        "--resource",
        "https://ml.azure.com",
    ])
    .json();
    assert_eq!(token["accessToken"].as_str().unwrap().split('.').count(), 3);
    let job = format!("{}/jobs/by-az?api-version=2024-04-01", aml.scope().id());
    let body = json!({"properties": {"jobType": "Command", "command": "echo by az", "environmentId": "azureml://registries/azureml/environments/e/versions/1"}});
    let body = body.to_string();
    let made = good(&["rest", "--method", "put", "--url", &job, "--body", &body]).json();
    assert_eq!(made["properties"]["status"], "NotStarted");
    let ended = until("a job to end", || {
        let found = good(&["rest", "--url", &job]).json();
        (found["properties"]["status"] == "Completed").then_some(found)
    });
    assert_eq!(ended["name"], "by-az");
    let other = aml.az(home, &["rest", "--url", &job.replace("by-az", "nothing")]);
    assert!(
        !other.good && other.stderr.contains("Job nothing not found"),
        "{other:?}"
    );
    let another = aml.az(
        home,
        &[
            "rest",
            "--method",
            "put",
            "--url",
            &job,
            "--body",
            &body.replace("echo", "print"),
        ],
    );
    assert!(
        !another.good && another.stderr.contains("JobPropertyImmutable"),
        "{another:?}"
    );
    let listed = good(&["rest", "--url", &job.replace("/by-az", "")]).json();
    assert_eq!(listed["value"].as_array().unwrap().len(), 1);
}
