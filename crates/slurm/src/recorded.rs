//! The readers against answers of real clusters (`samples/README.md`).

use super::parse::ids::JobId;
use super::parse::values::{Limit, Resources};
use super::parse::{
    accounting, config, hosts, job, node, partition, qos, queue, reservation, share,
};
use super::reasons;
use super::state::{Native, native};
use towline_core::ErrorKind;
use towline_core::reason::Cause;
use towline_core::time::Moment;

macro_rules! versions {
    ($file:literal) => {
        [
            ("20.11", include_str!(concat!("samples/20.11/", $file))),
            ("22.05", include_str!(concat!("samples/22.05/", $file))),
            ("24.11", include_str!(concat!("samples/24.11/", $file))),
        ]
    };
}
pub(super) use versions;

fn row<'a>(rows: &'a [queue::QueueRow], name: &str) -> &'a queue::QueueRow {
    rows.iter()
        .find(|row| row.name == name)
        .unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn the_queue_of_every_version() {
    for (version, text) in versions!("queue.txt") {
        let rows = queue::read(text).expect(version);
        assert!(rows.len() >= 25, "{version}: {}", rows.len());
        for row in &rows {
            assert!(
                !matches!(native(&row.state), Native::Unknown(_)),
                "{version}: {row:?}"
            );
            assert_eq!(
                (row.user.as_str(), row.account.as_deref()),
                ("alice", Some("lab"))
            );
            if let Some(reason) = &row.reason {
                assert!(
                    !reasons::explain(reason).text.starts_with("Slurm says"),
                    "{version}: {reason}"
                );
            }
        }
        let gpu = row(&rows, "a|b c");
        assert_eq!(
            gpu.comment.as_deref(),
            Some("towline run x=y JobState=DONE")
        );
        assert_eq!(
            (native(&gpu.state), gpu.time_limit, gpu.nodes.as_str()),
            (Native::Running, Some(Limit::At(1_800)), "c1")
        );
        assert!(
            gpu.start
                .is_some_and(|start| start > Moment(1_794_749_000_000))
                && gpu.time_used < Some(60)
                && gpu.time_left > Some(1_700)
        );
        assert_eq!(
            row(&rows, "two\nlines").comment.as_deref(),
            Some("first\nsecond")
        );
        assert!(
            rows.iter().any(|row| row.name.ends_with("nit\u{1e}record")),
            "{version}: marks in a name"
        );
        let pending = rows
            .iter()
            .find(|row| row.name == "array" && row.state == "PENDING")
            .expect("an array");
        let ids: Vec<String> = pending.ids().iter().map(ToString::to_string).collect();
        let array = pending.id.job;
        assert_eq!(
            ids,
            [0, 1, 2, 6, 7].map(|task| format!("{array}_{task}")),
            "{version}: after a preemption"
        );
        assert!(rows.iter().any(|row| row.id
            == JobId::read(&format!("{array}_3")).expect("a task")
            && row.state == "RUNNING"));
        assert_eq!(
            row(&rows, "small2").reason.as_deref(),
            Some("QOSMaxGRESPerUser")
        );
        assert!(
            row(&rows, "held")
                .reason
                .as_deref()
                .is_some_and(|reason| reasons::explain(reason).forever)
        );
        assert!(
            row(&rows, "requeued-held")
                .reason
                .as_deref()
                .is_some_and(|reason| reasons::explain(reason).forever)
        );
    }
}

#[test]
fn a_torn_queue_is_no_answer() {
    let (_, text) = versions!("queue.txt")[1];
    assert!(queue::read("").expect("nothing waits").is_empty());
    assert!(
        queue::read("Welcome to lab\n")
            .expect("nothing waits")
            .is_empty()
    );
    for cut in [text.len() - 2, text.len() - 30] {
        assert_eq!(
            queue::read(&text[..cut]).expect_err("torn").kind(),
            ErrorKind::Unreachable,
            "{cut}"
        );
    }
    assert!(queue::read(&format!("CLUSTER: b\n{text}")).is_ok());
}

#[test]
fn the_accounting_of_every_version() {
    for (version, text) in versions!("accounting.txt") {
        let rows = accounting::read(text).expect(version);
        let of = |name: &str| {
            rows.iter()
                .filter(|row| row.name == name && row.id.step.is_none())
                .collect::<Vec<_>>()
        };
        let again = of("again");
        let states: Vec<Native> = again.iter().map(|row| native(&row.state)).collect();
        // 20.11 drops the first start.
        let starts = if version == "20.11" {
            vec![Native::Running]
        } else {
            vec![Native::Waiting, Native::Running]
        };
        assert_eq!(states, starts, "{version}: {again:?}");
        assert_eq!(
            again.last().and_then(|row| row.restarts),
            (version == "24.11").then_some(1)
        );
        let cancelled = of("cancelled")[0].ending().expect("ended");
        assert_eq!(
            (cancelled.cause, cancelled.exit_code),
            (Some(Cause::ByUser), Some(143))
        );
        let steps = of("array-steps")[0];
        assert_eq!(
            (steps.exit.code, steps.derived_exit.map(|pair| pair.code)),
            (3, Some(4))
        );
        assert_eq!(
            rows.iter()
                .filter(|row| row.id.job == steps.id.job && row.id.step.is_some())
                .count(),
            3,
            "{version}"
        );
        assert_eq!(
            of("killed")[0].ending().and_then(|ending| ending.cause),
            Some(Cause::Signal)
        );
        assert_eq!(
            of("basic")[0].ending().and_then(|ending| ending.cause),
            Some(Cause::Preempted)
        );
        assert_eq!(
            of("two\nlines")[0].comment.as_deref(),
            Some("first\nsecond")
        );
        assert_eq!(of("a|b c")[0].comment, None, "stored when the job ends");
        let waiting = of("toolong")[0];
        assert_eq!(
            (waiting.start, waiting.nodes.as_str(), waiting.time_limit),
            (None, "", Some(Limit::At(3_600)))
        );
        assert!(
            of("held").is_empty(),
            "{version}: sacct does not list jobs that may not start"
        );
        let task = of("array")
            .into_iter()
            .find(|row| row.id.to_string().ends_with("_3"))
            .expect("a task");
        assert_ne!(task.job, task.id.job, "a task has a number of its own");
    }
    let refused = accounting::read(include_str!("samples/24.11/accounting.txt")).expect("rows");
    let refused = refused
        .iter()
        .find(|row| row.name == "toomany")
        .expect("what sbatch was refused");
    assert_eq!(
        refused.ending().and_then(|ending| ending.cause),
        Some(Cause::Rejected)
    );
}

#[test]
fn endings_are_told_apart() {
    let rows = accounting::read(include_str!("samples/22.05/endings.txt")).expect("rows");
    let cause = |name: &str| {
        rows.iter()
            .find(|row| row.name == name)
            .and_then(accounting::AccountingRow::ending)
            .map(|ending| ending.cause)
    };
    assert_eq!(cause("toomany"), Some(Some(Cause::ByUser)));
    assert_eq!(cause("badout"), Some(Some(Cause::NotStarted)));
    assert_eq!(cause("tlimit"), Some(Some(Cause::TimeLimit)));
    assert_eq!(cause("nodefail"), Some(Some(Cause::NodeFailed)));
    assert_eq!(cause("baddir"), Some(None));
    assert_eq!(cause("alloc"), None);
}

#[test]
fn the_jobs_of_every_version() {
    for (version, text) in versions!("jobs.txt") {
        let jobs = job::read(text).expect(version);
        let of = |name: &str| {
            jobs.iter()
                .find(|job| job.name == name)
                .unwrap_or_else(|| panic!("{version}: no {name}"))
        };
        let gpu = of("a|b c");
        assert_eq!(
            (gpu.state.as_str(), gpu.comment.as_deref()),
            ("RUNNING", Some("towline run x=y JobState=DONE"))
        );
        assert_eq!(
            (gpu.resources.gpus(), gpu.resources.memory()),
            (Some(2), Some(256 << 20))
        );
        assert_eq!(
            (
                gpu.user.as_str(),
                gpu.batch_host.as_deref(),
                gpu.output.as_deref()
            ),
            ("alice", Some("c1"), Some("/dev/null"))
        );
        assert_eq!(
            (gpu.workdir.as_deref(), gpu.requeue, gpu.time_limit),
            (Some("/home/alice"), true, Some(Limit::At(1_800)))
        );
        assert_eq!(of("two\nlines").comment.as_deref(), Some("first\nsecond"));
        assert_eq!(
            (of("again").restarts, of("again").state.as_str()),
            (1, "RUNNING")
        );
        assert_eq!(
            of("killed").ending().and_then(|ending| ending.cause),
            Some(Cause::Signal)
        );
        let array = jobs
            .iter()
            .find(|job| job.name == "array" && job.job == job.id.job)
            .expect("the array itself");
        assert!(
            array
                .id
                .covers(&JobId::read(&format!("{}_7", array.job)).expect("a task")),
            "{version}: {array:?}"
        );
        let held = of("requeued-held").reason.as_deref().map(reasons::explain);
        assert!(held.is_some_and(|held| held.forever && held.text.contains("held")));
    }
    let refused = job::read(include_str!("samples/24.11/jobs.txt")).expect("jobs");
    let refused = refused
        .iter()
        .find(|job| job.name == "toomany")
        .and_then(job::JobDetail::ending);
    assert_eq!(
        refused.and_then(|ending| ending.cause),
        Some(Cause::Rejected)
    );
    for (version, text) in versions!("unknown.txt") {
        assert!(job::is_unknown(text), "{version}");
    }
    assert!(
        job::read("Job 2_5 not found\n")
            .expect("an answer")
            .is_empty()
    );
    assert!(job::read("").is_err());
}

#[test]
fn the_nodes_of_every_version() {
    for (version, text) in versions!("nodes.txt") {
        let nodes = node::read(text).expect(version);
        let [c1, c2, c3] = &nodes[..3] else {
            panic!("{version}: {nodes:?}")
        };
        assert_eq!(
            (c1.cpus, c1.cpus_used, c1.memory, c1.memory_used),
            (8, 2, 4 << 30, 306 << 20),
            "{version}"
        );
        assert_eq!(
            c1.gpus,
            [node::Gpus {
                kind: Some("h200".into()),
                count: 4,
                used: 3
            }]
        );
        assert_eq!(c1.partitions, ["main", "debug"]);
        assert_eq!(
            (c2.gpu_count(), c2.gpus_used(), c2.reason.as_deref()),
            (4, 0, None)
        );
        assert!(c1.is_usable() && c2.is_usable() && !c3.is_usable());
        assert_eq!(c3.state, ["IDLE", "DRAIN"]);
        assert!(
            c3.reason
                .as_deref()
                .is_some_and(|reason| reason.starts_with("fan = loud, X=1 of 2 [root@")),
            "{version}: {:?}",
            c3.reason
        );
    }
    let down = node::read(include_str!("samples/22.05/nodes.txt"))
        .expect("nodes")
        .pop()
        .expect("c4");
    assert_eq!(
        (
            down.name.as_str(),
            down.state.join("+").as_str(),
            down.is_usable()
        ),
        ("c4", "DOWN+NOT_RESPONDING", false)
    );
    let odd = node::read(
        "NodeName=x State=DOWN*+DRAIN \
        Gres=gpu:a100:2(S:0,1),gpu:a100:2(S:2-3),gpu:1,shard:8 \
            GresUsed=gpu:a100:3(IDX:0,2-3),gpu:0\n",
    )
    .expect("a node");
    assert_eq!(odd[0].state, ["DOWN", "DRAIN", "NOT_RESPONDING"]);
    assert_eq!(
        (
            odd[0].gpus[0].count,
            odd[0].gpus[0].used,
            odd[0].gpus[1].count
        ),
        (4, 3, 1)
    );
}

#[test]
fn the_partitions_of_every_version() {
    for (version, text) in versions!("partitions.txt") {
        let partitions = partition::read(text).expect(version);
        let [main, debug] = partitions.as_slice() else {
            panic!("{version}: {partitions:?}")
        };
        assert_eq!(
            (
                main.name.as_str(),
                main.is_default,
                main.is_up(),
                main.total_nodes
            ),
            ("main", true, true, 3)
        );
        assert_eq!(
            (main.max_time, main.max_nodes),
            (Some(Limit::At(604_800)), Some(Limit::Unlimited))
        );
        assert_eq!(
            (debug.max_time, debug.default_time, debug.is_default),
            (Some(Limit::At(1_800)), Some(Limit::At(300)), false)
        );
        assert!(main.allows_qos("any") && main.allows_account("any"));
        assert_eq!(
            hosts::expand(&main.nodes).expect("hosts"),
            ["c1", "c2", "c3"]
        );
    }
}

#[test]
fn the_configuration_of_every_version() {
    for ((version, text), (_, printed)) in versions!("config.txt")
        .into_iter()
        .zip(versions!("version.txt"))
    {
        let site = config::read(text).expect(version);
        assert_eq!(
            (site.cluster.as_str(), site.controllers.join(" ").as_str()),
            ("towtest", "ctl(10.77.0.4)")
        );
        assert_eq!(
            (
                site.kill_wait,
                site.min_job_age,
                site.max_array_size,
                site.cred_expire
            ),
            (5, 300, 10_001, 10)
        );
        assert!(site.has_accounting && site.job_requeue);
        assert_eq!(
            (
                site.enforce_part_limits.as_str(),
                site.preempt_mode.as_str(),
                site.select_type.as_str()
            ),
            ("NO", "REQUEUE", "select/cons_tres")
        );
        assert_eq!(site.get("preempttype"), Some("preempt/qos"));
        assert_eq!(config::version(printed).expect(version), site.version);
        assert!(site.version.to_string().starts_with(version));
    }
}

#[test]
fn the_qos_of_every_version() {
    for (version, text) in versions!("qos.txt") {
        let all = qos::read(text).expect(version);
        let small = all.iter().find(|qos| qos.name == "small").expect("small");
        assert_eq!(
            (
                small.per_user.gpus(),
                small.max_time,
                small.jobs_per_user,
                small.submitted_per_user
            ),
            (Some(2), Some(Limit::At(3_600)), Some(4), Some(3))
        );
        assert_eq!(
            (small.group.clone(), small.flags.join(",").as_str()),
            (Resources::read("gres/gpu=8"), "OverPartQOS")
        );
        let premium = all
            .iter()
            .find(|qos| qos.name == "premium")
            .expect("premium");
        assert_eq!(
            (premium.priority, premium.preempts.join(",").as_str()),
            (1_000, "basic,standard")
        );
    }
}

#[test]
fn the_shares_of_every_version() {
    for (version, text) in versions!("share.txt") {
        let shares = share::read(text).expect(version);
        let mine = shares
            .iter()
            .find(|share| share.user.as_deref() == Some("alice"))
            .expect("mine");
        assert_eq!(
            (mine.account.as_str(), mine.fair_share),
            ("lab", Some(1.0)),
            "{version}"
        );
    }
}

#[test]
fn the_reservations_of_every_version() {
    for (version, text) in versions!("reservations.txt") {
        let all = reservation::read(text).expect(version);
        let begin = all[0].start.expect("a start");
        assert!(all[0].is_maintenance() && !all[0].is_active && all[0].nodes == "c1");
        let hour_before = Moment(begin.0 - 3_600_000);
        assert!(
            all[0].blocks(hour_before, Some(3_601)) && !all[0].blocks(hour_before, Some(3_600))
        );
    }
    assert!(
        reservation::read("No reservations in the system\n")
            .expect("none")
            .is_empty()
    );
}
