//! A canary in every place where a user may put a secret: the job gets it, and nothing else ever
//! shows it.

use crate::lab::{FLAVOURS, Lab};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use towline_testkit::aml::{Trouble, When};
use towline_testkit::real::S3Server;
use towline_testkit::{Output, until};

/// What is looked for, by where it was put.
type Canaries = BTreeMap<&'static str, String>;

const NAMED: &str = "canary-named-7f3a9c51";
const PAT: &str = "github_pat_canary0123456789ABCDEFabcdef";
const LITERAL: &str = "canary-literal-0d11c3e2";
const S3_ID: &str = "canary-s3-id-44aa17";
const S3_SECRET: &str = "canary-s3-secret-9b1e02";
const ACT_KEY: &str = "Y2FuYXJ5LWFjdC1rZXktMDEyMzQ1Njc4OQ==";
const ACT_SAS: &str = "Y2FuYXJ5LWFjdC1zYXM5";
const WRONG_SAS: &str = "Y2FuYXJ5LXdyb25nLXNhcw";

struct Watch {
    lab: Lab,
    canaries: Canaries,
    said: String,
}

impl Watch {
    /// Nobody serves S3.
    fn new() -> Self {
        Self::with_s3("http://127.0.0.1:9", "b")
    }

    fn with_s3(address: &str, bucket: &str) -> Self {
        let mut lab = Lab::new();
        let account = lab.aml.azurite().second().clone();
        let (sas, principal) = (
            account.container_sas("canaries", "rl", 3600),
            lab.aml.principal(),
        );
        lab.aml.azurite().make_container_of(&account, "canaries");
        lab.aml.azurite().make_container("canaries");
        let signature = sas
            .split("sig=")
            .nth(1)
            .unwrap()
            .split('&')
            .next()
            .unwrap()
            .to_owned();
        let header = lab.aml.identity()[1].1.clone();
        let canaries = Canaries::from([
            ("a named secret", NAMED.to_owned()),
            ("an account's key", account.key.clone()),
            ("a signature", signature),
            ("a wrong signature", WRONG_SAS.to_owned()),
            ("a principal's secret", principal.secret.clone()),
            ("the identity's header", header),
            ("an S3 id", S3_ID.to_owned()),
            ("an S3 secret", S3_SECRET.to_owned()),
            ("a literal", LITERAL.to_owned()),
            ("a script's token", PAT.to_owned()),
            ("a key of ACT's", ACT_KEY.to_owned()),
            ("a signature of ACT's", ACT_SAS.to_owned()),
        ]);
        for (name, value) in [
            ("MY_NAMED", NAMED),
            ("AZ_KEY", &account.key),
            ("AZ_SAS", &sas),
            ("SP_SECRET", &principal.secret),
            ("S3_ID", S3_ID),
            ("S3_SECRET", S3_SECRET),
        ] {
            lab.home.set(name, value);
        }
        lab.home.set(
            "BAD_SAS",
            &format!("sv=2022-11-02&sr=c&sp=rl&sig={WRONG_SAS}"),
        );
        let blob = |credential: &str| {
            format!(
                "{{kind: azure_blob, account: {}, container: canaries, endpoint: '{}', credential: \
                    {{{credential}}}}}",
                account.name, account.endpoint
            )
        };
        let more = format!(
            "  app: {{kind: azureml, endpoint: '{}', credential: {{tenant_id: {}, client_id: {}, \
                client_secret: 'env:SP_SECRET'}}, subscription: {}, resource_group: {}, workspace: \
                    {}, compute: cpu}}\ndatastores:\n  keyed: {}\n  signed: {}\n  bad: {}\n  s3: \
                        {{kind: s3, bucket: {bucket}, region: r, endpoint: '{address}', \
                            credential: {{access_key_id: 'env:S3_ID', secret_access_key: \
                                'env:S3_SECRET'}}}}\n",
            lab.aml.endpoint(),
            principal.tenant,
            principal.client,
            lab.aml.scope().subscription,
            lab.aml.scope().group,
            lab.aml.scope().workspace,
            blob("account_key: 'env:AZ_KEY'"),
            blob("sas: 'env:AZ_SAS'"),
            blob("sas: 'env:BAD_SAS'"),
        );
        lab.configure(&more);
        let trusted = lab.aml.authority().display().to_string();
        lab.aml.conditions(|conditions| {
            conditions.variables = vec![(String::new(), ["SSL_CERT_FILE".to_owned(), trusted])];
        });
        Self {
            lab,
            canaries,
            said: String::new(),
        }
    }

    fn tow(&mut self, words: &[&str]) -> Output {
        let output = self.lab.tow(words);
        self.said += &format!("{words:?}\n{}\n{}\n", output.stdout, output.stderr);
        output
    }

    /// Runs a verb in every form that shows something.
    fn ask_everything(&mut self, run: &str) {
        for words in [
            &["show", run, "--json"][..],
            &["show", run, "--events"],
            &["ps", "--all", "--json"],
            &["query", run, "--json"],
            &["history", run],
            &["why", run, "--json"],
            &["logs", run],
            &["config", "show"],
            &["config", "show", "--json"],
            &["doctor"],
            &["doctor", "--json"],
            &["clusters", "--json"],
            &["nodes", "--json"],
            &["daemon", "status", "--json"],
        ] {
            let said = self.tow(words);
            // A run that prints nothing has an empty log.
            assert!(
                !said.stdout.is_empty() || !said.stderr.is_empty() || words[0] == "logs",
                "{words:?} shows nothing: {said:?}"
            );
        }
    }

    /// Nothing that anybody may read has a canary; `meanwhile` one file of ours, which only we can
    /// read.
    fn nothing_shows(&self, meanwhile: bool) {
        let traffic = self.lab.aml.traffic();
        assert!(
            !traffic.is_empty() && !self.said.is_empty(),
            "nothing was asked or said"
        );
        let wanted: Vec<&[u8]> = self.canaries.values().map(String::as_bytes).collect();
        let blobs = self.lab.aml.blobs_holding_any(&wanted);
        assert!(
            blobs.is_empty(),
            "{:?} are in {blobs:?}",
            self.canaries.keys().collect::<Vec<_>>()
        );
        for (what, canary) in &self.canaries {
            assert!(
                !self.said.contains(canary.as_str()),
                "{what} was said aloud:\n{}",
                around(&self.said, canary)
            );
            for folder in ["state", "config", "project", "home"] {
                for file in holding(&self.lab.home.path(folder), canary) {
                    let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
                    // The machine's own, not the user's: a daemon that nobody tells it signs in by
                    // it.
                    let is_machines =
                        *what == "the identity's header" && file.ends_with(".definition.json");
                    assert!(
                        (meanwhile || is_machines) && mode == 0o600,
                        "{what} is in {file} ({mode:o})"
                    );
                }
            }
            for call in &traffic {
                let is_vault = call.target.starts_with("/secrets/");
                let is_sas = what.ends_with(" signature")
                    && call.method == "PUT"
                    && call.target.contains("/datastores/");
                let is_sign_in = call.target.contains("/oauth2/")
                    || call.target.contains("IDENTITY")
                    || *what == "the identity's header";
                let holds = call.target.contains(canary.as_str())
                    || call.sent.contains(canary.as_str())
                    || call.got.contains(canary.as_str());
                assert!(
                    !holds || is_vault || is_sas || is_sign_in,
                    "{what} went by {} {}\n{}",
                    call.method,
                    call.target,
                    call.sent
                );
            }
        }
    }

    /// Nobody else comes into what is ours, whatever the modes of single files.
    fn nobody_else_may_look(&self) {
        for entry in fs::read_dir(self.lab.home.path("state/towline"))
            .unwrap()
            .flatten()
        {
            assert_modes(&entry.path());
        }
    }

    fn no_process_shows(&self) {
        for (what, canary) in self
            .canaries
            .iter()
            .filter(|(what, _)| **what != "the identity's header")
        {
            let found = processes_holding(canary, &self.lab.home.path(""));
            assert!(found.is_empty(), "{what} is shown by {found:?}");
        }
    }
}

/// Folders of ours are ours alone; so are files, but for those of a run, whose folder nobody else
/// enters.
fn assert_modes(path: &Path) {
    let meta = fs::symlink_metadata(path).unwrap();
    if meta.is_dir() {
        assert_eq!(
            meta.permissions().mode() & 0o077,
            0,
            "{} ({:o})",
            path.display(),
            meta.permissions().mode()
        );
        fs::read_dir(path)
            .unwrap()
            .flatten()
            .for_each(|entry| assert_modes(&entry.path()));
    }
}

/// Files below a folder that hold a text, but for those that the user wrote it into. A folder that
/// is not there would be searched in vain.
fn holding(folder: &Path, needle: &str) -> Vec<String> {
    assert!(folder.is_dir(), "{} is no folder", folder.display());
    below(folder, needle)
}

fn below(folder: &Path, needle: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().contains("theirs"))
        {
            continue;
        }
        if path.is_dir() {
            found.extend(below(&path, needle));
        } else if fs::read(&path).is_ok_and(|bytes| {
            bytes
                .windows(needle.len())
                .any(|window| window == needle.as_bytes())
        }) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// Words and environment of every process but the job's own, the blob service's, and those of other
/// tests' homes.
fn processes_holding(needle: &str, home: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for pid in towline_host::process::all()
        .into_keys()
        .filter(|pid| u32::try_from(*pid) != Ok(std::process::id()))
    {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let has = |bytes: &[u8]| {
            bytes
                .windows(needle.len())
                .any(|window| window == needle.as_bytes())
        };
        let text = String::from_utf8_lossy(&environment);
        let is_elsewhere =
            text.contains("XDG_STATE_HOME=") && !text.contains(&*home.to_string_lossy());
        let is_theirs =
            text.contains("TOW_RUN_ID=") || text.contains("AZURITE_ACCOUNTS=") || is_elsewhere;
        if has(&words) || (has(&environment) && !is_theirs) {
            found.push(format!("{pid} {}", String::from_utf8_lossy(&words)));
        }
    }
    found
}

/// Whether the environment of a rank has it.
fn is_in_a_job(needle: &str) -> bool {
    let environments = towline_host::process::all()
        .into_keys()
        .filter_map(|pid| fs::read(format!("/proc/{pid}/environ")).ok());
    environments
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .any(|text| text.contains("TOW_RUN_ID=") && text.contains(needle))
}

fn around<'a>(text: &'a str, needle: &str) -> &'a str {
    text.lines()
        .find(|line| line.contains(needle))
        .unwrap_or_default()
}

/// Each search that finds no secret finds a word that is there, in every place where a secret could
/// have gone.
#[test]
fn the_searches_find_a_word_that_is_no_secret() {
    const WORD: &str = "in-the-open-3f9c";
    let mut watch = Watch::new();
    let lab = &watch.lab;
    let go = lab.home.path("go");
    lab.home.write(
        "job.sh",
        &format!(
            "mkdir -p outputs; echo $1 | tee outputs/kept; touch \
        {0}.seen; while [ ! -e {0} ]; do sleep 0.02; done\n",
            go.display()
        ),
    );
    lab.home.write(
        "job.yaml",
        &format!(
            "command: [sh, job.sh, {WORD}]\nenvironment: {{env: \
        {{PLAIN: {WORD}}}}}\ntags: [{WORD}]\n"
        ),
    );
    lab.aml.put_blob(
        "elsewhere",
        "folder/planted",
        &format!("before {WORD} after"),
    );
    let run = watch.tow(&["submit", "-f", "job.yaml"]).ok().id();
    let lab = &watch.lab;
    until("the job to run", || {
        Path::new(&format!("{}.seen", go.display()))
            .exists()
            .then_some(())
    });
    assert!(
        !processes_holding(WORD, &lab.home.path("")).is_empty(),
        "the rank's own words"
    );
    fs::write(&go, "").unwrap();
    assert_eq!(lab.ended(&run)["state"], "succeeded");
    assert_eq!(watch.tow(&["logs", &run]).ok().stdout, format!("{WORD}\n"));
    let lab = &watch.lab;
    let found = lab.aml.blobs_holding(WORD.as_bytes());
    for place in [
        format!("/submissions/{run}.json"),
        format!("/runs/{run}/logs/attempt-1.rank-0/000000"),
        format!("/runs/{run}/outputs/kept"),
        format!("azureml/ExperimentRun/dcid.{run}/user_logs/std_log.txt"),
        "elsewhere/folder/planted".to_owned(),
    ] {
        assert!(
            found.iter().any(|name| name.ends_with(&place)),
            "{place} is not among {found:#?}"
        );
    }
    assert!(
        watch.said.contains(WORD)
            && !holding(&lab.home.path("state"), WORD).is_empty()
            && !holding(&lab.home.path("project"), WORD).is_empty()
    );
    assert!(
        lab.aml
            .traffic()
            .iter()
            .any(|call| call.sent.contains(WORD)),
        "the tags of the job"
    );
    let missing = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        lab.aml.blobs("no-such-container", "")
    }));
    assert!(
        missing.is_err(),
        "a container that is not there is no empty one"
    );
}

#[test]
fn the_job_gets_its_secret_and_nothing_else_shows_it() {
    let mut watch = Watch::new();
    let go = watch.lab.home.path("go");
    watch.lab.home.write(
        "job.sh",
        &format!(
            "printf %s \"$MY_NAMED\" | sha256sum; touch {0}.$TOW_RUN_ID; \
            while [ ! -e {0} ]; do sleep 0.02; done\n",
            go.display()
        ),
    );
    watch.lab.home.write(
        "job.yaml",
        "command: [sh, job.sh]\nenvironment: {secrets: [MY_NAMED]}\nidentity: managed:tow\n",
    );
    let expected = Output::from(
        std::process::Command::new("sh")
            .args(["-c", &format!("printf %s {NAMED} | sha256sum")])
            .output()
            .unwrap(),
    )
    .stdout;
    let mut runs = Vec::new();
    for flavour in FLAVOURS {
        watch
            .tow(&[
                "-c",
                flavour,
                "submit",
                "-f",
                "job.yaml",
                "--dry-run",
                "--json",
            ])
            .ok();
        runs.push(
            watch
                .tow(&["-c", flavour, "submit", "-f", "job.yaml"])
                .ok()
                .id(),
        );
    }
    for run in &runs {
        until("the job to run", || {
            Path::new(&format!("{}.{run}", go.display()))
                .exists()
                .then_some(())
        });
    }
    watch.no_process_shows();
    assert!(
        is_in_a_job(NAMED),
        "the search of processes does not even find the jobs"
    );
    assert_eq!(watch.lab.aml.kept_secrets().len(), runs.len());
    watch.nothing_shows(true);
    fs::write(&go, "").unwrap();
    for run in &runs {
        let ended = watch.lab.ended(run);
        assert_eq!(ended["state"], "succeeded", "{ended}");
        assert_eq!(watch.tow(&["logs", run]).stdout, expected);
        watch.ask_everything(run);
    }
    assert_eq!(
        watch.lab.aml.kept_secrets(),
        Vec::<String>::new(),
        "the vault is empty when the runs are over"
    );
    watch.nothing_shows(false);
}

#[test]
fn what_fails_or_is_refused_shows_none_and_leaves_none() {
    let mut watch = Watch::new();
    watch.lab.home.write(
        "job.yaml",
        "command: ['true']\nenvironment: {secrets: [MY_NAMED]}\nidentity: managed:tow\n",
    );
    for (part, status) in [("/secrets/", 403), ("/jobs/", 400)] {
        for flavour in FLAVOURS {
            watch.lab.aml.trouble(
                1,
                "PUT",
                part,
                Trouble::Status {
                    status,
                    retry_after: None,
                },
                When::Before,
            );
            let refused = watch.tow(&["-c", flavour, "submit", "-f", "job.yaml"]);
            assert!(refused.code != 0, "{refused:?}");
            assert_eq!(
                watch.lab.aml.kept_secrets(),
                Vec::<String>::new(),
                "{flavour}: nothing of what is refused stays in the vault"
            );
        }
    }
    watch.lab.home.write(
        "theirs.yaml",
        &format!("command: ['true']\nenvironment: {{env: {{API_TOKEN: {LITERAL}}}}}\n"),
    );
    let refused = watch.tow(&["submit", "-f", "theirs.yaml"]);
    assert!(
        refused.code == 123
            && refused.stderr.contains("looks like a token")
            && refused.stderr.contains("managed identity"),
        "{refused:?}"
    );
    // One that is ended while it waits: its store's keys were for the node, by the vault.
    watch
        .lab
        .aml
        .conditions(|conditions| conditions.hold_in = Some("Queued".to_owned()));
    watch.lab.home.write(
        "s3.yaml",
        "command: ['true']\nidentity: managed:tow\nio: \
        {in: {datastore: s3, path: x, mode: read}}\n",
    );
    let waiting = watch.tow(&["submit", "-f", "s3.yaml"]).ok().id();
    assert_eq!(watch.lab.aml.kept_secrets().len(), 2);
    watch.tow(&["abort", "--wait", &waiting]).ok();
    watch
        .lab
        .aml
        .conditions(|conditions| conditions.hold_in = None);
    assert_eq!(watch.lab.aml.kept_secrets(), Vec::<String>::new());
    let closed = watch.tow(&["ls", "bad:"]);
    assert_eq!(closed.code, 123, "{closed:?}");
    watch.ask_everything(&waiting);
    watch.lab.home.write(
        "bad.yaml",
        "command: ['true']\nio: {in: {datastore: bad, path: x, mode: read}}\n",
    );
    let bad = watch.tow(&["submit", "-f", "bad.yaml"]).ok().id();
    watch.lab.ended(&bad);
    watch.ask_everything(&bad);
    watch.nothing_shows(false);
    watch.nobody_else_may_look();
}

/// The keys of a store that the service knows nothing of go to the node by the vault, and open it
/// there.
#[test]
fn a_node_reads_a_store_by_keys_that_nothing_shows() {
    let server = S3Server::start();
    let mut watch = Watch::with_s3(&server.endpoint(), server.bucket());
    watch.lab.home.write("d/weights", "of the store\n");
    watch.tow(&["cp", "d", "s3:d"]).ok();
    let go = watch.lab.home.path("go");
    let script = format!(
        "cat \"$TOW_IO_IN/weights\"; touch {0}.$TOW_RUN_ID; while [ ! -e {0} ]; do sleep 0.02; \
            done",
        go.display()
    );
    let job = serde_json::json!({"script": script, "identity": "managed:tow", "io": {"in": {"datastore": "s3", "path": "d", "mode": "read"}}});
    watch.lab.home.write("job.yaml", &job.to_string());
    let runs: Vec<String> = FLAVOURS
        .iter()
        .map(|flavour| {
            watch
                .tow(&["-c", flavour, "submit", "-f", "job.yaml"])
                .ok()
                .id()
        })
        .collect();
    for run in &runs {
        until("the job to run", || {
            Path::new(&format!("{}.{run}", go.display()))
                .exists()
                .then_some(())
        });
    }
    watch.no_process_shows();
    watch.nothing_shows(true);
    fs::write(&go, "").unwrap();
    for run in &runs {
        assert_eq!(watch.lab.ended(run)["state"], "succeeded");
        assert_eq!(watch.tow(&["logs", run]).stdout, "of the store\n");
        watch.ask_everything(run);
    }
    assert_eq!(watch.lab.aml.kept_secrets(), Vec::<String>::new());
    watch.nothing_shows(false);
    watch.nobody_else_may_look();
}

#[test]
fn stores_principals_and_files_of_other_tools_keep_theirs() {
    let mut watch = Watch::new();
    for store in ["keyed", "signed"] {
        watch.lab.home.write(
            "job.yaml",
            &format!(
                "command: ['true']\nio: {{in: {{datastore: {store}, path: x, mode: read}}}}\n"
            ),
        );
        for flavour in FLAVOURS {
            watch
                .tow(&["-c", flavour, "submit", "-f", "job.yaml", "--dry-run"])
                .ok();
            let run = watch
                .tow(&["-c", flavour, "submit", "-f", "job.yaml"])
                .ok()
                .id();
            watch.lab.ended(&run);
            watch.ask_everything(&run);
        }
    }
    // What is registered already is not put again, with a signature that running jobs have not
    // seen.
    let puts = |watch: &Watch| {
        watch
            .lab
            .aml
            .asked()
            .iter()
            .filter(|(method, target)| method == "PUT" && target.contains("/datastores/"))
            .count()
    };
    let before = puts(&watch);
    assert!(before > 0, "the stores were put");
    let run = watch.tow(&["submit", "-f", "job.yaml"]).ok().id();
    watch.lab.ended(&run);
    assert_eq!(puts(&watch), before);
    let run = watch.tow(&["-c", "app", "submit", "true"]).ok().id();
    assert_eq!(watch.lab.ended(&run)["state"], "succeeded");
    let account = format!(
        "account_name: acct\naccount_key: {ACT_KEY}\nsas_token: \
            ?sv=2020&sig={ACT_SAS}\ncontainer_name: box\n"
    );
    watch
        .lab
        .home
        .write("aux_data/configs/theirs_account.yaml", &account);
    watch.lab.home.write(
        "aux_data/aml/config.json",
        r#"{"subscription_id": "s", "resource_group": "g", "workspace_name": "w"}"#,
    );
    let act = "aml_config: aux_data/aml/config.json\ncompute_target: \
        c\nconfig_param:\n  data_folder: \
            {azure_blob_config_file: ./aux_data/configs/theirs_account.yaml, path: d}\n";
    watch.lab.home.write("aux_data/aml/aml.yaml", act);
    watch.lab.home.trust();
    watch
        .tow(&["import", "act", "aux_data/aml/aml.yaml", "--dry-run"])
        .ok();
    watch
        .tow(&["import", "act", "aux_data/aml/aml.yaml", "--json"])
        .ok();
    let form = serde_json::json!({"cluster": {"workspace": "ws", "virtual_cluster": "vc", "instance_type": "ND40rs_v2", "node_count": 1},
        "experiment": {"name": "e", "job_name": "imported", "script": [format!("export \
            PAT={PAT}"), format!("git clone https://{PAT}@github.com/x"), "true"]}});
    watch.lab.home.write("theirs.json", &form.to_string());
    watch
        .tow(&["import", "toolkit", "theirs.json", "--force", "--json"])
        .ok();
    watch.ask_everything(&run);
    watch.nothing_shows(false);
}

/// Files that let somebody in are used from where they are; the code that travels has none of them.
#[test]
fn files_with_credentials_do_not_travel_with_the_code() {
    let watch = Watch::new();
    let home = &watch.lab.home;
    let key = home.write("keys/sas.txt", &format!("sv=2022&sig={WRONG_SAS}\n"));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    home.write(
        "aux_data/configs/unused_account.yaml",
        &format!("account_name: a\naccount_key: {ACT_KEY}\ncontainer_name: b\n"),
    );
    home.write("aux_data/configs/notes.yaml", "colour: blue\n");
    home.write(
        ".msra_intern_s_toolkit/userdata/submit_jobs.json",
        &format!("{{\"pat\": \"{PAT}\"}}"),
    );
    home.write("train.sh", "ls -A . keys aux_data/configs\n");
    watch.lab.configure(&format!(
        "datastores:\n  filed: {{kind: azure_blob, account: a, container: c, endpoint: \
            'http://127.0.0.1:9', credential: {{sas: 'file:{}'}}}}\n",
        key.display()
    ));
    let submitted = watch.lab.tow(["submit", "sh", "train.sh"]).ok();
    for name in [
        "keys/sas.txt",
        "aux_data/configs/unused_account.yaml",
        ".msra_intern_s_toolkit",
    ] {
        assert!(
            submitted.stderr.contains(name),
            "{name} is named: {}",
            submitted.stderr
        );
    }
    assert_eq!(watch.lab.ended(&submitted.id())["state"], "succeeded");
    let there = watch.lab.tow(["logs", &submitted.id()]).stdout;
    assert!(
        there.contains("notes.yaml")
            && !there.contains("unused_account")
            && !there.contains("sas.txt")
            && !there.contains(".msra"),
        "{there}"
    );
    // Who wants one there says so by its name.
    home.write(".towignore", "!aux_data/configs/unused_account.yaml\n");
    let wanted = watch.lab.tow(["submit", "sh", "train.sh"]).ok().id();
    watch.lab.ended(&wanted);
    assert!(
        watch
            .lab
            .tow(["logs", &wanted])
            .stdout
            .contains("unused_account.yaml")
    );
}
