//! The page's own checks: its types, its components, and the whole page in Chromium before a
//! program that plays `tow`. The page on the real program is tried by the suites of `towline`.

use crate::{Outcome, install, root};
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// What the checks said, and the minutes they took.
pub(crate) struct Checked {
    pub(crate) minutes: f64,
    pub(crate) outcome: Outcome,
}

/// Runs all checks. They have a browser each and little to do for it, so they run beside suites
/// that wait for clusters; what they say goes to a file, and is printed if they fail.
pub(crate) fn check() -> Checked {
    let begun = Instant::now();
    let outcome = all();
    Checked {
        minutes: begun.elapsed().as_secs_f64() / 60.0,
        outcome,
    }
}

fn all() -> Outcome {
    let path = install::parts().join("page-checks.log");
    let log = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let said = || {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let last: Vec<&str> = text.lines().rev().take(400).collect();
        last.into_iter().rev().collect::<Vec<_>>().join("\n")
    };
    let steps: [(&str, &[&str]); 4] = [
        ("..", &["npx", "--no-install", "vite", "build"]),
        (".", &["npm", "run", "check"]),
        (".", &["npm", "test"]),
        (".", &["npm", "run", "e2e"]),
    ];
    for (folder, words) in steps {
        let (program, words) = words.split_first().ok_or("no program")?;
        let mut command = Command::new("nice");
        command.args(["-n", "5", program]).args(words);
        command
            .current_dir(folder_of_checks().join(folder))
            .env("TOW_UI_OUT", root().join("target/page-checked"))
            .env("PATH", install::path_with_node())
            .stdout(log.try_clone().map_err(|error| error.to_string())?)
            .stderr(log.try_clone().map_err(|error| error.to_string())?);
        crate::run_within(LIMIT, &mut command)
            .map_err(|error| format!("the page: {error}\n{}", said()))?;
    }
    Ok(())
}

/// All together take four minutes on two idle cores.
const LIMIT: Duration = Duration::from_secs(15 * 60);

fn folder_of_checks() -> PathBuf {
    root().join("ui/check")
}
