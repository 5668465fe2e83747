//! The data of a job: read, written, mounted, copied; on a folder and on the blob service.

use super::{azure_home, configure, home, noise, tree, write};
use std::fs;
use towline_testkit::real::Azurite;
use towline_testkit::{Home, until};

fn frozen(home: Home) -> Home {
    home.freezing().with("TOW_COLLECT_SECONDS", "1")
}

#[test]
fn a_run_reads_writes_and_mounts_a_folder() {
    let (home, data) = home();
    let home = frozen(home);
    fs::create_dir_all(data.join("in/deep")).unwrap();
    fs::write(data.join("in/deep/a"), "from the store").unwrap();
    fs::write(data.join("one.txt"), "one file").unwrap();
    write(
        &home,
        "code.sh",
        b"cat \"$TOW_IO_IN\"/deep/a \"$TOW_IO_ONE\"; echo made \
        > \"$TOW_IO_OUT\"/made; echo through > \"$TOW_IO_MNT\"/through",
    );
    home.write(
        "job.yaml",
        "io:\n  in: {datastore: nas, path: alice/data/in, mode: read}\n  one: \
            {datastore: nas, path: alice/data/one.txt, mode: read}\n  out: \
                {datastore: nas, path: results/x, mode: write}\n  mnt: \
                    {datastore: nas, path: alice/data}\nscript: |\n  sh code.sh\n  ls ${{in}} \
                        ${{mnt}}\n",
    );
    let run = home.tow(["run", "-f", "job.yaml"]).ok();
    assert!(
        run.stdout.starts_with("from the storeone file"),
        "{}",
        run.stdout
    );
    assert_eq!(
        fs::read_to_string(home.path("nas/results/x/made")).unwrap(),
        "made\n"
    );
    assert_eq!(
        fs::read_to_string(data.join("through")).unwrap(),
        "through\n"
    );
    // What is read is the run's own copy.
    assert_eq!(
        fs::read_to_string(data.join("in/deep/a")).unwrap(),
        "from the store"
    );
}

#[test]
fn what_a_run_writes_is_collected_while_it_runs_and_kept_when_it_fails() {
    let home = frozen(azure_home("jobs-write"));
    home.write(
        "job.yaml",
        "io:\n  out: {datastore: az, path: res, mode: write}\nscript: \
        |\n  mkdir ${{out}}/deep\n  echo early > ${{out}}/deep/early\n  while [ ! -e \"$GO\" ]; do \
            sleep 0.05; done\n  echo late > ${{out}}/late\n  exit 5\n",
    );
    let go = home.path("go");
    let home = home.with("GO", &go.display().to_string());
    let id = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    let client = Azurite::shared().client();
    let names = || {
        client
            .list("jobs-write", "res/")
            .into_iter()
            .map(|(name, _)| name)
            .collect::<Vec<_>>()
    };
    until("the first file to be collected while it runs", || {
        (names() == ["res/deep/early"]).then_some(())
    });
    assert_eq!(home.state_of(&id), "running");
    fs::write(go, "").unwrap();
    assert_eq!(home.tow(["wait", &id]).code, 5);
    assert_eq!(names(), ["res/deep/early", "res/late"]);
    assert_eq!(home.show(&id)["reason"], "exit_code");
}

#[test]
fn a_preempted_run_keeps_what_it_wrote() {
    let home = frozen(azure_home("jobs-preempt"));
    configure(
        &home,
        &format!(
            "  az: {{kind: azure_blob, account: {}, container: jobs-preempt, endpoint: '{}', \
                credential: {{account_key: env:AZ_KEY}}}}\nclusters:\n  local: {{kind: local, \
                    cpus: 1}}\n",
            Azurite::shared().account(),
            Azurite::shared().endpoint()
        ),
    );
    home.write(
        "job.yaml",
        "io:\n  out: {datastore: az, path: res, mode: write}\nresources: \
        {tier: basic, cpus_per_node: 1}\nscript: |\n  if [ $TOW_ATTEMPT = 2 ]; then ls ${{out}}; \
            exit 0; fi\n  echo x > ${{out}}/checkpoint\n  echo begun\n  sleep 100\n",
    );
    let home = home.with("TOW_COLLECT_SECONDS", "3600");
    let id = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    until("it to run", || {
        home.tow(["logs", &id])
            .stdout
            .contains("begun")
            .then_some(())
    });
    home.tow(["run", "--tier", "premium", "--cpus", "1", "true"])
        .ok();
    let there: Vec<_> = Azurite::shared().client().list("jobs-preempt", "res/");
    assert_eq!(there.len(), 1, "{there:?}");
    home.tow(["wait", &id]).ok();
    assert_eq!(
        home.tow(["logs", &id, "--attempt", "2"]).ok().stdout,
        "checkpoint\n"
    );
}

#[test]
fn what_cannot_be_brought_or_collected_is_said_and_kept() {
    let home = frozen(azure_home("jobs-missing"));
    home.write(
        "job.yaml",
        "io:\n  in: {datastore: az, path: nowhere, mode: read}\ncommand: 'echo ran'\n",
    );
    let failed = home.tow(["run", "-f", "job.yaml"]);
    assert_eq!(failed.code, 1);
    let shown = home.show("@");
    assert_eq!(shown["reason"], "data");
    assert!(
        shown["detail"].as_str().unwrap().contains("nowhere"),
        "{shown}"
    );
    assert_eq!(failed.stdout, "");
    // The container goes while it runs: what it wrote stays here, and the run does not count as
    // good.
    let azurite = Azurite::shared();
    azurite.make_container("jobs-gone");
    configure(
        &home,
        &format!(
            "  az: {{kind: azure_blob, account: {}, container: jobs-never, endpoint: '{}', \
                credential: {{account_key: env:AZ_KEY}}}}\n",
            azurite.account(),
            azurite.endpoint()
        ),
    );
    home.write(
        "job.yaml",
        "io:\n  out: {datastore: az, path: res, mode: write}\nscript: |\n  echo \
        precious > ${{out}}/file\n",
    );
    assert_eq!(home.tow(["run", "-f", "job.yaml"]).code, 1);
    let shown = home.show("@");
    assert_eq!(shown["reason"], "data");
    let detail = shown["detail"].as_str().unwrap();
    assert!(
        detail.contains("jobs-never") && detail.contains("kept in"),
        "{detail}"
    );
    home.tow(["get", "@", "io/out/file", "--to", "got"]).ok();
    assert_eq!(home.read("got/io/out/file"), "precious\n");
}

#[test]
fn a_dataset_is_copied_once_per_node_and_shared() {
    let (home, data) = home();
    let home = frozen(home);
    for name in ["voc/a", "coco/b", "other/c"] {
        fs::create_dir_all(data.join(name).parent().unwrap()).unwrap();
        fs::write(data.join(name), name).unwrap();
    }
    home.write(
        "job.yaml",
        "copy: \
        {datastore: nas, path: alice/data, subdirs: [voc, coco]}\nscript: \
            |\n  cd \"$TOW_COPY_DIR\"; pwd; find . -type f | sort\n",
    );
    let runs: Vec<String> = (0..4)
        .map(|_| home.tow(["submit", "-f", "job.yaml"]).ok().id())
        .collect();
    let logs: Vec<String> = runs
        .iter()
        .map(|run| {
            home.tow(["wait", run]).ok();
            home.tow(["logs", run]).ok().stdout
        })
        .collect();
    assert!(logs.iter().all(|log| *log == logs[0]), "{logs:?}");
    assert!(logs[0].ends_with("./coco/b\n./voc/a\n"), "{}", logs[0]);
}

#[test]
fn a_blob_container_is_mounted_and_let_go_of_whatever_happens() {
    let home = frozen(azure_home("jobs-mount"));
    let file = write(&home, "seed", &noise(300_000, 4));
    Azurite::shared()
        .client()
        .run([
            "put".as_ref(),
            "jobs-mount".as_ref(),
            "work/seed".as_ref(),
            file.as_os_str(),
        ])
        .json();
    let mounts = || {
        fs::read_to_string("/proc/self/mountinfo")
            .unwrap()
            .matches(&home.path("state").display().to_string())
            .count()
    };
    home.write(
        "job.yaml",
        "io:\n  mnt: \
        {datastore: az, path: work, options: [--attr-timeout=1s]}\nscript: |\n  cmp ${{mnt}}/seed \
            seed && echo same\n  cp seed ${{mnt}}/copy\n  echo text > ${{mnt}}/text\n",
    );
    assert_eq!(home.tow(["run", "-f", "job.yaml"]).ok().stdout, "same\n");
    assert_eq!(mounts(), 0);
    let mut names: Vec<_> = Azurite::shared().client().list("jobs-mount", "work/");
    names.sort();
    assert_eq!(
        names,
        [
            ("work/copy".to_owned(), 300_000),
            ("work/seed".to_owned(), 300_000),
            ("work/text".to_owned(), 5)
        ]
    );
    // Killed in the middle: nothing stays mounted.
    home.write(
        "job.yaml",
        "io:\n  mnt: {datastore: az, path: work}\nscript: |\n  ls ${{mnt}}\n  sleep 100\n",
    );
    let id = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    until("it to run", || {
        home.tow(["logs", &id])
            .stdout
            .contains("seed")
            .then_some(())
    });
    assert_eq!(mounts(), 1);
    for (pid, words) in home.runner_processes() {
        if words.contains("__runner") {
            towline_host::process::signal(pid, rustix::process::Signal::KILL);
        }
    }
    until("the run to end", || {
        (home.state_of(&id) == "failed").then_some(())
    });
    until("the mount to be gone", || (mounts() == 0).then_some(()));
    let id = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    until("it to run", || {
        home.tow(["logs", &id])
            .stdout
            .contains("seed")
            .then_some(())
    });
    home.tow(["abort", &id]).ok();
    assert_eq!(home.tow(["wait", &id]).code, 143);
    assert_eq!(mounts(), 0);
}

#[test]
fn credentials_are_in_no_file_that_stays_and_in_no_word() {
    let canary = Azurite::shared().key().to_owned();
    let home = frozen(azure_home("jobs-secret"));
    let go = home.path("go").display().to_string();
    let home = home.with("GO", &go);
    home.write(
        "job.yaml",
        "io:\n  out: {datastore: az, path: res, mode: write}\nscript: |\n  env > \
            ${{out}}/env\n  echo begun\n  while [ ! -e \"$GO\" ]; do sleep 0.05; done\n",
    );
    let id = home.tow(["submit", "-f", "job.yaml", "--json"]).ok().json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    until("it to run", || {
        home.tow(["logs", &id])
            .stdout
            .contains("begun")
            .then_some(())
    });
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        assert!(
            !words.contains("tow") || !words.contains(&canary),
            "{words}"
        );
    }
    fs::write(go, "").unwrap();
    home.tow(["wait", &id]).ok();
    until("the secrets to be gone", || {
        fs::read_dir(home.state().secrets())
            .is_ok_and(|mut files| files.next().is_none())
            .then_some(())
    });
    // AZ_KEY itself is a variable of the shell that the run inherits; nothing else has it.
    let kept = tree(home.state().root());
    assert!(
        kept.values()
            .any(|bytes| String::from_utf8_lossy(bytes).contains("echo begun")),
        "the search finds what is kept: {:?}",
        kept.keys()
    );
    for (name, bytes) in kept {
        assert!(
            name.ends_with("io/out/env") || !String::from_utf8_lossy(&bytes).contains(&canary),
            "{name}"
        );
    }
}

#[test]
fn mistakes_are_found_before_anything_is_sent() {
    let (home, _) = home();
    let home = frozen(home);
    for (job, code, part) in [
        (
            "io:\n  x: {datastore: nass}\ncommand: 'true'\n",
            121,
            "did you mean `nas`",
        ),
        (
            "io:\n  x: {datastore: nas, path: ../../etc, mode: read}\ncommand: 'true'\n",
            121,
            "climbs out",
        ),
        (
            "io:\n  'a b': {datastore: nas}\ncommand: 'true'\n",
            121,
            "a name has letters",
        ),
        (
            "io:\n  a-b: {datastore: nas}\n  a_b: {datastore: nas}\ncommand: 'true'\n",
            121,
            "TOW_IO_A_B",
        ),
        (
            "copy: {datastore: nass}\ncommand: 'true'\n",
            121,
            "no datastore is called",
        ),
        (
            "io:\n  x: {datastore: nas, mode: red}\ncommand: 'true'\n",
            121,
            "red",
        ),
    ] {
        home.write("job.yaml", job);
        let refused = home.tow(["submit", "-f", "job.yaml"]);
        assert_eq!(refused.code, code, "{job} {refused:?}");
        assert!(refused.stderr.contains(part), "{job} {}", refused.stderr);
    }
    assert!(
        home.tow(["ps", "--json"]).ok().json()["runs"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

/// Several nodes of one machine that write one place: nothing of any is lost.
#[test]
fn what_several_nodes_write_here_is_all_collected() {
    let home = frozen(azure_home("jobs-nodes"));
    home.write(
        "job.yaml",
        "resources: {nodes: 3}\nio:\n  out: {datastore: az, path: res, mode: write}\nscript: \
            |\n  echo $NODE_RANK > ${{out}}/node-$NODE_RANK\n",
    );
    home.tow(["run", "-f", "job.yaml"]).ok();
    let listed: Vec<String> = Azurite::shared()
        .client()
        .list("jobs-nodes", "res/")
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(listed, ["res/node-0", "res/node-1", "res/node-2"]);
}
