//! Priority, limits and CPU affinity of processes. A process inherits them from its parent, so a
//! daemon would hand on those of the shell that happened to start it.

use rustix::process::{
    Pid, Resource, Rlimit, getpriority_process, getrlimit, prlimit, setpriority_process, setrlimit,
};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;
use towline_core::process_limits::ProcessLimits;

/// A limit, and when a new process gets it.
struct Limit {
    name: &'static str,
    resource: Resource,
    moment: Moment,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// The child inherits it: its parent has it while it starts the child.
    AtBirth,
    /// It is set on the child once it runs, because it would harm the parent: the parent would be
    /// killed for its CPU time, or have no memory.
    AfterBirth,
}

const fn limit(name: &'static str, resource: Resource, moment: Moment) -> Limit {
    Limit {
        name,
        resource,
        moment,
    }
}

/// Every limit of a process that is handed on.
const PROCESS_LIMITS: [Limit; 15] = [
    limit("as", Resource::As, Moment::AfterBirth),
    limit("core", Resource::Core, Moment::AtBirth),
    limit("cpu", Resource::Cpu, Moment::AfterBirth),
    limit("data", Resource::Data, Moment::AfterBirth),
    limit("fsize", Resource::Fsize, Moment::AtBirth),
    limit("locks", Resource::Locks, Moment::AtBirth),
    limit("memlock", Resource::Memlock, Moment::AtBirth),
    limit("msgqueue", Resource::Msgqueue, Moment::AtBirth),
    limit("nofile", Resource::Nofile, Moment::AtBirth),
    limit("nproc", Resource::Nproc, Moment::AtBirth),
    limit("rss", Resource::Rss, Moment::AtBirth),
    limit("rtprio", Resource::Rtprio, Moment::AtBirth),
    limit("rttime", Resource::Rttime, Moment::AfterBirth),
    limit("sigpending", Resource::Sigpending, Moment::AtBirth),
    limit("stack", Resource::Stack, Moment::AtBirth),
];

/// The nice value and the soft limits of this process.
pub fn own() -> ProcessLimits {
    let soft = PROCESS_LIMITS
        .iter()
        .map(|limit| (limit.name.to_owned(), getrlimit(limit.resource).current))
        .collect();
    ProcessLimits {
        nice: own_nice(),
        soft,
    }
}

fn own_nice() -> i32 {
    getpriority_process(None).unwrap_or(0)
}

/// Removes the limits of the starting shell, as far as the system allows it: all CPUs, no raised
/// nice value, soft limits as high as the hard ones. The stack and core limits stay, because they
/// matter only for children.
pub fn widen_own() {
    let mut all = CpuSet::new();
    for cpu in 0..CpuSet::MAX_CPU {
        all.set(cpu);
    }
    // The kernel ignores the CPUs that this process may not use.
    let _ = sched_setaffinity(None, &all);
    if own_nice() > 0 {
        let _ = setpriority_process(None, 0);
    }
    for limit in PROCESS_LIMITS
        .iter()
        .filter(|limit| !matches!(limit.resource, Resource::Stack | Resource::Core))
    {
        let Rlimit { maximum, .. } = getrlimit(limit.resource);
        let _ = setrlimit(
            limit.resource,
            Rlimit {
                current: maximum,
                maximum,
            },
        );
    }
}

/// Whether children of this process can have these limits.
pub fn can_give(wanted: &ProcessLimits) -> bool {
    let nice = own_nice();
    // A higher nice value is always allowed.
    let nice_is_fine = wanted.nice >= nice || setpriority_process(None, wanted.nice).is_ok();
    let _ = setpriority_process(None, nice);
    nice_is_fine
        && PROCESS_LIMITS.iter().all(|limit| {
            wanted
                .soft
                .get(limit.name)
                .is_none_or(|soft| may_be(limit.resource, *soft))
        })
}

/// Whether the soft limit may be raised to `soft`. Raises the hard limit if that is needed and
/// allowed.
fn may_be(resource: Resource, soft: Option<u64>) -> bool {
    let Rlimit { current, maximum } = getrlimit(resource);
    at_most(soft, maximum)
        || setrlimit(
            resource,
            Rlimit {
                current,
                maximum: soft,
            },
        )
        .is_ok()
}

const fn at_most(soft: Option<u64>, hard: Option<u64>) -> bool {
    match (soft, hard) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(soft), Some(hard)) => soft <= hard,
    }
}

fn lower(soft: Option<u64>, hard: Option<u64>) -> Option<u64> {
    if at_most(soft, hard) { soft } else { hard }
}

/// Starts a process with the `wanted` limits, or the nearest that are allowed. The limits of this
/// process are restored afterwards.
///
/// A nice value belongs to a thread and cannot be lowered again without a privilege. So a thread
/// that lives only for this call raises its own.
pub fn start_with<T: Send>(
    wanted: Option<&ProcessLimits>,
    start: impl FnOnce() -> io::Result<T> + Send,
    pid: impl FnOnce(&T) -> Option<Pid>,
) -> io::Result<T> {
    let Some(wanted) = wanted else { return start() };
    let started = if wanted.nice == own_nice() {
        at_birth(wanted, start)
    } else {
        let start = || {
            let _ = setpriority_process(None, wanted.nice);
            at_birth(wanted, start)
        };
        std::thread::scope(|scope| {
            std::thread::Builder::new()
                .name("start".into())
                .spawn_scoped(scope, start)?
                .join()
                .map_err(|_| io::Error::other("the start failed"))?
        })
    }?;
    if let Some(pid) = pid(&started) {
        for limit in PROCESS_LIMITS
            .iter()
            .filter(|limit| limit.moment == Moment::AfterBirth)
        {
            if let Some(soft) = wanted.soft.get(limit.name) {
                let Rlimit { current, maximum } = getrlimit(limit.resource);
                let soft = lower(*soft, maximum);
                if soft != current {
                    let _ = prlimit(
                        Some(pid),
                        limit.resource,
                        Rlimit {
                            current: soft,
                            maximum,
                        },
                    );
                }
            }
        }
    }
    Ok(started)
}

fn at_birth<T>(wanted: &ProcessLimits, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mut changed = Vec::new();
    for limit in PROCESS_LIMITS
        .iter()
        .filter(|limit| limit.moment == Moment::AtBirth)
    {
        let Some(soft) = wanted.soft.get(limit.name) else {
            continue;
        };
        let before = getrlimit(limit.resource);
        let soft = if may_be(limit.resource, *soft) {
            *soft
        } else {
            before.maximum
        };
        if soft != before.current
            && setrlimit(
                limit.resource,
                Rlimit {
                    current: soft,
                    maximum: getrlimit(limit.resource).maximum,
                },
            )
            .is_ok()
        {
            changed.push((limit.resource, before.current));
        }
    }
    let started = start();
    for (resource, current) in changed {
        let _ = setrlimit(
            resource,
            Rlimit {
                current,
                maximum: getrlimit(resource).maximum,
            },
        );
    }
    started
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn shown_by(wanted: &ProcessLimits, script: &str) -> String {
        let start = || {
            Command::new("sh")
                .args(["-c", script])
                .stdout(std::process::Stdio::piped())
                .spawn()
        };
        let child =
            start_with(Some(wanted), start, |child| Some(Pid::from_child(child))).expect("a shell");
        String::from_utf8(child.wait_with_output().expect("its output").stdout).expect("text")
    }

    #[test]
    fn a_child_has_the_limits_it_was_given_and_its_parent_keeps_its_own() {
        let before = own();
        let mut wanted = before.clone();
        wanted.nice = before.nice + 3;
        wanted.soft.insert("nofile".into(), Some(77));
        wanted.soft.insert("core".into(), Some(0));
        let shown = shown_by(&wanted, "ulimit -S -n; ulimit -S -c; ps -o ni= -p $$");
        assert_eq!(
            shown.split_whitespace().collect::<Vec<_>>(),
            ["77".to_owned(), "0".to_owned(), wanted.nice.to_string()]
        );
        assert_eq!(own(), before);
    }

    #[test]
    fn more_than_the_hard_limit_is_as_much_as_there_is() {
        assert_eq!(lower(None, Some(5)), Some(5));
        assert_eq!(lower(Some(9), Some(5)), Some(5));
        assert_eq!(lower(Some(3), Some(5)), Some(3));
        assert_eq!(lower(Some(3), None), Some(3));
        assert!(at_most(None, None) && !at_most(None, Some(1)));
    }
}
