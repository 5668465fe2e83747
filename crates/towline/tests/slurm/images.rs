//! An `image` on the nodes of a cluster: podman as the user has it there, without root, on a root
//! file system made from a Debian package.

use crate::lab::Lab;
use std::fs;
use std::os::unix::fs::symlink;
use towline_testkit::real::slurm::Options;
use towline_testkit::until;

/// What a host needs before podman runs there without root: names for more users, the kernel's
/// message queues and control groups, limits that may be raised no further, and its storage on a
/// disk of the node's own: two nodes cannot share one in the home folder.
const READY: &str = r#"
echo alice:300000:65536 > /etc/subuid; echo alice:300000:65536 > /etc/subgid
mkdir -p /dev/mqueue /etc/containers
mount -t mqueue mqueue /dev/mqueue; mount -t cgroup2 cgroup2 /sys/fs/cgroup; mount --make-rshared /
printf '[containers]\ndefault_ulimits=["nofile=1024:1024","nproc=1000:1000"]\n' > /etc/containers/containers.conf
printf '[storage]\ndriver="vfs"\nrunroot="/run/containers"\ngraphroot="/var/tmp/containers"\nrootless_storage_path="/tmp/containers-$UID"\n' > /etc/containers/storage.conf
"#;

fn lab() -> Lab {
    let lab = Lab::own(&Options {
        nodes: 2,
        gpus: 2,
        accounting: false,
        ..Options::default()
    });
    for host in ["c1", "c2"] {
        lab.slurm().root(host, ["sh", "-ec", READY]).ok();
    }
    let image = lab.slurm().home("alice").join("image");
    for folder in ["bin", "tmp", "proc", "dev", "sys", "etc", "run"] {
        fs::create_dir_all(image.join(folder)).unwrap();
    }
    fs::copy("/bin/busybox", image.join("bin/busybox"))
        .expect("Debian's busybox-static is installed");
    for name in ["sh", "cat", "echo", "sleep", "ls", "hostname", "id"] {
        symlink("busybox", image.join("bin").join(name)).unwrap();
    }
    fs::write(image.join("etc/marker"), "the image").unwrap();
    lab.slurm()
        .root("c1", ["chown", "-R", "alice:", "/home/alice/image"])
        .ok();
    lab
}

const JOB: &str = "
name: imaged
environment: {image: /home/alice/image, env: {WORD: \
    spoken}, setup: ['echo set up in $(cat /etc/marker)']}
resources: {nodes: 2, gpus_per_node: 2}
launch: 2
";

#[test]
fn a_run_lives_in_its_image_on_every_node_and_ends_with_it() {
    let lab = lab();
    lab.home.write("data.txt", "mine");
    let script = "echo $RANK/$WORLD_SIZE $(hostname) gpus $CUDA_VISIBLE_DEVICES in $(cat \
        /etc/marker) $WORD $(cat data.txt) as $(id -u)";
    let run = lab
        .home
        .submit_file(&format!("{JOB}script: {script}\n"), &[]);
    let ended = lab.ended(&run);
    assert_eq!(
        ended["state"],
        "succeeded",
        "{ended} {}",
        lab.tow(["logs", &run, "--setup"]).stdout
    );
    let mut lines: Vec<String> = lab
        .tow(["logs", &run, "--rank", "all"])
        .ok()
        .stdout
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    let line = |rank: u32, host: &str| {
        format!("[{rank}] {rank}/4 {host} gpus 0,1 in the image spoken mine as 20001")
    };
    assert_eq!(
        lines,
        [line(0, "c1"), line(1, "c1"), line(2, "c2"), line(3, "c2")]
    );
    for node in 0..2 {
        assert_eq!(
            fs::read_to_string(lab.far(&run).join(format!("attempt-1.setup-{node}.log"))).unwrap(),
            "set up in the image\n"
        );
    }

    // Its code is the job's.
    let failed = lab
        .home
        .submit_file(&format!("{JOB}script: exit $((RANK + 3))\n"), &[]);
    let ended = lab.ended(&failed);
    assert_eq!(ended["state"], "failed", "{ended}");
    assert!(
        (3..=6).contains(&ended["exit_code"].as_u64().unwrap()),
        "{ended}"
    );

    // Nothing is left of it when it is aborted.
    let long = lab
        .home
        .submit_file(&format!("{JOB}script: echo begun; sleep 1000\n"), &[]);
    Lab::until_text(&lab.far(&long).join("attempt-1.rank-3.log"));
    lab.tow(["abort", &long]).ok();
    assert_eq!(lab.ended(&long)["state"], "cancelled");
    for host in ["c1", "c2"] {
        until("no sleep on the node", || {
            (lab.slurm()
                .exec(host, "alice", ["pgrep", "-u", "alice", "-x", "sleep"])
                .code
                == 1)
                .then_some(())
        });
        let left = || {
            lab.slurm()
                .exec(
                    host,
                    "alice",
                    ["podman", "ps", "-a", "--format", "{{.Names}} {{.Status}}"],
                )
                .ok()
                .stdout
        };
        until(&format!("no container on {host}: {}", left()), || {
            left().is_empty().then_some(())
        });
    }

    // What is not there is told: the image, then the runtime on a node, then any runtime at all.
    let missing = lab.home.submit_file(
        "environment: {image: /home/alice/none}\ncommand: 'true'\n",
        &[],
    );
    let ended = lab.ended(&missing);
    assert_eq!(
        (ended["state"].as_str(), ended["reason"].as_str()),
        (Some("failed"), Some("image_pull")),
        "{ended}"
    );
    for host in ["c1", "c2"] {
        lab.slurm().root(host, ["rm", "/usr/bin/podman"]).ok();
    }
    let without = lab
        .home
        .submit_file(&format!("{JOB}command: 'true'\n"), &[]);
    assert_eq!(lab.ended(&without)["reason"], "not_started");
    let why = lab.tow(["why", &without]).ok().stdout;
    assert!(
        why.contains("the image needs podman, which this node has not"),
        "{why}"
    );
    // Whatever else the machine that the test runs on may have.
    lab.slurm()
        .root(
            "login",
            [
                "sh",
                "-c",
                "for name in podman docker apptainer; do while found=$(command \
            -v $name); do rm \"$found\"; hash -r; done; done",
            ],
        )
        .ok();
    lab.tow(["nodes"]).ok();
    let refused = lab.tow(["submit", "-f", "job.yaml"]);
    assert_eq!(refused.code, 123, "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("cluster `lab` has none on its login host"),
        "{}",
        refused.stderr
    );
}
