//! Slurm's own commands, each with a time limit: `squeue` hangs while a controller is away,
//! `sbatch` when munge is.

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
use towline_wire::site::SiteFacts;

/// A controller that is away makes its clients wait for some ten seconds before they say so.
const QUERY_TIMEOUT: Duration = Duration::from_secs(30);
/// A submission may take long on a busy site, and its answer is worth the wait.
const SUBMIT_TIMEOUT: Duration = Duration::from_secs(120);

/// Slurm, through the machine that has its commands.
#[derive(Debug, Clone)]
pub struct Commands {
    transport: Arc<dyn Transport>,
    /// The machine, as whoever asks from afar knows it.
    place: String,
    /// What its commands need beyond the variables of this process, as `NAME=value`.
    environment: Vec<String>,
}

impl Commands {
    pub fn new(
        transport: Arc<dyn Transport>,
        place: impl Into<String>,
        environment: Vec<String>,
    ) -> Self {
        Self {
            transport,
            place: place.into(),
            environment,
        }
    }

    pub fn environment(&self) -> &[String] {
        &self.environment
    }

    fn run(&self, words: &[String], input: &[u8], limit: Duration) -> Result<Ran> {
        let front = (!self.environment.is_empty())
            .then_some("env")
            .into_iter()
            .chain(self.environment.iter().map(String::as_str));
        let words: Vec<&str> = front.chain(words.iter().map(String::as_str)).collect();
        self.transport.run(&words, input, limit)
    }

    /// A question to Slurm; no answer, or one that is no answer, is an error.
    fn ask(&self, words: &[String]) -> Result<String> {
        let ran = self.run(&environment::asking(words), b"", QUERY_TIMEOUT)?;
        if ran.is_good() {
            Ok(String::from_utf8_lossy(&ran.out).into_owned())
        } else {
            Err(self.unanswered(words, &ran))
        }
    }

    fn unanswered(&self, words: &[String], ran: &Ran) -> Error {
        let program = words.first().map_or("", String::as_str);
        if ran.code == 127 {
            return Error::refused(format!("there is no `{program}` on {}", self.place))
                .hint("name a host that has Slurm's commands as `host` of the cluster")
                .hint(
                    "if they are in a folder that is not on the PATH of a login shell there \
                    either, name it as `slurm_bin` of the cluster",
                );
        }
        Error::unreachable(format!(
            "Slurm on {} does not answer: {program} says: {}",
            self.place,
            ran.last_stderr_line()
        ))
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
        let words = owned(&[
            "squeue", "-h", "-a", "-t", "PD,CF", "-p", partition, "-o", "%Q",
        ]);
        Ok(self
            .ask(&words)?
            .lines()
            .filter_map(|line| line.trim().parse().ok())
            .collect())
    }

    /// What the controller knows of one job; nothing, where it says that there is none.
    pub fn job(&self, id: &str) -> Result<Vec<JobDetail>> {
        let words = job::words(id);
        let ran = self.run(&environment::asking(&words), b"", QUERY_TIMEOUT)?;
        match ran.is_good() {
            true => job::read(&String::from_utf8_lossy(&ran.out)),
            false if job::is_unknown(&String::from_utf8_lossy(&ran.err)) => Ok(Vec::new()),
            false => Err(self.unanswered(&words, &ran)),
        }
    }

    /// What the database knows, by job or by the user's name.
    pub fn accounting(
        &self,
        version: Version,
        user: Option<&str>,
        jobs: &[String],
        since: Option<i64>,
    ) -> Result<Vec<AccountingRow>> {
        accounting::read(&self.ask(&accounting::words(version, user, jobs, since))?)
    }

    /// Hands a batch script over; of an array only these tasks, where any are named. An error of
    /// kind `Unreachable` leaves open whether it was taken.
    pub fn submit(&self, script: &str, tasks: &[u32]) -> Result<Accepted> {
        let mut words = owned(&["sbatch", "--parsable"]);
        if !tasks.is_empty() {
            words.push(format!(
                "--array={}",
                tasks
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(",")
            ));
        }
        let words = environment::submitting(&words, &script::overriding(script));
        let ran = self.run(&words, script.as_bytes(), SUBMIT_TIMEOUT)?;
        if ran.is_good() {
            return answer::accepted(&String::from_utf8_lossy(&ran.out));
        }
        if ran.code == 127 {
            return Err(self.unanswered(&owned(&["sbatch"]), &ran));
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

    /// Asks for the end of jobs. Fine if they are gone.
    pub fn cancel(&self, jobs: &[String]) -> Result<()> {
        for some in jobs.chunks(200) {
            let words: Vec<String> = ["scancel".to_owned(), "--quiet".to_owned()]
                .into_iter()
                .chain(some.iter().cloned())
                .collect();
            let ran = self.run(&words, b"", QUERY_TIMEOUT)?;
            let said = String::from_utf8_lossy(&ran.err);
            let real: Vec<&str> = said
                .lines()
                .filter(|line| {
                    !line.trim().is_empty()
                        && !job::is_unknown(line)
                        && !line.contains("already completed")
                })
                .collect();
            if !ran.is_good() && !real.is_empty() {
                return Err(Error::unreachable(format!(
                    "Slurm on {} does not end the job: {}",
                    self.place,
                    real[0].trim()
                )));
            }
        }
        Ok(())
    }
}

/// The words that start a command in a job that runs, beside what runs in it.
///
/// Steps share CPUs and memory by default before 20.11, and since then where they say so. What they
/// do not share before 21.08 is GPUs: a second step that does not do without them waits until the
/// first has ended.
pub fn beside(site: &SiteFacts, job: &str, host: &str) -> Vec<String> {
    // One that does not tell is taken for a new one.
    let version = config::version(&site.version).unwrap_or(Version(u32::MAX, 0, 0));
    let mut words = vec!["srun".to_owned(), format!("--jobid={job}")];
    words.extend((version >= Version(20, 11, 0)).then(|| "--overlap".to_owned()));
    words.extend((version < Version(21, 8, 0)).then(|| "--gres=none".to_owned()));
    words.extend([
        "--nodes=1".into(),
        "--ntasks=1".into(),
        format!("--nodelist={host}"),
        "--mpi=none".into(),
        "--quiet".into(),
    ]);
    if site.environment.is_empty() {
        words
    } else {
        ["env".to_owned()]
            .into_iter()
            .chain(site.environment.iter().cloned())
            .chain(words)
            .collect()
    }
}

/// What a script asks for.
fn option<'a>(script: &'a str, name: &str) -> Option<&'a str> {
    script
        .lines()
        .filter_map(|line| {
            line.strip_prefix("#SBATCH --")?
                .strip_prefix(name)?
                .strip_prefix('=')
        })
        .next_back()
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_beside_others_asks_for_what_its_version_shares() {
        let words = |version: &str| {
            beside(
                &SiteFacts {
                    version: version.into(),
                    ..SiteFacts::default()
                },
                "7",
                "c2",
            )
            .join(" ")
        };
        assert_eq!(
            words("22.05.8"),
            "srun --jobid=7 --overlap --nodes=1 --ntasks=1 --nodelist=c2 --mpi=none --quiet"
        );
        assert_eq!(words("24.11.5"), words("22.05.8"));
        assert_eq!(words(""), words("22.05.8"));
        assert!(
            words("20.11.4").starts_with("srun --jobid=7 --overlap --gres=none --nodes=1"),
            "{}",
            words("20.11.4")
        );
        assert!(
            words("20.02.7").starts_with("srun --jobid=7 --gres=none --nodes=1"),
            "{}",
            words("20.02.7")
        );
        let elsewhere = SiteFacts {
            version: "23.02.1".into(),
            environment: vec!["PATH=/bin:/opt/slurm/bin".into()],
            ..SiteFacts::default()
        };
        assert_eq!(
            beside(&elsewhere, "7", "c2")[..3],
            ["env", "PATH=/bin:/opt/slurm/bin", "srun"]
        );
    }
}
