//! The data of a job: its stores on its cluster, and the secrets of their credentials.

mod folders;
mod job;
mod own_stores;
mod stores;

pub use folders::placing;
pub use job::{JobData, MOUNTERS, clean};
pub use stores::store;

use super::open_cluster::OpenCluster;
use super::outside::Outside;
use job::{job_data, same_data};
use towline_core::Result;
use towline_core::job::Job;
use towline_core::resolve::{CopyPlan, FrozenCode, IoPlan};

/// The data of a job on its cluster: what it asks for, or the data of the run it repeats.
pub fn on_cluster(
    outside: &dyn Outside,
    target: &OpenCluster,
    job: &Job,
    former: Option<(Vec<IoPlan>, Option<CopyPlan>)>,
    frozen: &mut Option<FrozenCode>,
) -> Result<JobData> {
    let caps = target.caps();
    if !caps.mounts_folders
        && let Some(frozen) = frozen
    {
        // Mounts of another kind of cluster mean nothing here.
        frozen.mapped.retain(|_, place| !place.is_io());
    }
    match former {
        Some((io, copy)) => {
            let data = same_data(outside, io, copy)?;
            own_stores::with_folders(outside, target, data, frozen)
        }
        None if caps.own_datastores.is_some() || caps.mounts_folders => {
            own_stores::job_data(outside, target, job, frozen)
        }
        None => job_data(outside, job, caps.is_here),
    }
}
