//! Runs Slurm's commands, each with a timeout: `squeue` hangs while a controller is away, `sbatch`
//! when munge is. What they are asked with and how their answers are read is in `towline-slurm`.

use std::sync::Arc;
use std::time::Duration;
use towline_core::transport::{Ran, Transport};
use towline_core::{Error, Result};
use towline_slurm::parse::accounting::{self, AccountingRow};
use towline_slurm::parse::answer::{self, Accepted};
use towline_slurm::parse::config::{self, Config, Version};
use towline_slurm::parse::node::{self, Node};
use towline_slurm::parse::partition::{self, Partition};
use towline_slurm::parse::qos::{self, Qos};
use towline_slurm::parse::queue::{self, QueueRow, Which};
use towline_slurm::parse::reservation::{self, Reservation};
use towline_slurm::parse::share::{self, Share};
use towline_slurm::script::option;
use towline_slurm::{cancel, change, environment, refusal, submit};
use towline_wire::site::JobChange;

/// A controller that is away makes its clients wait for some ten seconds before they say so.
const QUERY_TIMEOUT: Duration = Duration::from_secs(30);
/// A submission may take long on a busy site, and its answer is worth the wait.
const SUBMIT_TIMEOUT: Duration = Duration::from_secs(120);

/// Slurm, through the machine that has its commands.
#[derive(Debug, Clone)]
pub(super) struct Commands {
    transport: Arc<dyn Transport>,
    /// The machine's name, for messages.
    host: String,
    /// What its commands need beyond the variables of this process, as `NAME=value`.
    environment: Vec<String>,
}

impl Commands {
    pub(super) fn new(
        transport: Arc<dyn Transport>,
        host: impl Into<String>,
        environment: Vec<String>,
    ) -> Self {
        Self {
            transport,
            host: host.into(),
            environment,
        }
    }

    pub(super) fn environment(&self) -> &[String] {
        &self.environment
    }

    fn run(&self, argv: &[String], input: &[u8], limit: Duration) -> Result<Ran> {
        let front = (!self.environment.is_empty())
            .then_some("env")
            .into_iter()
            .chain(self.environment.iter().map(String::as_str));
        let argv: Vec<&str> = front.chain(argv.iter().map(String::as_str)).collect();
        self.transport.run(&argv, input, limit)
    }

    /// A question to Slurm. A command that fails is an error.
    fn ask(&self, argv: &[String]) -> Result<String> {
        let ran = self.run(&environment::asking(argv), b"", QUERY_TIMEOUT)?;
        if ran.is_good() {
            Ok(String::from_utf8_lossy(&ran.out).into_owned())
        } else {
            Err(self.unanswered(argv, &ran))
        }
    }

    fn unanswered(&self, argv: &[String], ran: &Ran) -> Error {
        let program = argv.first().map_or("", String::as_str);
        if ran.code == 127 {
            return self.missing(program);
        }
        Error::unreachable(format!(
            "Slurm on {} does not answer: {program} says: {}",
            self.host,
            ran.last_stderr_line()
        ))
    }

    fn missing(&self, program: &str) -> Error {
        Error::unsupported(format!("there is no `{program}` on {}", self.host))
            .hint("name a host that has Slurm's commands as `host` of the cluster")
            .hint(
                "if they are in a folder that is not on the PATH of a login shell there \
                    either, name it as `slurm_bin` of the cluster",
            )
    }

    pub(super) fn config(&self) -> Result<Config> {
        config::read(&self.ask(&config::argv())?)
    }
    pub(super) fn nodes(&self) -> Result<Vec<Node>> {
        node::read(&self.ask(&node::argv())?)
    }
    pub(super) fn partitions(&self) -> Result<Vec<Partition>> {
        partition::read(&self.ask(&partition::argv())?)
    }
    pub(super) fn reservations(&self) -> Result<Vec<Reservation>> {
        reservation::read(&self.ask(&reservation::argv())?)
    }
    pub(super) fn qos(&self) -> Result<Vec<Qos>> {
        qos::read(&self.ask(&qos::argv())?)
    }
    pub(super) fn share(&self, user: &str) -> Result<Vec<Share>> {
        share::read(&self.ask(&share::argv(user))?)
    }

    /// Everything that the controller knows of these, ended jobs among it for a while.
    pub(super) fn queue(&self, which: &Which<'_>) -> Result<Vec<QueueRow>> {
        queue::read(&self.ask(&queue::argv(which))?)
    }

    /// The priorities of all that wait in a partition.
    pub(super) fn priorities(&self, partition: &str) -> Result<Vec<u64>> {
        self.ask(&queue::priorities_argv(partition))
            .map(|text| queue::read_priorities(&text))
    }

    /// What the database knows, by job or by the user's name.
    pub(super) fn accounting(
        &self,
        version: Version,
        user: Option<&str>,
        jobs: &[String],
        since: Option<i64>,
    ) -> Result<Vec<AccountingRow>> {
        accounting::read(&self.ask(&accounting::argv(version, user, jobs, since))?)
    }

    /// Hands a batch script over; of an array only these tasks, if any are named. An error of kind
    /// `Unreachable` leaves open whether Slurm accepted it.
    pub(super) fn submit(&self, script: &str, tasks: &[u32]) -> Result<Accepted> {
        let argv = submit::argv(script, tasks);
        let ran = self.run(&argv, script.as_bytes(), SUBMIT_TIMEOUT)?;
        if ran.is_good() {
            return answer::accepted(&String::from_utf8_lossy(&ran.out));
        }
        if ran.code == 127 {
            return Err(self.missing(submit::PROGRAM));
        }
        let (partitions, qos) = (
            self.partitions().unwrap_or_default(),
            self.qos().unwrap_or_default(),
        );
        let asked = refusal::Asked {
            partition: option(script, "partition"),
            qos: option(script, "qos"),
            account: option(script, "account"),
            partitions: &partitions
                .iter()
                .map(|partition| partition.name.as_str())
                .collect::<Vec<_>>(),
            all_qos: &qos.iter().map(|qos| qos.name.as_str()).collect::<Vec<_>>(),
            accounts: &[],
        };
        Err(refusal::refusal(&String::from_utf8_lossy(&ran.err), &asked))
    }

    /// Asks for the end of jobs. Jobs that are gone are no error.
    pub(super) fn cancel(&self, jobs: &[String]) -> Result<()> {
        for argv in cancel::argvs(jobs) {
            let ran = self.run(&argv, b"", QUERY_TIMEOUT)?;
            let stderr = String::from_utf8_lossy(&ran.err);
            if let Some(error) = cancel::first_error(&stderr).filter(|_| !ran.is_good()) {
                return Err(Error::unreachable(format!(
                    "Slurm on {} does not end the job: {error}",
                    self.host
                )));
            }
        }
        Ok(())
    }

    /// Changes a job that waits. An error of kind `Unreachable` leaves open whether it did.
    pub(super) fn change(&self, job: &str, change: &JobChange) -> Result<()> {
        let argv = match change {
            JobChange::Hold => change::hold(job),
            JobChange::Release => change::release(job),
            JobChange::Update {
                time,
                qos,
                partition,
            } => change::update(job, *time, qos.as_deref(), partition.as_deref()),
        };
        let ran = self.run(&argv, b"", QUERY_TIMEOUT)?;
        match ran.code {
            _ if ran.is_good() => Ok(()),
            127 => Err(self.missing(argv.first().map_or("", String::as_str))),
            _ => Err(change::refused(&String::from_utf8_lossy(&ran.err))),
        }
    }
}
