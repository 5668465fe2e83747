//! The environment of a job's processes: all of this machine, a few of its programs, or a
//! container.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use towline_host::program::find_program;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Image {
    /// All of this machine, as root.
    WholeMachine,
    /// No bash, few programs, a user other than root, and a work folder that this user cannot
    /// write.
    Poor,
    /// A container of podman with a read-only root except `/tmp`, without users and certificates,
    /// with busybox alone; not root either.
    Container,
}

/// Programs of a small image.
const IMAGE_PROGRAMS: [&str; 22] = [
    "sh",
    "cat",
    "cp",
    "mv",
    "rm",
    "ls",
    "mkdir",
    "chmod",
    "mktemp",
    "touch",
    "echo",
    "printf",
    "sleep",
    "true",
    "false",
    "env",
    "id",
    "seq",
    "head",
    "tail",
    "grep",
    "sha256sum",
];
/// The user id of `nobody`.
const NOBODY_UID: &str = "65534";

/// The image of one attempt.
pub(super) struct Prepared {
    image: Image,
    /// Programs, or the container's root.
    folder: PathBuf,
    attempt: PathBuf,
    /// A certificate that the service puts into every container.
    authority: PathBuf,
}

impl Prepared {
    pub(super) fn new(image: Image, attempt: &Path, authority: &Path) -> std::io::Result<Self> {
        let folder = match image {
            Image::WholeMachine => PathBuf::new(),
            Image::Poor => few_programs(attempt)?,
            Image::Container => root(attempt)?,
        };
        if image != Image::WholeMachine {
            close(attempt)?;
        }
        Ok(Self {
            image,
            folder,
            attempt: attempt.to_owned(),
            authority: authority.to_owned(),
        })
    }

    /// The command of a job in its image. `setpriv` becomes the shell, which dies with the job's
    /// thread.
    pub(super) fn command(
        &self,
        wd: &Path,
        words: &str,
        variables: &[(String, String)],
    ) -> Command {
        let own = std::env::var("PATH").unwrap_or_default();
        let mut command =
            Command::new(find_program("setpriv", &own).unwrap_or_else(|| PathBuf::from("setpriv")));
        command
            .args(["--pdeathsig", "KILL"])
            .current_dir(wd)
            .env_clear();
        if self.image == Image::Container {
            self.in_container(&mut command, wd, variables);
            command.args(["sh", "-c", words]).env("PATH", own);
            return command;
        }
        let is_poor = self.image == Image::Poor;
        if is_poor && let Ok(own) = temporary_folder(wd) {
            // Its own, which goes with the job; the machine's would keep every copy of the program.
            command.env("TMPDIR", own);
        }
        if is_poor && rustix::process::geteuid().is_root() {
            command.args([
                "--reuid",
                NOBODY_UID,
                "--regid",
                NOBODY_UID,
                "--clear-groups",
            ]);
        }
        command.args(["--", if is_poor { "sh" } else { "bash" }, "-c", words]);
        command
            .env(
                "PATH",
                if is_poor {
                    self.folder.as_os_str()
                } else {
                    own.as_ref()
                },
            )
            .env("HOME", wd)
            .env("LANG", "C.UTF-8");
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Podman's runtime supports control groups only if there is one tree of them: the other is
    /// hidden in a mount namespace.
    fn in_container(&self, command: &mut Command, wd: &Path, variables: &[(String, String)]) {
        const HIDE_UNIFIED_CGROUPS: &str =
            "umount /sys/fs/cgroup/unified 2>/dev/null; exec \"$0\" \"$@\"";
        let bound = |path: &Path| format!("{0}:{0}", path.display());
        command.args([
            "--",
            "unshare",
            "-m",
            "sh",
            "-c",
            HIDE_UNIFIED_CGROUPS,
            "podman",
            "run",
            "--rm",
            "--network=host",
            "--pid=host",
        ]);
        command.args([
            "--read-only",
            "--user",
            NOBODY_UID,
            "--ulimit",
            "nofile=1024:1024",
            "--ulimit",
            "nproc=1000:1000",
        ]);
        command.args([
            "--volume",
            &bound(&self.attempt),
            "--volume",
            &format!("{}:ro", bound(&self.authority)),
        ]);
        command.arg("--workdir").arg(wd);
        for (name, value) in variables {
            command.arg("--env").arg(format!("{name}={value}"));
        }
        command.arg("--rootfs").arg(&self.folder);
    }
}

/// A folder with the programs of a small image.
fn few_programs(attempt: &Path) -> std::io::Result<PathBuf> {
    let programs = attempt.join("bin");
    std::fs::create_dir_all(&programs)?;
    let path = std::env::var("PATH").unwrap_or_default();
    for name in IMAGE_PROGRAMS {
        if let Some(found) = find_program(name, &path).filter(|_| !programs.join(name).exists()) {
            symlink(found, programs.join(name))?;
        }
    }
    Ok(programs)
}

/// The root of a container that has busybox, and folders that every container has.
fn root(attempt: &Path) -> std::io::Result<PathBuf> {
    let root = attempt.join("root");
    for folder in ["bin", "proc", "dev", "sys", "etc", "run", "tmp"] {
        std::fs::create_dir_all(root.join(folder))?;
    }
    let busybox = root.join("bin/busybox");
    if !busybox.exists() {
        std::fs::copy("/bin/busybox", &busybox)?;
        IMAGE_PROGRAMS
            .iter()
            .try_for_each(|name| symlink("busybox", root.join("bin").join(name)))?;
    }
    Ok(root)
}

/// Lets users other than root reach the nodes' folders, and write only to mounts.
fn close(attempt: &Path) -> std::io::Result<()> {
    let mut open: Vec<PathBuf> = attempt.ancestors().take(2).map(Path::to_owned).collect();
    open.extend(
        std::fs::read_dir(attempt)?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.is_dir()),
    );
    open.iter().try_for_each(|folder| {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))
    })?;
    for entry in std::fs::read_dir(attempt)?
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("node-"))
    {
        std::fs::set_permissions(
            entry.path().join("wd"),
            std::fs::Permissions::from_mode(0o555),
        )?;
    }
    Ok(())
}

/// A folder below the job's that anybody may write to.
fn temporary_folder(wd: &Path) -> std::io::Result<PathBuf> {
    let folder = wd.join("tmp");
    std::fs::create_dir_all(&folder)?;
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o1777))?;
    Ok(folder)
}
