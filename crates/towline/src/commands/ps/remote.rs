//! `tow ps --remote`: lists what a far cluster itself knows, whoever submitted it.

use super::super::Report;
use super::{Args, parse_state};
use crate::context::Context;
use crate::output::table::Table;
use crate::output::{Paint, state_paint};
use std::collections::BTreeSet;
use towline_core::Result;
use towline_core::cluster::KnownJob;
use towline_core::time::human_millis;
use towline_wire::report::ps::{RemoteJob, RemoteJobs};

/// Whether a job of the cluster was asked for: by our name of its state or by the cluster's.
fn is_wanted(job: &KnownJob, args: &Args) -> bool {
    let is = |word: &str| match word {
        "active" => !job.ended,
        "ended" => job.ended,
        _ => [&job.state, &job.word]
            .into_iter()
            .flatten()
            .any(|known| known.eq_ignore_ascii_case(word)),
    };
    let in_state = if args.state.is_empty() {
        args.all || !job.ended
    } else {
        args.state.iter().any(|word| is(word))
    };
    in_state
        && args
            .user
            .as_ref()
            .is_none_or(|user| job.user.to_lowercase().contains(&user.to_lowercase()))
}

/// Our word, with the cluster's own where it says more.
fn remote_state(job: &RemoteJob) -> (String, Paint) {
    let own = job.word.as_deref().map(str::to_lowercase);
    let reason = job.reason.as_deref().filter(|reason| *reason != "None");
    let word = match (&job.state, &own) {
        (Some(state), Some(own)) if state != own && reason.is_none() && !job.ended => {
            format!("{state} ({own})")
        }
        (Some(state), _) => state.clone(),
        (None, Some(own)) => own.clone(),
        (None, None) => if job.ended { "ended" } else { "gone" }.to_owned(),
    };
    let paint = state_paint(job.state.as_deref().unwrap_or_default());
    (
        word + &reason
            .map(|reason| format!(" ({reason})"))
            .unwrap_or_default(),
        paint,
    )
}

/// Lists the jobs that a far cluster knows, whoever submitted them.
pub(super) fn list(context: &Context, args: &Args) -> Result<Report> {
    let name = match &args.cluster {
        Some(name) => name.clone(),
        None => context.layers()?.default_cluster().to_owned(),
    };
    let cluster = context.cluster(&name)?;
    if !cluster.is_here() {
        cluster.sign_in()?;
    }
    let all = cluster.known_jobs()?;
    let known = all.len();
    let is_own = |word: &str| {
        all.iter()
            .filter_map(|job| job.word.as_deref())
            .any(|own| own.eq_ignore_ascii_case(word))
    };
    for word in args.state.iter().filter(|word| !is_own(word)) {
        parse_state(word).into_iter().collect::<Result<Vec<_>>>()?;
    }
    let users: BTreeSet<String> = all.iter().map(|job| job.user.clone()).collect();
    let history = context.maybe_history()?;
    let is_here = |job: &KnownJob| {
        job.run.as_ref().is_some_and(|run| {
            history
                .as_ref()
                .is_some_and(|history| history.knows(run).unwrap_or(false))
        })
    };
    let jobs = all
        .into_iter()
        .filter(|job| is_wanted(job, args))
        .take(args.limit.map_or(usize::MAX, |limit| limit as usize))
        .map(|job| {
            let here = is_here(&job);
            RemoteJob::new(job, here)
        })
        .collect();
    let answer = RemoteJobs { jobs };
    let report = Report::of(&answer, text);
    if answer.jobs.is_empty() {
        return Ok(report.hint(nothing(args, known, &users)));
    }
    if answer.jobs.iter().all(|job| job.here) {
        return Ok(report);
    }
    let what = if cluster.caps().adopts_others {
        "JOB"
    } else {
        "RUN"
    };
    Ok(report.hint(format!(
        "take one into the history here: tow adopt {what} -c {name}"
    )))
}

fn text(answer: &RemoteJobs) -> String {
    if answer.jobs.is_empty() {
        return String::new();
    }
    let now = towline_host::clock::now();
    let mut table = Table::new(&["JOB", "RUN", "USER", "STATE", "NODES", "AGE", "HERE"]);
    for job in &answer.jobs {
        let plain = |text: String| (text, Paint::Plain);
        // Where a job has its run's own name, what the user calls it says more.
        let run = job
            .run
            .as_ref()
            .filter(|run| job.job.as_deref() != Some(run.as_str()))
            .map_or_else(|| job.name.clone(), ToString::to_string);
        table.row(vec![
            (job.job.clone().unwrap_or_default(), Paint::Bold),
            plain(run),
            plain(job.user.clone()),
            remote_state(job),
            plain(job.nodes.to_string()),
            (
                job.created
                    .map(|created| human_millis(now.since(created)))
                    .unwrap_or_default(),
                Paint::Quiet,
            ),
            plain(if job.here {
                "yes".into()
            } else {
                String::new()
            }),
        ]);
    }
    table.render()
}

/// Why nothing is shown.
fn nothing(args: &Args, known: usize, users: &BTreeSet<String>) -> String {
    let some: Vec<&str> = users.iter().take(8).map(String::as_str).collect();
    match known {
        0 => "it knows no job".to_owned(),
        _ if args.user.is_some() => format!(
            "none of the {known} jobs it knows fits; they are of {}",
            some.join(", ")
        ),
        _ if args.all || !args.state.is_empty() => {
            format!("none of the {known} jobs it knows fits")
        }
        _ => format!("none of the {known} jobs it knows is active; `--all` lists ended ones too"),
    }
}
