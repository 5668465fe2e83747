//! `tow roles`: the Azure roles that I can activate for a while, by privileged identity management.

use super::Report;
use crate::context::Context;
use crate::output::local_time;
use crate::output::table::Table;
use crate::output::{self, Paint};
use crate::wiring::means::OwnMeans;
use crate::wiring::sign_in;
use std::time::Duration;
use towline_backends::registry::{self, NamedRole, RoleService, Waiting};
use towline_core::Result;
use towline_core::quantity::Span;
use towline_wire::report::roles::{Role, RoleChange, Roles};

const DEFAULT_TIMEOUT: Span = Span(5 * 60);

/// List, activate and deactivate my roles on Azure (PIM).
///
/// They are the roles that privileged identity management (PIM) makes you eligible for in the
/// subscription of an Azure ML cluster. The list says which of them are active, and until when.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow roles                       of the default cluster, or the only one on Azure
  tow roles activate Contributor --for 4h --reason 'new datastore'
  tow roles deactivate Contributor
  tow roles -c aml --json | jq '.roles[] | select(.active)'")]
pub(crate) struct Args {
    /// The cluster [default: the configured one, or the only one on Azure].
    #[arg(short, long, value_name = "CLUSTER", global = true)]
    cluster: Option<String>,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Activate(ActivateArgs),
    Deactivate(DeactivateArgs),
}

/// Activate a role, and wait until it is active.
///
/// If somebody must approve, the request is sent and the command ends: the same command, later,
/// says how it went. A role that is active or requested already is not requested again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow roles activate Contributor  for as long as the role's policy allows
  tow roles activate contributor --for 4h --reason 'new datastore'
  tow roles activate Reader --scope /subscriptions/ID/resourceGroups/vision")]
struct ActivateArgs {
    #[command(flatten)]
    chosen: ChosenRole,
    /// How long it stays active [default: as long as the policy allows, else 8h].
    #[arg(long = "for", value_name = "TIME")]
    time: Option<Span>,
    /// Why you need it; some roles cannot be activated without a reason.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Deactivate a role before its time is over.
///
/// Azure refuses this in the first five minutes after the activation.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow roles deactivate Contributor
  tow roles deactivate Reader --scope vision")]
struct DeactivateArgs {
    #[command(flatten)]
    chosen: ChosenRole,
}

#[derive(Debug, clap::Args)]
struct ChosenRole {
    /// The whole name of the role in any letter case, or the id of its definition.
    #[arg(value_name = "ROLE")]
    role: String,
    /// The resource, by id or name, if you can activate the role at several.
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// Give up waiting for Azure after this time [default: 5m].
    #[arg(long, value_name = "TIME")]
    timeout: Option<Span>,
}

impl ChosenRole {
    fn named(&self) -> NamedRole<'_> {
        NamedRole {
            name: &self.role,
            scope: self.scope.as_deref(),
        }
    }

    fn waiting(&self) -> Waiting<'static> {
        Waiting {
            timeout: Duration::from_secs(self.timeout.unwrap_or(DEFAULT_TIMEOUT).0),
            tell: &output::status,
        }
    }
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let name = sign_in::choose(context, args.cluster.as_deref())?;
    let means = OwnMeans::new(context.state()?);
    let service = registry::roles(&context.definition(&name)?, &means)?;
    match &args.what {
        None => list(&service),
        Some(What::Activate(args)) => activate(&service, args),
        Some(What::Deactivate(args)) => deactivate(&service, args),
    }
}

fn list(service: &RoleService) -> Result<Report> {
    let answer = service.list()?;
    let report = Report::of(&answer, table);
    Ok(if answer.roles.is_empty() {
        report.hint(format!(
            "there is no role that you can activate in the subscription of cluster `{}`",
            answer.cluster
        ))
    } else {
        report
    })
}

fn table(answer: &Roles) -> String {
    if answer.roles.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["ROLE", "AT", "STATE", "UNTIL", "SCOPE"]);
    for role in &answer.roles {
        let (state, paint) = match role.assignment.as_deref() {
            Some("assigned") => ("assigned", Paint::Good),
            _ if role.active => ("active", Paint::Good),
            _ => ("inactive", Paint::Plain),
        };
        let until = role.until.map(|until| local_time::shown(until.0));
        let plain = |text: Option<String>| (text.unwrap_or_default(), Paint::Plain);
        table.row(vec![
            (role.name.clone(), Paint::Bold),
            plain(role.scope_name.clone()),
            (state.to_owned(), paint),
            plain(until),
            plain(Some(role.scope.clone())),
        ]);
    }
    table.render()
}

fn activate(service: &RoleService, args: &ActivateArgs) -> Result<Report> {
    let chosen = &args.chosen;
    let reason = args.reason.as_deref();
    let change = service.activate(chosen.named(), args.time, reason, chosen.waiting())?;
    let report = Report::of(&change, activated).done("the role is requested all the same");
    Ok(if change.changed {
        report.hint("some services notice it only after a few minutes")
    } else if change.role.active {
        report
    } else {
        let by = match change.approvers.as_slice() {
            [] => "an approver of the role".to_owned(),
            names => names.join(", "),
        };
        report.hint(format!(
            "{by} must approve it; the same command shows how it went"
        ))
    })
}

fn activated(change: &RoleChange) -> String {
    let role = shown(change);
    let until = change.role.until.map_or_else(String::new, |until| {
        format!(" until {}", local_time::shown(until.0))
    });
    match (change.changed, change.role.active) {
        (true, _) => format!("{role} is active{until}\n"),
        (false, true) => format!("{role} is already active{until}; nothing was changed\n"),
        (false, false) => format!("{role} waits for approval\n"),
    }
}

fn deactivate(service: &RoleService, args: &DeactivateArgs) -> Result<Report> {
    let change = service.deactivate(args.chosen.named(), args.chosen.waiting())?;
    let report = Report::of(&change, |change| {
        let role = shown(change);
        if change.changed {
            format!("{role} is no longer active\n")
        } else {
            format!("{role} is not active; nothing was changed\n")
        }
    });
    Ok(report.done("the role is deactivated all the same"))
}

fn shown(change: &RoleChange) -> String {
    let Role {
        name,
        scope,
        scope_name,
        ..
    } = &change.role;
    let place = scope_name.as_ref().unwrap_or(scope);
    format!("{}: {name} at {place}", change.cluster)
}
