//! Files of a run: its results below `outputs`, and the files that the service stores.

use super::super::memory::ObjectPlace;
use super::AzureCluster;
use towline_core::Result;
use towline_core::cluster::FileEntry;
use towline_core::cluster::RunRef;
use towline_wire::crew::keys;
impl AzureCluster {
    /// The path of a file that run history stores: any file of another tool's job, and the
    /// platform's logs of every job.
    pub(super) fn kept_by_service(&self, far: &RunRef, path: &str) -> Result<Option<String>> {
        let parts: Vec<&str> = path
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .collect();
        let path = parts.join("/");
        if path.is_empty() || parts.contains(&"..") {
            return Ok(None);
        }
        Ok((super::super::artifacts::is_of_the_platform(&path)
            || self.object_place(far)? == ObjectPlace::Foreign)
            .then_some(path))
    }

    /// The place in the stage of a path of the run's folder.
    pub(super) fn files_of(&self, far: &RunRef, path: &str) -> Result<Option<String>> {
        let path = path.trim_matches('/').trim_start_matches("code/");
        let parts: Vec<&str> = path
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .collect();
        if parts.first() != Some(&keys::OUTPUTS) || parts.contains(&"..") {
            return Ok(None);
        }
        Ok(match self.object_place(far)? {
            ObjectPlace::Stage(stage) => Some(format!(
                "{stage}/{}/{}",
                keys::run(&far.run),
                parts.join("/")
            )),
            ObjectPlace::Foreign => None,
        })
    }

    /// Lists the results of a run below `outputs` and the files that the service stores. There is
    /// nothing else, because its nodes are gone.
    pub(super) fn list(&self, run: &RunRef, path: &str) -> Result<Vec<FileEntry>> {
        if let Some(path) = self.kept_by_service(run, path)? {
            return self.artifacts(run, &path);
        }
        let Some(root) = self.files_of(run, path)? else {
            return Ok(Vec::new());
        };
        let items = self.with_stage(|objects| objects.list(&root))?;
        let below = |key: &str| match key.strip_prefix(&root)? {
            "" => Some(String::new()),
            rest => rest.strip_prefix('/').map(ToOwned::to_owned),
        };
        // A key may contain anything. A path that leads out of the folder is skipped.
        let is_inner = |path: &str| {
            std::path::Path::new(path)
                .components()
                .all(|part| matches!(part, std::path::Component::Normal(_)))
        };
        let listed = items
            .into_iter()
            .filter_map(|item| Some((below(&item.key).filter(|path| is_inner(path))?, item)));
        Ok(listed
            .map(|(path, item)| FileEntry {
                path,
                size: item.size,
                mode: 0o644,
                is_folder: false,
                link: None,
            })
            .collect())
    }
    pub(super) fn bytes_of(
        &self,
        run: &RunRef,
        path: &str,
        offset: u64,
        most: u64,
    ) -> Result<Vec<u8>> {
        if let Some(path) = self.kept_by_service(run, path)? {
            return self.artifact_bytes(run, &path, offset, most);
        }
        let Some(key) = self.files_of(run, path)? else {
            return Ok(Vec::new());
        };
        Ok(self
            .with_stage(|objects| objects.range(&key, offset..offset.saturating_add(most)))?
            .unwrap_or_default())
    }
}
