//! Uploads what processes write: appended while they run, whole when they have ended.

use super::blobs::Blobs;
use super::document::{ARTIFACTS_CONTAINER, Job};
use super::world::World;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use towline_host::clock;

#[derive(Debug)]
pub(super) struct Log {
    blob: String,
    file: File,
    sent: u64,
}

impl Log {
    pub(super) fn new(blobs: &Blobs, blob: &str, file: &Path) -> Result<Self, String> {
        blobs.make_append(ARTIFACTS_CONTAINER, blob)?;
        Ok(Self {
            blob: blob.to_owned(),
            file: File::open(file).map_err(|error| error.to_string())?,
            sent: 0,
        })
    }

    /// Uploads new bytes. If the store fails, the next call uploads them.
    pub(super) fn upload_logs(&mut self, blobs: &Blobs) {
        if self
            .file
            .metadata()
            .is_ok_and(|facts| facts.len() == self.sent)
        {
            return;
        }
        let mut bytes = vec![0; 1 << 20];
        while let Ok(read @ 1..) = self.file.read_at(&mut bytes, self.sent) {
            if blobs
                .append(ARTIFACTS_CONTAINER, &self.blob, &bytes[..read])
                .is_err()
            {
                return;
            }
            self.sent += read as u64;
        }
    }
}

/// The platform's own log with the reason of a failure, written anew each time.
pub(super) fn write_system(world: &World, job: &str, states: &[String], error: Option<&str>) {
    let now = clock::now();
    let mut text = states.iter().fold(String::new(), |text, state| {
        text + &format!("{now} lifecycler: {state}\n")
    });
    if let Some(error) = error {
        text += &format!("{now} lifecycler: ERROR {error}\n");
    }
    let name = format!(
        "{}system_logs/lifecycler/lifecycler.log",
        Job::artifacts(job)
    );
    let _ = world
        .blobs
        .put(ARTIFACTS_CONTAINER, &name, text.into_bytes());
}
