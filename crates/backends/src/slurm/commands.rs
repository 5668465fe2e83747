//! Slurm's own commands, each with a time limit: `squeue` hangs while a controller is away, `sbatch`
//! when munge is.

use super::parse::accounting::{self, AccountingRow};
use super::parse::answer::{self, Accepted};
use super::parse::config::{self, Config, Version};
use super::parse::environment;
use super::parse::job::{self, JobDetail};
use super::parse::node::{self, Node};
use super::parse::partition::{self, Partition};
use super::parse::qos::{self, Qos};
use super::parse::queue::{self, QueueRow, Which};
use super::parse::reservation::{self, Reservation};
use super::parse::share::{self, Share};
use super::refusal;
use super::script;
use std::sync::Arc;
use std::time::Duration;
use towline_core::transport::{Ran, Transport};
use towline_core::{Error, Result};

/// A controller that is away makes its clients wait for some ten seconds before they say so.
const PATIENCE: Duration = Duration::from_secs(30);
/// A submission may take long on a busy site, and its answer is worth the wait.
const SUBMIT_PATIENCE: Duration = Duration::from_secs(120);

/// Slurm, through the machine that has its commands.
#[derive(Debug, Clone)]
pub struct Commands {
    transport: Arc<dyn Transport>,
    /// The machine, as whoever asks from afar knows it.
    place: String,
}

impl Commands {
    pub fn new(transport: Arc<dyn Transport>, place: impl Into<String>) -> Self {
        Self { transport, place: place.into() }
    }

    fn run(&self, words: &[String], input: &[u8], limit: Duration) -> Result<Ran> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.transport.run(&words, input, limit)
    }

    /// A question to Slurm; no answer, or one that is no answer, is an error.
    fn ask(&self, words: &[String]) -> Result<String> {
        let ran = self.run(&environment::asking(words), b"", PATIENCE)?;
        if ran.is_good() { Ok(String::from_utf8_lossy(&ran.out).into_owned()) } else { Err(self.unanswered(words, &ran)) }
    }

    fn unanswered(&self, words: &[String], ran: &Ran) -> Error {
        let program = words.first().map_or("", String::as_str);
        if ran.code == 127 {
            return Error::refused(format!("there is no `{program}` on {}", self.place))
                .hint("name a host that has Slurm's commands as `host` of the cluster")
                .hint(
                    "if they are in a folder of their own, add it to PATH in ~/.bashrc there, before any line that leaves when the shell is not interactive",
                );
        }
        Error::unreachable(format!("Slurm on {} does not answer: {program} says: {}", self.place, ran.last_words()))
    }

    pub fn version(&self) -> Result<Version> {
        config::version(&self.ask(&owned(config::VERSION_WORDS))?)
    }
    pub fn config(&self) -> Result<Config> {
        config::read(&self.ask(&owned(config::WORDS))?)
    }
    pub fn nodes(&self) -> Result<Vec<Node>> {
        node::read(&self.ask(&owned(node::WORDS))?)
    }
    pub fn partitions(&self) -> Result<Vec<Partition>> {
        partition::read(&self.ask(&owned(partition::WORDS))?)
    }
    pub fn reservations(&self) -> Result<Vec<Reservation>> {
        reservation::read(&self.ask(&owned(reservation::WORDS))?)
    }
    pub fn qos(&self) -> Result<Vec<Qos>> {
        qos::read(&self.ask(&owned(qos::WORDS))?)
    }
    pub fn share(&self, user: &str) -> Result<Vec<Share>> {
        share::read(&self.ask(&share::words(user))?)
    }

    /// Everything that the controller knows of these, ended jobs among it for a while.
    pub fn queue(&self, which: &Which<'_>) -> Result<Vec<QueueRow>> {
        queue::read(&self.ask(&queue::words(which))?)
    }

    /// The priorities of all that wait in a partition.
    pub fn priorities(&self, partition: &str) -> Result<Vec<u64>> {
        let words = owned(&["squeue", "-h", "-a", "-t", "PD,CF", "-p", partition, "-o", "%Q"]);
        Ok(self.ask(&words)?.lines().filter_map(|line| line.trim().parse().ok()).collect())
    }

    /// What the controller knows of one job; nothing, where it says that there is none.
    pub fn job(&self, id: &str) -> Result<Vec<JobDetail>> {
        let words = job::words(id);
        let ran = self.run(&environment::asking(&words), b"", PATIENCE)?;
        match ran.is_good() {
            true => job::read(&String::from_utf8_lossy(&ran.out)),
            false if job::is_unknown(&String::from_utf8_lossy(&ran.err)) => Ok(Vec::new()),
            false => Err(self.unanswered(&words, &ran)),
        }
    }

    /// What the database knows, by job or by the user's name.
    pub fn accounting(&self, version: Version, user: Option<&str>, jobs: &[String], since: Option<i64>) -> Result<Vec<AccountingRow>> {
        accounting::read(&self.ask(&accounting::words(version, user, jobs, since))?)
    }

    /// Hands a batch script over; of an array only these tasks, where any are named. An error of kind
    /// `Unreachable` leaves open whether it was taken.
    pub fn submit(&self, script: &str, tasks: &[u32]) -> Result<Accepted> {
        let mut words = owned(&["sbatch", "--parsable"]);
        if !tasks.is_empty() {
            words.push(format!("--array={}", tasks.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")));
        }
        let words = environment::submitting(&words, &script::overriding(script));
        let ran = self.run(&words, script.as_bytes(), SUBMIT_PATIENCE)?;
        if ran.is_good() {
            return answer::accepted(&String::from_utf8_lossy(&ran.out));
        }
        if ran.code == 127 {
            return Err(self.unanswered(&owned(&["sbatch"]), &ran));
        }
        let (partitions, qos) = (self.partitions().unwrap_or_default(), self.qos().unwrap_or_default());
        let asked = refusal::Asked {
            partition: option(script, "partition"),
            qos: option(script, "qos"),
            account: option(script, "account"),
            partitions: &partitions.iter().map(|partition| partition.name.as_str()).collect::<Vec<_>>(),
            all_qos: &qos.iter().map(|qos| qos.name.as_str()).collect::<Vec<_>>(),
            accounts: &[],
        };
        Err(refusal::refusal(&String::from_utf8_lossy(&ran.err), &asked))
    }

    /// Asks for the end of jobs. Fine if they are gone.
    pub fn cancel(&self, jobs: &[String]) -> Result<()> {
        for some in jobs.chunks(200) {
            let words: Vec<String> = ["scancel".to_owned(), "--quiet".to_owned()].into_iter().chain(some.iter().cloned()).collect();
            let ran = self.run(&words, b"", PATIENCE)?;
            let said = String::from_utf8_lossy(&ran.err);
            let real: Vec<&str> =
                said.lines().filter(|line| !line.trim().is_empty() && !job::is_unknown(line) && !line.contains("already completed")).collect();
            if !ran.is_good() && !real.is_empty() {
                return Err(Error::unreachable(format!("Slurm on {} does not end the job: {}", self.place, real[0].trim())));
            }
        }
        Ok(())
    }
}

/// What a script asks for.
fn option<'a>(script: &'a str, name: &str) -> Option<&'a str> {
    script.lines().filter_map(|line| line.strip_prefix("#SBATCH --")?.strip_prefix(name)?.strip_prefix('=')).next_back()
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
