//! `tow logout`: removes a stored sign-in.

use super::Report;
use crate::context::Context;
use crate::wiring::sign_in;
use towline_core::Result;
use towline_wire::report::login::LoggedOut;

/// Remove the sign-in that `tow login` stored, with its tokens.
///
/// Nothing to remove is no error. Tokens that a service already has stay good until they end, an
/// hour at most.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow logout
  tow logout aml --json")]
pub(crate) struct Args {
    /// The cluster [default: the configured one, or the only one with a sign-in].
    #[arg(value_name = "CLUSTER")]
    cluster: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let name = sign_in::choose(context, args.cluster.as_deref())?;
    let cloud = sign_in::open(context, &name)?;
    let out = cloud.logout()?;
    let answer = LoggedOut {
        also_for: if out.was_signed_in {
            sign_in::sharing(context, &name, &cloud)
        } else {
            Vec::new()
        },
        cluster: name,
        signed_out: out.was_signed_in,
        name: out.name,
        method: out.method.to_owned(),
    };
    let report = Report::of(&answer, text);
    Ok(match (out.was_signed_in, out.method) {
        (_, "device_code") => report,
        (true, "azure_cli") => {
            report.hint("the login of the Azure CLI, if there is one, counts from now on")
        }
        (false, "azure_cli") => report.hint("the login of the Azure CLI ends with `az logout`"),
        (_, method) => report.hint(format!("the configuration signs in by {method}")),
    })
}

fn text(answer: &LoggedOut) -> String {
    let LoggedOut { cluster, .. } = answer;
    if !answer.signed_out {
        return format!("{cluster}: no sign-in was stored; nothing was removed\n");
    }
    let who = answer
        .name
        .as_ref()
        .map_or_else(String::new, |name| format!(" of {name}"));
    let also = if answer.also_for.is_empty() {
        String::new()
    } else {
        format!(", also for {}", answer.also_for.join(", "))
    };
    format!("{cluster}: the sign-in{who} is removed{also}\n")
}
