//! The output of `sbatch --parsable` for an accepted job.

use super::unreadable;
use towline_core::Result;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    pub job: u32,
    /// Set if several clusters share one database.
    pub cluster: Option<String>,
}

/// The job id: the last line that is one, because plugins and login shells print before it. The
/// form without `--parsable` is understood too. After an answer without an id the job may have been
/// accepted.
pub fn accepted(out: &str) -> Result<Accepted> {
    out.lines()
        .rev()
        .find_map(|line| parsable(line).or_else(|| sentence(line)))
        .ok_or_else(|| {
            let shown = if out.trim().is_empty() {
                "nothing"
            } else {
                out.trim()
            };
            unreadable("sbatch", shown)
        })
}

fn parsable(line: &str) -> Option<Accepted> {
    let (job, cluster) = match line.trim().split_once(';') {
        Some((job, cluster)) => (job, Some(cluster)),
        None => (line.trim(), None),
    };
    if cluster.is_some_and(|cluster| cluster.is_empty() || cluster.contains(char::is_whitespace)) {
        return None;
    }
    Some(Accepted {
        job: id(job)?,
        cluster: cluster.map(str::to_owned),
    })
}

fn sentence(line: &str) -> Option<Accepted> {
    let rest = line.trim().strip_prefix("Submitted batch job ")?;
    let (job, cluster) = match rest.split_once(" on cluster ") {
        Some((job, cluster)) => (job, Some(cluster.to_owned())),
        None => (rest, None),
    };
    Some(Accepted {
        job: id(job)?,
        cluster,
    })
}

fn id(text: &str) -> Option<u32> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())?
        .filter(|job| *job > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_found_behind_noise() {
        let job = |out: &str| {
            accepted(out)
                .map(|accepted| (accepted.job, accepted.cluster))
                .expect(out)
        };
        assert_eq!(job("123\n"), (123, None));
        assert_eq!(job("123;towtest\n"), (123, Some("towtest".into())));
        assert_eq!(
            job("Welcome to lab!\n2026 was a good year\nquota: 17\n4711\n"),
            (4711, None)
        );
        assert_eq!(
            job("Submitted batch job 9 on cluster b\n"),
            (9, Some("b".into()))
        );
        for out in [
            "",
            "\n",
            "0",
            "sbatch: error: no",
            "12 13",
            "-4",
            "99999999999",
            "7; ",
        ] {
            assert_eq!(
                accepted(out).expect_err(out).kind(),
                towline_core::ErrorKind::Unreachable,
                "{out}"
            );
        }
    }
}
