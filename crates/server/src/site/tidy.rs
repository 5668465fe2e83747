//! Programs in the stage folder that nobody needs any more. Each version of `tow` brings itself, and
//! a job starts with the one that submitted it, however long it waits. One goes when no site of that
//! version was there for a month and no submission that may still start something names it.
//! Whoever comes back with it brings it again.

use super::Site;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};
use towline_core::RunId;
use towline_runner::far::records;
use towline_wire::site::FarRun;

const UNUSED: Duration = Duration::from_secs(30 * 86_400);
/// How often one site looks.
const EVERY: Duration = Duration::from_secs(86_400);

impl Site {
    /// What cannot be looked at or removed stays.
    pub(super) fn tidy(&mut self) {
        if self.observed.tidied.is_some_and(|at| at.elapsed() < EVERY) {
            return;
        }
        self.observed.tidied = Some(Instant::now());
        let Ok(own) = fs::read_link("/proc/self/exe") else { return };
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(towline_host::clock::now().0).unwrap_or(0));
        // Of use today, whatever the day it was brought.
        let _ = File::open(&own).and_then(|file| file.set_modified(now));
        let mut old = self.old_programs(now);
        old.retain(|(name, _)| own.file_name().is_none_or(|own| own != name.as_str()));
        if old.is_empty() {
            return;
        }
        let Some(needed) = self.needed_scripts() else { return };
        for (_, path) in old.into_iter().filter(|(name, _)| !needed.iter().any(|script| script.contains(name))) {
            let _ = fs::remove_file(path);
        }
    }

    fn old_programs(&self, now: SystemTime) -> Vec<(String, PathBuf)> {
        let folder = self.stage.program("").parent().map(fs::read_dir);
        let Some(Ok(entries)) = folder else { return Vec::new() };
        let is_old = |entry: &fs::DirEntry| {
            let changed = entry.metadata().and_then(|meta| meta.modified());
            changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|age| age > UNUSED))
        };
        let named = entries.flatten().filter(is_old).filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
        named.filter(|(name, _)| name.strip_prefix("tow-").is_some_and(|digest| digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit()))).collect()
    }

    /// The scripts of submissions that may still start something; nothing where not all can be read.
    fn needed_scripts(&self) -> Option<Vec<String>> {
        let mut scripts = Vec::new();
        for entry in fs::read_dir(self.stage.submissions()).ok()? {
            let Some(submission) = entry.ok()?.file_name().into_string().ok().and_then(|name| RunId::try_from(name).ok()) else { continue };
            if self.is_done(&submission) {
                continue;
            }
            match fs::read_to_string(self.stage.script(&submission)) {
                Ok(script) => scripts.push(script),
                // Not handed over yet: it is written anew then.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(_) => return None,
            }
        }
        Some(scripts)
    }

    fn is_done(&self, submission: &RunId) -> bool {
        let Ok(order) = records::order(&self.stage, submission) else { return false };
        let is_refused = self.jobs(submission).is_ok_and(|jobs| jobs.is_refused());
        is_refused || order.plan.runs.iter().all(|run| self.is_over(&FarRun::of(&run.id)).unwrap_or(false))
    }
}
