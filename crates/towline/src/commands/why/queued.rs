//! Explains why a run is not running yet.

use super::EXPLAIN_TIMEOUT;
use super::Why;
use super::begin;
use super::failed;
use crate::context::Context;
use towline_client as client;
use towline_core::Error;
use towline_core::Result;
use towline_core::record::RunRecord;
use towline_wire::daemon::Explanation;
use towline_wire::daemon::Reply;
use towline_wire::daemon::Request;
pub(super) fn held(context: &Context, record: &RunRecord) -> Result<Why> {
    let mut why = failed(context, record)?;
    why.state = "failed, held";
    why.next_step = Some(format!(
        "look around: tow ssh {0}    end it: tow abort {0}",
        record.id.short()
    ));
    Ok(why)
}

pub(super) fn waiting(context: &Context, record: &RunRecord) -> Result<Why> {
    let ask = || Request::Explain {
        run: record.id.clone(),
    };
    let is_far = crate::runs::far::is_far(&context.history()?, &record.id)?;
    let answer = if is_far {
        crate::runs::far::ask_cluster(context, &record.cluster, &ask, EXPLAIN_TIMEOUT)
    } else {
        client::ask(context.state()?, &ask).map(|(reply, _)| reply)
    };
    let explanation = match answer {
        Ok(Reply::Explained(explanation)) => explanation,
        Ok(Reply::FarExplained(explained)) => return Ok(far(record, explained)),
        // What was heard of it before is still worth telling.
        Err(error) if is_far && error.kind() == towline_core::ErrorKind::Unreachable => {
            let next_step = error.hints().first().cloned();
            return Ok(Why {
                summary: format!("the reason why it waits is not known: {error}"),
                next_step,
                ..begin(record)
            });
        }
        Ok(_) => return Err(Error::bug("the daemon's answer does not match the request")),
        Err(error) if error.kind() == towline_core::ErrorKind::NotFound => {
            return Ok(Why {
                summary: "it has just ended".into(),
                ..begin(record)
            });
        }
        Err(error) => return Err(error),
    };
    let mut summary = explanation.text.clone();
    if !explanation.held_by.is_empty() {
        let holders: Vec<&str> = explanation
            .held_by
            .iter()
            .take(8)
            .map(towline_core::RunId::short)
            .collect();
        summary += &format!("; held by {}", holders.join(", "));
    }
    if record.state.attempt > 0
        && let Some(ending) = &record.state.ending
    {
        summary += &format!(
            "; attempt {} was over because: {ending}",
            record.state.attempt
        );
    }
    let next_step = (!explanation.waits_for.is_empty())
        .then(|| "`tow nodes` shows who has what; `--tier premium` goes before others".to_owned());
    Ok(Why {
        summary,
        next_step,
        waiting: Some(explanation),
        ..begin(record)
    })
}

/// The explanation of a far scheduler.
pub(super) fn far(record: &RunRecord, explained: towline_core::cluster::Explanation) -> Why {
    let mut summary = explained.text;
    if let Some(native) = &explained.native {
        let reason = if native.reason.is_empty() {
            String::new()
        } else {
            format!(", {}", native.reason)
        };
        summary += &format!(" (job {}: {}{reason})", native.id, native.word);
    }
    let waiting = Explanation {
        ahead: 0,
        waits_for: Vec::new(),
        held_by: Vec::new(),
        text: summary.clone(),
    };
    let next_step = explained.next.or_else(|| {
        explained
            .forever
            .then(|| format!("as it is, it never starts: tow abort {}", record.id.short()))
    });
    Why {
        summary,
        next_step,
        waiting: Some(waiting),
        ..begin(record)
    }
}
