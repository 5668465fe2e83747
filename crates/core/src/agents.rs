//! What agents may do: programs that act for the user by `tow mcp`.

use crate::job::Job;
use crate::plan::Plan;
use crate::{Error, Result};
use serde::Deserialize;

/// The part of the user's own configuration that lets agents act. Nothing is allowed without it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Agents {
    /// The clusters whose runs they may see, and where they may submit.
    pub clusters: Vec<String>,
    /// The GPU-hours that their runs may take in `days`.
    pub gpu_hours: Option<u32>,
    /// How far back their runs count [default: 30].
    pub days: Option<u32>,
}

/// How far back runs count, unless the user says otherwise.
const DEFAULT_DAYS: u32 = 30;
/// A name of an agent is cut to so many characters.
const MAX_NAME_CHARACTERS: usize = 64;

/// GPU-time, in seconds of one GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct GpuTime(pub u64);

impl GpuTime {
    pub const fn of(gpus: u64, seconds: u64) -> Self {
        Self(gpus.saturating_mul(seconds))
    }
    pub const fn hours(hours: u32) -> Self {
        Self(hours as u64 * 3600)
    }
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::fmt::Display for GpuTime {
    /// In hours. A small rest is not rounded to nothing.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hundredths = self.0.saturating_mul(100).div_ceil(3600);
        let (hours, rest) = (hundredths / 100, hundredths % 100);
        match rest {
            0 if hours == 1 => f.write_str("1 GPU-hour"),
            0 => write!(f, "{hours} GPU-hours"),
            rest => write!(f, "{hours}.{rest:02} GPU-hours"),
        }
    }
}

/// What the user allows, complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance {
    pub clusters: Vec<String>,
    pub budget: GpuTime,
    pub days: u32,
}

impl Agents {
    /// What is allowed; an error if the user has not said so.
    pub fn allowance(&self) -> Result<Allowance> {
        let hours = self.gpu_hours.filter(|_| !self.clusters.is_empty());
        let Some(hours) = hours else {
            return Err(Error::refused(
                "agents may do nothing here: the user's configuration names no clusters and \
                    GPU-hours for them",
            )
            .hint(
                "only the user can allow it, in ~/.config/towline/config.yaml: agents: {clusters: \
                    [NAME], gpu_hours: 24}",
            ));
        };
        Ok(Allowance {
            clusters: self.clusters.clone(),
            budget: GpuTime::hours(hours),
            days: self.days.unwrap_or(DEFAULT_DAYS),
        })
    }
}

impl Allowance {
    pub fn check_cluster(&self, name: &str) -> Result<()> {
        if self.clusters.iter().any(|allowed| allowed == name) {
            return Ok(());
        }
        let hint = format!("clusters for agents: {}", self.clusters.join(", "));
        Err(Error::refused(format!("agents may not use cluster `{name}`")).hint(hint))
    }

    /// Refuses a plan that could take more than is left. `taken` is what the agents' runs took and
    /// have reserved.
    pub fn check_plan(&self, plan: &Plan, taken: GpuTime) -> Result<()> {
        self.check_cluster(&plan.cluster)?;
        let takes = reserved(plan)?;
        let left = self.budget.minus(taken);
        if takes > left {
            let error = Error::refused(format!(
                "it could take {takes}, and {left} of the {} in {} days are left for agents",
                self.budget, self.days
            ));
            return Err(error.hint("fewer GPUs or a shorter time; only the user can allow more"));
        }
        Ok(())
    }
}

/// The GPU-time that a plan could take: GPUs × time limit × starts, for every run.
pub fn reserved(plan: &Plan) -> Result<GpuTime> {
    let resolved = &plan.resolved;
    let Some(limit) = resolved.time else {
        return Err(Error::refused("an agent's job needs a time limit")
            .hint("give `time`, such as 2h: GPUs × time is reserved"));
    };
    let starts = match &resolved.retry {
        Some(retry)
            if retry
                .when
                .iter()
                .any(|cause| retry.is_unlimited_after(*cause)) =>
        {
            return Err(Error::refused(
                "an agent's job may not start again without limit",
            ));
        }
        Some(retry) => retry.max_starts().max(1),
        None => 1,
    };
    let starts = plan.gpus_taken().saturating_mul(starts.into());
    let all = starts.saturating_mul(plan.runs.len() as u64);
    Ok(GpuTime::of(all, limit.0))
}

/// Refuses what would let a job take more than its size and its time say, or see what is not the
/// agent's.
pub fn check_job(job: &Job) -> Result<()> {
    let not_for_agents = |what: &str| {
        Err(Error::refused(format!("an agent's job may not {what}"))
            .hint("the user can submit it: tow submit"))
    };
    if !job.resources.native.is_empty() {
        return not_for_agents("pass options to the scheduler (`native`)");
    }
    if !job.environment.secrets.is_empty() {
        return not_for_agents("use the user's secrets");
    }
    if job.hold_on_failure.is_some() {
        return not_for_agents("hold its nodes after a failure");
    }
    Ok(())
}

/// The name under which an agent is recorded: what it calls itself, harmless.
pub fn name_of(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.+@ ".contains(c);
    let kept: String = text
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .take(MAX_NAME_CHARACTERS)
        .collect();
    match kept.trim() {
        "" => "agent".to_owned(),
        kept => kept.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents(clusters: &[&str], gpu_hours: Option<u32>) -> Agents {
        Agents {
            clusters: clusters.iter().map(|name| (*name).to_owned()).collect(),
            gpu_hours,
            days: None,
        }
    }

    #[test]
    fn nothing_is_allowed_unless_both_are_named() {
        for silent in [
            agents(&[], None),
            agents(&["lab"], None),
            agents(&[], Some(9)),
        ] {
            assert!(silent.allowance().is_err(), "{silent:?}");
        }
        let allowed = agents(&["lab"], Some(9)).allowance().expect("allowed");
        assert_eq!((allowed.budget, allowed.days), (GpuTime(9 * 3600), 30));
        assert!(allowed.check_cluster("lab").is_ok());
        assert!(allowed.check_cluster("local").is_err(), "it is not named");
        assert!(allowed.check_cluster("la").is_err());
    }

    #[test]
    fn gpu_time_is_written_in_hours_and_never_wraps() {
        for (time, text) in [
            (GpuTime(0), "0 GPU-hours"),
            (GpuTime(1), "0.01 GPU-hours"),
            (GpuTime(5400), "1.50 GPU-hours"),
            (GpuTime::hours(24), "24 GPU-hours"),
        ] {
            assert_eq!(time.to_string(), text);
        }
        assert_eq!(GpuTime::of(u64::MAX, 2), GpuTime(u64::MAX));
        assert_eq!(GpuTime(u64::MAX).plus(GpuTime(1)), GpuTime(u64::MAX));
        assert_eq!(GpuTime(1).minus(GpuTime(2)), GpuTime(0));
    }

    #[test]
    fn names_are_harmless() {
        assert_eq!(name_of("claude-code 2.1"), "claude-code 2.1");
        assert_eq!(name_of("\u{1b}[31mred\n"), "__31mred_");
        assert_eq!(name_of("  "), "agent");
        assert_eq!(name_of(&"x".repeat(500)).len(), 64);
    }
}
