//! The clusters: what is free there, and which do not answer.

use super::event::Now;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;
use towline_core::time::Moment;
use towline_wire::api::stream::ClusterNews;

/// How long an answer counts. Each cluster is asked over the network for it.
const ASK_EVERY: Duration = Duration::from_secs(30);

/// The GPUs of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ClusterGpus {
    pub(crate) name: String,
    /// `ready`, or why it cannot be used.
    pub(crate) state: String,
    pub(crate) gpus: Option<u64>,
    pub(crate) gpus_free: Option<u64>,
}

impl ClusterGpus {
    pub(crate) fn is_ready(&self) -> bool {
        self.state == "ready"
    }
}

/// Why a cluster cannot be used, or is not heard of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) why: String,
    pub(crate) seen: Option<Moment>,
}

#[derive(Debug, Default)]
pub(crate) struct Clusters {
    /// In the order of the answer; this machine is one of them.
    pub(crate) gpus: Vec<ClusterGpus>,
    /// Clusters that do not answer, as the stream tells it.
    silent: BTreeMap<String, Trouble>,
    is_asked: bool,
    not_before: Duration,
}

impl Clusters {
    pub(crate) fn due(&self) -> Option<Duration> {
        (!self.is_asked).then_some(self.not_before)
    }

    pub(crate) fn ask_if_due(&mut self, now: Now) -> bool {
        let is_due = self.due().is_some_and(|due| due <= now.steady);
        self.is_asked |= is_due;
        is_due
    }

    /// Takes the answer. Without one the last stays: it is older, not wrong.
    pub(crate) fn take(&mut self, answer: Option<Vec<ClusterGpus>>, now: Now) {
        self.is_asked = false;
        self.not_before = now.steady + ASK_EVERY;
        if let Some(gpus) = answer {
            self.gpus = gpus;
        }
    }

    pub(crate) fn take_told(&mut self, told: &[ClusterNews]) {
        for cluster in told {
            match &cluster.trouble {
                Some(why) => {
                    let trouble = Trouble {
                        why: why.clone(),
                        seen: cluster.seen.map(|time| time.0),
                    };
                    self.silent.insert(cluster.name.clone(), trouble);
                }
                None => {
                    self.silent.remove(&cluster.name);
                }
            }
        }
    }

    /// The clusters with trouble, by name.
    pub(crate) fn troubles(&self) -> BTreeMap<&str, Trouble> {
        let not_ready = self.gpus.iter().filter(|cluster| !cluster.is_ready());
        let mut troubles: BTreeMap<&str, Trouble> = not_ready
            .map(|cluster| {
                let trouble = Trouble {
                    why: cluster.state.clone(),
                    seen: None,
                };
                (cluster.name.as_str(), trouble)
            })
            .collect();
        let silent = self.silent.iter();
        troubles.extend(silent.map(|(name, trouble)| (name.as_str(), trouble.clone())));
        troubles
    }
}
