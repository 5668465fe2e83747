//! The page of `tow ui` in a real browser: scripts of `ui/check/real`, run by Node.js and Chromium.

use crate::Home;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A page that is served until this is dropped.
#[derive(Debug)]
pub struct Page {
    server: Child,
    address: String,
}

impl Page {
    #[track_caller]
    pub fn serve(home: &Home) -> Self {
        let mut server = home
            .command(["ui", "--no-open", "--port", "0", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(server.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        Self {
            server,
            address: said["address"].as_str().unwrap().to_owned(),
        }
    }

    /// Runs one file of tests, which uses the page and the same home by the command line. Its runs
    /// go to that cluster. `more` are further variables of the file.
    #[track_caller]
    pub fn passes(&self, home: &Home, file: &str, cluster: &str, more: &[(&str, &Path)]) {
        let checks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/check");
        let file = checks.join("real").join(file);
        let tow = home.command(["ps"]);
        let mut node = Command::new("node");
        node.args(["--test", "--test-concurrency=1"])
            .arg(&file)
            .current_dir(home.project())
            .env_clear()
            .envs(
                tow.get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("TOW", home.binary())
            .env("TOW_PAGE", &self.address)
            .env("TOW_CLUSTER", cluster)
            .envs(more.iter().copied());
        // Pictures of the pages, for whoever wants to look at them.
        node.envs(std::env::var_os("TOW_SHOTS").map(|folder| ("TOW_SHOTS", folder)));
        let output = node.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let passed = said.lines().any(|line| {
            let count = line.strip_prefix("# pass ");
            count.is_some_and(|count| count.trim() != "0")
        });
        assert!(
            output.status.success() && passed,
            "{}:\n{said}\n{}",
            file.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
