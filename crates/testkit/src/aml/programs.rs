//! Programs of others against the emulator: Microsoft's client, driven by a small file, and `az`.

use super::Aml;
use crate::real::{self, Said};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The folder of drivers.
const DRIVERS_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/aml/certify");

impl Aml {
    /// A program whose environment names the emulator and nothing else.
    pub fn program(&self, file: &Path, home: &Path) -> Command {
        let mut command = Command::new(file);
        let scope = self.scope();
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            .env("TMPDIR", home)
            .env("PYTHONUTF8", "1")
            .current_dir(home);
        command
            .envs(self.identity())
            .env("REQUESTS_CA_BUNDLE", self.authority())
            .env("AZUREML_RUN_POLLING_INTERVAL_MIN", "1");
        command
            .env("AML_ENDPOINT", self.endpoint())
            .env("AML_STORAGE", self.storage_suffix())
            .env("AML_KEY", self.azurite().key());
        command
            .env("AML_SUBSCRIPTION", scope.subscription)
            .env("AML_GROUP", scope.group)
            .env("AML_WORKSPACE", scope.workspace);
        command
            .env("AML_CLUSTER", self.cluster())
            .env("AML_EXPIRED", self.token(self.endpoint(), -10));
        command.stdin(Stdio::null());
        command
    }

    /// Microsoft's client, driven by one of the files in `certify/`.
    #[track_caller]
    pub fn client(&self, driver: &str, home: &Path, words: &[&str]) -> Command {
        let mut command = self.program(&real::part("azureml/bin/python"), home);
        command
            .args([
                OsString::from("-B"),
                Path::new(DRIVERS_FOLDER).join(driver).into(),
            ])
            .args(words);
        command
    }

    /// Installs the real `az` as a program in this folder, with the emulator in its environment.
    pub fn install_az(&self, bin: &Path) -> PathBuf {
        std::fs::create_dir_all(bin).unwrap();
        let [(_, endpoint), (_, secret)] = self.identity();
        let script = format!(
            "#!/bin/sh\nexport IDENTITY_ENDPOINT='{endpoint}' IDENTITY_HEADER='{secret}' \
                REQUESTS_CA_BUNDLE='{}' HOME='{}'\n\
             export AZURE_CORE_COLLECT_TELEMETRY=false AZURE_CORE_INSTANCE_DISCOVERY=false \
                 PYTHONUTF8=1\nexec '{}' -B -m azure.cli \"$@\"\n",
            self.authority().display(),
            bin.display(),
            real::part("az/bin/python").display(),
        );
        let az = bin.join("az");
        crate::program(&az, script);
        az
    }

    /// Signs in this profile of the Azure CLI.
    #[track_caller]
    pub fn az_login(&self, az: &Path, profile: &Path) {
        for words in [
            &[
                "cloud",
                "register",
                "--name",
                "TowCloud",
                "--endpoint-resource-manager",
                self.endpoint(),
            ][..],
            &["cloud", "set", "--name", "TowCloud"],
            &["login", "--identity"],
        ] {
            let output = Command::new(az)
                .args(words)
                .env("AZURE_CONFIG_DIR", profile)
                .output()
                .unwrap();
            assert!(
                output.status.success(),
                "{words:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }

    /// The real `az`, with a home of its own.
    #[track_caller]
    pub fn az(&self, home: &Path, words: &[&str]) -> Said {
        let mut command = self.program(&real::part("az/bin/python"), home);
        command.args(["-B", "-m", "azure.cli"]).args(words).args([
            "--output",
            "json",
            "--only-show-errors",
        ]);
        command
            .env("AZURE_CONFIG_DIR", home.join("az"))
            .env("AZURE_CORE_COLLECT_TELEMETRY", "false")
            .env("AZURE_CORE_INSTANCE_DISCOVERY", "false");
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Said {
            good: status.success(),
            stdout: text(&stdout),
            stderr: text(&stderr),
        }
    }
}

/// The output of a program by lines; fails the test if the program fails.
#[track_caller]
pub fn output_lines(mut command: Command) -> Vec<String> {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = String::from_utf8_lossy(&stdout).into_owned();
    assert!(
        status.success(),
        "{command:?}\n{text}\n{}",
        String::from_utf8_lossy(&stderr)
    );
    text.lines().map(ToOwned::to_owned).collect()
}
