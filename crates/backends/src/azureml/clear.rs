//! Removes the status documents of ended runs from the listing of active ones. Only our own: a
//! colleague removes their own.

use super::cluster::AzureCluster;
use super::memory::ObjectPlace;
use towline_core::cluster::{RunRef, RunReport};
use towline_core::{Result, RunId};
use towline_wire::crew::keys;

impl AzureCluster {
    /// The stage of a run, if it is our own.
    pub(super) fn stage_of_ours(&self, far: &RunRef) -> Result<Option<String>> {
        Ok(match self.object_place(far)? {
            ObjectPlace::Stage(stage) if self.is_own_stage(&stage) => Some(stage),
            _ => None,
        })
    }

    /// Removes the status documents of runs that are over from the common listing, so that it stays
    /// short. A copy stays with the run.
    pub(super) fn clear_status_documents(&self, reports: &[RunReport]) {
        let over: Vec<(RunId, String)> = {
            let memory = self.memory();
            let is_over = |report: &&RunReport| {
                memory.finals.contains_key(&report.run)
                    && memory
                        .status_document
                        .get(&report.run)
                        .is_some_and(|(version, _)| !version.is_empty())
            };
            let stage = |run: &RunId| match memory.object_place.get(run) {
                Some(ObjectPlace::Stage(stage)) if self.is_own_stage(stage) => {
                    Some((run.clone(), stage.clone()))
                }
                _ => None,
            };
            reports
                .iter()
                .filter(is_over)
                .filter_map(|report| stage(&report.run))
                .collect()
        };
        for (run, stage) in over {
            let at = |key: String| format!("{stage}/{key}");
            let _ = self.with_stage(|objects| {
                match objects.sizes(&[at(keys::last_status(&run))])?.first() {
                    Some(Some(_)) => objects.delete(&[at(keys::status(&run))]),
                    _ => Ok(()),
                }
            });
            if let Some((version, _)) = self.memory().status_document.get_mut(&run) {
                version.clear();
            }
        }
    }
}
