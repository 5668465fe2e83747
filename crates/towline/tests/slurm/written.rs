//! What the nodes of one run write to a datastore: all of it arrives, whichever node ends last.

use crate::lab::Lab;
use std::fs;

/// With a folder of its own that all hosts share.
fn lab(name: &str) -> Lab {
    let lab = Lab::shared();
    lab.home.configure(&format!(
        "default_cluster: lab\nclusters:\n  lab: {{kind: slurm, host: login, ssh_config: \
            {}}}\ndatastores:\n  nas: {{kind: folder, path: ~/{name}}}\n",
        lab.slurm().ssh_config().display()
    ));
    fs::create_dir_all(lab.slurm().home("alice").join(name)).unwrap();
    rustix::fs::chown(lab.slurm().home("alice").join(name), owner(&lab), None).unwrap();
    lab
}

/// Who the user of the cluster is, to this machine.
fn owner(lab: &Lab) -> Option<rustix::fs::Uid> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(lab.slurm().home("alice"))
        .ok()
        .map(|home| rustix::fs::Uid::from_raw(home.uid()))
}

#[test]
fn what_the_last_node_writes_arrives_too() {
    let lab = lab("nas-of-two");
    // The second node goes on writing after the first has ended, one file again and again.
    lab.home.write(
        "job.yaml",
        "resources: {nodes: 2}\nio: {out: {datastore: nas, path: together, mode: write}}\nscript: \
            |\n  echo of $RANK > ${{out}}/s$RANK\n  [ $RANK = 0 ] && exit 0\n  while [ ! -e \
                ../attempt-1.node-0.end ] && [ $((n = n + 1)) -lt 60 ]; do date > \
                    ${{out}}/growing; sleep 0.1; done\n  echo late > ${{out}}/late\n",
    );
    let run = lab.tow(["submit", "-f", "job.yaml"]).ok().id();
    assert_eq!(
        lab.ended(&run)["state"],
        "succeeded",
        "{:?}",
        lab.tow(["why", &run])
    );
    let there = lab.slurm().home("alice").join("nas-of-two/together");
    for (name, text) in [("s0", "of 0\n"), ("s1", "of 1\n"), ("late", "late\n")] {
        assert_eq!(
            fs::read_to_string(there.join(name)).unwrap_or_default(),
            text,
            "{name}"
        );
    }
}

#[test]
fn what_was_not_collected_is_said_and_kept() {
    let lab = lab("nas-that-goes");
    lab.home.write(
        "job.yaml",
        "io: {out: {datastore: nas, path: cut, mode: write}}\nscript: |\n  echo precious > \
            ${{out}}/file\n  rm -rf ~/nas-that-goes; echo in the way > ~/nas-that-goes\n",
    );
    let run = lab.tow(["submit", "-f", "job.yaml"]).ok().id();
    assert_eq!(lab.ended(&run)["state"], "failed");
    fs::remove_file(lab.slurm().home("alice").join("nas-that-goes")).unwrap();
    let why = lab.tow(["why", &run]);
    assert!(
        why.stdout.contains("cannot be collected") && why.stdout.contains("io/out"),
        "{why:?}"
    );
    let got = lab
        .tow(["get", &run, "io/out/file", "--to", "back", "--json"])
        .ok()
        .json();
    let file = got["files"][0].as_str().unwrap_or_else(|| panic!("{got}"));
    assert_eq!(lab.home.read(file), "precious\n", "{got}");
}
