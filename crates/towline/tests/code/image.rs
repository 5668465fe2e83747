//! An `image` on this machine: podman, on a root file system made from a Debian package.

use super::home;
use std::fs;
use std::os::unix::fs::symlink;
use towline_testkit::{Home, until};

/// A home whose `tow` sees control groups as podman's runtime takes them: its own mount namespace
/// hides the second tree of a machine that has both.
fn containers() -> Home {
    let mut home = home();
    let real = home.binary().canonicalize().unwrap();
    let wrapper = home.path("tow");
    let text = format!(
        "#!/bin/sh\nexec unshare -m sh -c 'umount /sys/fs/cgroup/unified 2>/dev/null; \
            exec \"$0\" \"$@\"' {} \"$@\"\n",
        real.display()
    );
    towline_testkit::program(&wrapper, text);
    home.use_binary(&wrapper);
    let root = home.path("root");
    for folder in ["bin", "tmp", "proc", "dev", "sys", "etc", "run"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::copy("/bin/busybox", root.join("bin/busybox"))
        .expect("Debian's busybox-static is installed");
    for name in ["sh", "cat", "echo", "sleep", "ls", "true"] {
        symlink("busybox", root.join("bin").join(name)).unwrap();
    }
    home
}

/// Limits that this machine may raise no further.
const NATIVE: &str = "native: [--ulimit, 'nofile=1024:1024', --ulimit, 'nproc=1000:1000']";

fn job(home: &Home, more: &str) {
    home.write(
        "job.yaml",
        &format!(
            "environment: {{image: {}, {more}\n",
            home.path("root").display()
        ),
    );
}

#[test]
fn a_run_lives_in_its_image_with_its_code_set_up_ranks_and_secrets() {
    let mut home = containers();
    home.set("MY_TOKEN", "canary-in-the-image");
    home.set("HOST_ONLY", "leaked-from-the-shell");
    home.write("code.txt", "frozen");
    job(
        &home,
        &format!(
            "setup: ['echo once >> /tmp/made'], env: {{A: '1'}}, secrets: [MY_TOKEN]}}\nresources: \
                {{nodes: 2, {NATIVE}}}\nscript: |\n  #!/bin/sh\n  echo $RANK $A $MY_TOKEN \
                    [$HOST_ONLY]\n  cat code.txt /tmp/made\n  ls /\n  echo $RANK > out-$RANK\n"
        ),
    );
    let id = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    home.tow(["wait", &id]).ok();
    for rank in ["0", "1"] {
        let log = home.tow(["logs", &id, "--rank", rank]).ok().stdout;
        assert!(
            log.starts_with(&format!("{rank} 1 canary-in-the-image []\nfrozen")),
            "{log}"
        );
        // Busybox is all there is in that root, beside what is bound.
        assert!(log.contains("once") && !log.contains("\nusr\n"), "{log}");
        home.tow(["get", &id, &format!("out-{rank}"), "--to", "got"])
            .ok();
        assert_eq!(home.read(&format!("got/out-{rank}")), format!("{rank}\n"));
    }
    // What the run does not get is not kept either.
    let kept = |word: &str| {
        std::process::Command::new("grep")
            .args(["-rl", word])
            .arg(home.path("state"))
            .output()
            .unwrap()
            .stdout
    };
    assert!(
        kept("leaked-from-the-shell").is_empty() && !kept("frozen").is_empty(),
        "{}",
        String::from_utf8_lossy(&kept("leaked-from-the-shell"))
    );
}

#[test]
fn failures_inside_are_told_as_they_are_and_outside_as_the_images() {
    let home = containers();
    job(
        &home,
        &format!("}}\nresources: {{{NATIVE}}}\nscript: |\n  #!/bin/sh\n  exit 7\n"),
    );
    assert_eq!(home.tow(["run", "-f", "job.yaml"]).code, 7);
    let shown = home.show("@");
    assert_eq!(shown["reason"], "exit_code");
    home.write(
        "job.yaml",
        &format!(
            "environment: {{image: 'no-such-image:1'}}\nresources: {{{NATIVE}}}\ncommand: 'true'\n"
        ),
    );
    let failed = home.tow(["run", "-f", "job.yaml"]);
    assert_ne!(failed.code, 0);
    assert_eq!(home.show("@")["reason"], "image_pull");
    assert!(
        home.show("@")["detail"]
            .as_str()
            .unwrap()
            .contains("no-such-image"),
        "{failed:?}"
    );
    home.write(
        "job.yaml",
        "environment: {image: /no/such/root}\ncommand: 'true'\n",
    );
    assert_eq!(home.tow(["submit", "-f", "job.yaml"]).code, 123);
}

#[test]
fn an_aborted_container_leaves_nothing_behind() {
    let home = containers();
    job(
        &home,
        &format!(
            "}}\nresources: {{{NATIVE}}}\nscript: |\n  #!/bin/sh\n  echo begun\n  sleep 9{}\n",
            std::process::id()
        ),
    );
    let id = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    until("it to run", || {
        home.tow(["logs", &id])
            .stdout
            .contains("begun")
            .then_some(())
    });
    let marker = format!("9{}", std::process::id());
    let alive = || {
        let words = fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        words
            .filter(|words| String::from_utf8_lossy(words).contains(&format!("sleep\0{marker}")))
            .count()
    };
    until("its program to be seen", || (alive() > 0).then_some(()));
    home.tow(["abort", &id]).ok();
    assert_eq!(home.tow(["wait", &id]).code, 143);
    assert_eq!(alive(), 0);
}

#[test]
fn without_a_runtime_the_plan_is_refused() {
    let mut home = home();
    home.set("PATH", "/nowhere");
    home.write(
        "job.yaml",
        "environment: {image: 'pytorch:2'}\ncommand: 'true'\n",
    );
    let refused = home.tow(["submit", "-f", "job.yaml"]);
    assert_eq!(refused.code, 123);
    assert!(refused.stderr.contains("podman"), "{}", refused.stderr);
}

/// A `podman` on the `PATH` whose runtime needs control groups, as `runc` does. It starts what it
/// is given without a container.
fn with_runc(home: Home) -> Home {
    let bin = home.path("bin");
    fs::create_dir(&bin).unwrap();
    let script = r#"#!/bin/sh
[ "$1" = rm ] && exit 0
echo "$*" >> "$HOME/podman-calls"
case "$*" in *--cgroups=disabled*) echo 'Error: requested OCI runtime runc is not compatible with NoCgroups: invalid argument' >&2; exit 125 ;; esac
for word do case "$word" in *:/.towline-runner:ro) program=${word%%:*} ;; esac; folder=$word; done
exec "$program" __inner "$folder"
"#;
    towline_testkit::program(&bin.join("podman"), script);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    home.with("PATH", &path)
}

#[test]
fn podman_with_a_runtime_that_needs_control_groups_is_given_them() {
    let home = with_runc(home());
    home.write(
        "job.yaml",
        "environment: {image: 'x.test/y:1'}\ncommand: [sh, -c, 'echo inside']\n",
    );
    let ran = home.tow(["run", "-f", "job.yaml"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "inside\n"), "{ran:?}");
    let calls = fs::read_to_string(home.path("home/podman-calls")).unwrap();
    assert_eq!(calls.lines().count(), 2, "{calls}");
    home.write(
        "own.yaml",
        "environment: {image: 'x.test/y:1'}\nresources: \
        {native: [--cgroups=disabled]}\ncommand: 'true'\n",
    );
    assert_ne!(
        home.tow(["run", "-f", "own.yaml"]).code,
        0,
        "what the user says is not changed"
    );
    let why = home.tow(["why", "@"]).ok().stdout;
    assert!(
        why.contains("NoCgroups") && !why.contains("check the image's name"),
        "{why}"
    );
}

/// Without a GPU either image can run, and the only one that is named does.
#[test]
fn the_image_is_that_of_the_gpus_here() {
    let home = with_runc(home());
    for (gpus, images, wanted) in [
        (0, "amd: 'x.test/rocm:6'", Some("x.test/rocm:6")),
        (
            0,
            "nvidia: 'x.test/cuda:12', amd: 'x.test/rocm:6'",
            Some("x.test/cuda:12"),
        ),
        (
            1,
            "nvidia: 'x.test/cuda:12', amd: 'x.test/rocm:6'",
            Some("x.test/cuda:12"),
        ),
        (1, "amd: 'x.test/rocm:6'", None),
    ] {
        home.configure(&format!(
            "clusters:\n  local: {{kind: local, cpus: 2, gpus: {gpus}}}\n"
        ));
        home.write(
            "job.yaml",
            &format!("environment: {{image: {{{images}}}}}\ncommand: 'true'\n"),
        );
        let plan = home.tow(["submit", "-f", "job.yaml", "--dry-run"]);
        match wanted {
            Some(image) => assert!(plan.stdout.contains(image), "{gpus} {images}: {plan:?}"),
            None => assert!(
                plan.code == 123 && plan.stderr.contains("names none for nvidia GPUs"),
                "{gpus} {images}: {plan:?}"
            ),
        }
    }
}

#[test]
fn the_plan_says_that_an_image_inherits_nothing() {
    let home = with_runc(home());
    home.write(
        "job.yaml",
        "environment: {image: 'x.test/y:1'}\ncommand: 'true'\n",
    );
    let plan = home
        .tow(["submit", "-f", "job.yaml", "--dry-run"])
        .ok()
        .stdout;
    assert!(
        plan.contains("inherits  no variable of this shell")
            && !plan.contains("variables of this shell"),
        "{plan}"
    );
}
