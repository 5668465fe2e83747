//! Slurm's reasons by name. Limits of accounts and QOS follow a pattern and are in `limits.rs`.

/// The reason, the explanation, the next step (empty if none), whether the job can never start as
/// it is.
pub(super) type Row = (&'static str, &'static str, &'static str, bool);

const RESUME: &str = "`tow resume` lets it go";
const RELEASE: &str = "`scontrol release JOB` over there lets it go";
/// A placeholder for the job's number.
pub(super) const JOB: &str = "JOB";
const STAFF: &str = "wait, or ask the site's staff";
const RESUBMIT_PARTITION: &str =
    "abort it and submit it to another partition; `tow clusters` lists them";

pub(super) const REASONS: &[Row] = &[
    ("None", "Slurm has not looked at it yet", "", false),
    (
        "Priority",
        "jobs of higher priority are ahead of it",
        "wait; a shorter `time` or a smaller job may be fitted in earlier",
        false,
    ),
    (
        "Resources",
        "it is first in line and waits for nodes, GPUs, CPUs or memory to become free",
        "wait, or ask for less: `tow nodes` tells what is free",
        false,
    ),
    ("Dependency", "it waits for another job to end", "", false),
    (
        "DependencyNeverSatisfied",
        "the job it depends on ended in a way that it does not wait for",
        "abort it, and submit it again without that dependency",
        true,
    ),
    (
        "BeginTime",
        "it may not start before a set time; after a requeue Slurm itself sets one",
        "",
        false,
    ),
    (
        "DeadLine",
        "its deadline cannot be kept any more",
        "abort it and submit it with a later deadline",
        true,
    ),
    ("JobHeldUser", "it is on hold", RESUME, true),
    (
        "JobHeldAdmin",
        "it is held by the site's staff, or by Slurm after a failure",
        "ask the site's staff to release it",
        true,
    ),
    (
        "JobHoldMaxRequeue",
        "it was started too often and is held",
        RELEASE,
        true,
    ),
    (
        "Prolog",
        "the site's preparation of its nodes is still running",
        "",
        false,
    ),
    (
        "Cleaning",
        "its last start is still being cleaned up",
        "",
        false,
    ),
    (
        "SchedDefer",
        "the scheduler looks at new jobs only at intervals",
        "",
        false,
    ),
    (
        "PartitionNodeLimit",
        "it asks for more nodes than its partition allows, or the partition has too few that work",
        RESUBMIT_PARTITION,
        true,
    ),
    (
        "PartitionTimeLimit",
        "its time limit is longer than its partition allows",
        "abort it and submit it with a shorter `time`, or to another partition",
        true,
    ),
    (
        "PartitionDown",
        "its partition is down",
        RESUBMIT_PARTITION,
        false,
    ),
    (
        "PartitionInactive",
        "its partition takes no jobs now",
        RESUBMIT_PARTITION,
        false,
    ),
    (
        "PartitionConfig",
        "its partition has nothing that fits the request",
        RESUBMIT_PARTITION,
        true,
    ),
    (
        "MaxMemPerLimit",
        "it asks for more memory per CPU or node than its partition allows",
        "abort it and submit it with less `memory`",
        true,
    ),
    (
        "ReqNodeNotAvail",
        "a node that it needs is down, drained, reserved or in use",
        "`tow nodes` tells their state",
        false,
    ),
    ("NodeDown", "a node that it needs is down", STAFF, false),
    (
        "FrontEndDown",
        "the node that starts jobs is down",
        STAFF,
        false,
    ),
    (
        "BadConstraints",
        "no node has what it asks for",
        "abort it and submit it with other `resources` or `native` options",
        true,
    ),
    (
        "Constraints",
        "no node has what it asks for now",
        "`tow nodes` tells what nodes there are",
        false,
    ),
    (
        "AccountNotAllowed",
        "its account may not use this partition",
        "abort it and submit it with another `account` or partition",
        true,
    ),
    (
        "InvalidAccount",
        "its account does not exist or is not yours",
        "abort it and submit it with a valid `account`",
        true,
    ),
    (
        "QOSNotAllowed",
        "its QOS may not be used here: not by your account, or not in this partition",
        "abort it and submit it with another tier or QOS",
        true,
    ),
    (
        "InvalidQOS",
        "its QOS does not exist or is not yours",
        "abort it and submit it with another tier or QOS",
        true,
    ),
    (
        "QOSJobLimit",
        "its QOS has as many jobs as it may",
        "wait for other jobs of it to end, or use another tier",
        false,
    ),
    (
        "QOSResourceLimit",
        "its QOS has as many resources in use as it may",
        "wait for other jobs of it to end, or use another tier",
        false,
    ),
    (
        "QOSTimeLimit",
        "its QOS has used up its time",
        "use another tier",
        false,
    ),
    (
        "QOSUsageThreshold",
        "your account has used too much of the cluster to use this QOS now",
        "wait until the use is forgotten, or use another tier",
        false,
    ),
    (
        "AssociationJobLimit",
        "your account has as many jobs as it may",
        "wait for your other jobs to end",
        false,
    ),
    (
        "AssociationResourceLimit",
        "your account has as many resources in use as it may",
        "wait for your other jobs to end",
        false,
    ),
    (
        "AssociationTimeLimit",
        "your account has used up its time",
        "use another account, or ask the site's staff",
        false,
    ),
    (
        "AccountingPolicy",
        "a limit of your account or QOS is reached",
        "wait for your other jobs to end, or ask for less",
        false,
    ),
    (
        "JobArrayTaskLimit",
        "as many of its sweep's runs are active as may be at the same time",
        "",
        false,
    ),
    ("Licenses", "it waits for a licence", "", false),
    (
        "Reservation",
        "it waits for its reservation to begin",
        "",
        false,
    ),
    (
        "ReservationDeleted",
        "the reservation it was meant for is gone",
        "abort it and submit it without that reservation",
        true,
    ),
    (
        "ReservationInvalid",
        "the reservation it was meant for cannot be used",
        "abort it and submit it without that reservation",
        true,
    ),
    (
        "JobLaunchFailure",
        "it could not be started on its nodes: a bad path, a node that failed, or the site's \
            preparation",
        "`tow resubmit` starts it anew",
        false,
    ),
    (
        "NonZeroExitCode",
        "its last start left with an error code",
        "`tow logs` shows what it did",
        false,
    ),
    (
        "RaisedSignal",
        "its last start was ended by a signal",
        "`tow logs` shows what it did",
        false,
    ),
    (
        "OutOfMemory",
        "its last start ran out of memory",
        "ask for more `memory`",
        false,
    ),
    (
        "TimeLimit",
        "its last start reached its time limit",
        "ask for a longer `time`",
        false,
    ),
    (
        "InactiveLimit",
        "its last start was idle for too long",
        "",
        false,
    ),
    (
        "SystemFailure",
        "Slurm, its file systems or its network failed",
        STAFF,
        false,
    ),
    (
        "BurstBufferResources",
        "it waits for room on the fast storage",
        "",
        false,
    ),
    (
        "BurstBufferStageIn",
        "its data is being brought to the fast storage",
        "",
        false,
    ),
    (
        "BurstBufferOperation",
        "moving its data to or from the fast storage failed",
        STAFF,
        true,
    ),
    (
        "BlockMaxError",
        "its block of nodes has had too many errors",
        STAFF,
        false,
    ),
    (
        "BlockFreeAction",
        "its block of nodes is being freed",
        "",
        false,
    ),
    (
        "FedJobLock",
        "clusters of the federation are agreeing on who starts it",
        "",
        false,
    ),
    ("PowerNotAvail", "there is not enough power", "", false),
    (
        "PowerReserved",
        "the power is reserved for others",
        "",
        false,
    ),
    (
        "MaxPoweredUpNodes",
        "as many nodes are switched on as may be",
        "",
        false,
    ),
    (
        "MpiPortsBusy",
        "all network ports for MPI are taken",
        "",
        false,
    ),
    (
        "NvidiaImexChannels",
        "all channels between the GPUs of nodes are taken",
        "",
        false,
    ),
];

/// Beginnings of the longer explanations that Slurm gives instead of a word.
pub(super) const SENTENCES: &[Row] = &[
    (
        "Nodes required for job are DOWN, DRAINED",
        "nodes that it needs are down, drained, or kept for jobs in partitions of higher priority",
        "`tow nodes` tells their state; ask for fewer or other nodes, or wait",
        false,
    ),
    (
        "launch failed requeued held",
        "it could not be started on its nodes, went back into the queue and is held",
        RELEASE,
        true,
    ),
    (
        "launch failure limit exceeded requeued held",
        "it could not be started several times and is held",
        RELEASE,
        true,
    ),
    (
        "job requeued in held state",
        "it went back into the queue and is held",
        RELEASE,
        true,
    ),
    (
        "job requeued in special exit state",
        "it ended with a code that the site holds jobs for",
        RELEASE,
        true,
    ),
    (
        "Reservation ",
        "its reservation has ended, is gone or cannot be used",
        "abort it and submit it without that reservation",
        true,
    ),
    (
        "uid ",
        "your groups may not use this partition",
        RESUBMIT_PARTITION,
        true,
    ),
    (
        "burst buffer",
        "moving its data to or from the fast storage failed",
        STAFF,
        true,
    ),
    (
        "Burst buffer",
        "moving its data to or from the fast storage failed",
        STAFF,
        true,
    ),
];
