//! `tow tunnel add`: defines a tunnel.

use super::{Report, next_steps, open};
use crate::context::Context;
use crate::reach::tunnels::{self, Named};
use towline_core::config::Tunnel;
use towline_core::tunnel::{AzureBastion, Definition, Probe, Target, check_name};
use towline_core::{Error, Result};
use towline_wire::report::tunnel::TunnelAdded;

/// Define a tunnel. An existing one of that name is not changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow tunnel add box --to gcrazgdl1234 --via bastion
  tow tunnel add inner --to c1 --via bastion,login --user alice --open
  tow tunnel add notebook --to box:8888 --probe http
  tow tunnel add vm --az-bastion BASTION --resource-group GROUP --target RESOURCE_ID
  tow tunnel add --sandbox 1234                by the table `bastions` of the configuration
  tow tunnel add vm --to vm1 --via-command -- my-bastion --listen {port}")]
pub(crate) struct Args {
    /// The name of the tunnel [with --sandbox: gcr1234].
    #[arg(value_name = "NAME", required_unless_present = "sandbox")]
    name: Option<String>,
    /// The sandbox of this number; `bastions` of the configuration says which bastion leads there.
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["to", "via", "via_command", "az_bastion"])]
    sandbox: Option<String>,
    /// The target, as the last hop sees it [port: 22].
    #[arg(long, value_name = "HOST[:PORT]", required_unless_present_any = ["az_bastion", "sandbox"])]
    to: Option<String>,
    /// Hosts on the route, as ssh knows them, in their order.
    #[arg(long, value_name = "HOP[,HOP…]")]
    via: Option<String>,
    /// The port on this machine [default: the first free one from 22222].
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// The user at the far end.
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// An ssh configuration to use instead of yours.
    #[arg(long, value_name = "FILE")]
    ssh_config: Option<String>,
    /// How to test that it is open: ssh, http or tcp [default: ssh for port 22, else tcp].
    #[arg(long, value_name = "KIND")]
    probe: Option<String>,
    /// Also open it.
    #[arg(long)]
    open: bool,
    /// Instead of hops, use a program that listens on {port}: its arguments follow `--`.
    #[arg(long, conflicts_with_all = ["via", "ssh_config"], requires = "command")]
    via_command: bool,
    /// Instead of hops, use the Azure Bastion of this name; needs the Azure CLI.
    #[arg(long, value_name = "BASTION", requires = "resource_group", requires = "target", conflicts_with_all = ["via", "via_command", "ssh_config"])]
    az_bastion: Option<String>,
    /// Resource group of the bastion.
    #[arg(long, value_name = "GROUP", requires = "az_bastion")]
    resource_group: Option<String>,
    /// The id of the machine behind the bastion.
    #[arg(long, value_name = "RESOURCE_ID", requires = "az_bastion")]
    target: Option<String>,
    /// Subscription of the bastion [default: the Azure CLI's own].
    #[arg(long, value_name = "SUBSCRIPTION", requires = "az_bastion")]
    subscription: Option<String>,
    /// The program and its arguments.
    #[arg(last = true, value_name = "WORD", requires = "via_command")]
    command: Vec<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let name = args
        .name
        .clone()
        .or_else(|| args.sandbox.as_ref().map(|number| format!("gcr{number}")))
        .unwrap_or_default();
    let mut tunnel = match &args.sandbox {
        Some(number) => to_sandbox(context, number, args)?,
        None => tunnel(args)?,
    };
    check_name(&name)?;
    if let Some(known) = tunnels::all(context)?.get(&name) {
        return Err(tunnels::exists(&name, &known.origin));
    }
    let port = match tunnel.port {
        Some(port) => port,
        None => tunnels::free_port(context, &name)?,
    };
    tunnel.port = Some(port);
    let definition = Definition::new(&name, &tunnel, port)?;
    if let Some(taken) = tunnels::all(context)?
        .values()
        .find(|named| named.tunnel.port == Some(port))
    {
        return Err(Error::conflict(format!(
            "port {port} is that of tunnel `{}` ({})",
            taken.name, taken.origin
        ))
        .hint("choose another --port, or leave it out"));
    }
    let file = tunnels::add(context, &name, &tunnel)?;
    if args.open {
        let named = Named {
            name,
            tunnel,
            origin: file.display().to_string(),
            file: Some(file),
        };
        return open::open_all(context, &[named], true);
    }
    let answer = TunnelAdded {
        name,
        port,
        to: definition.to.to_string(),
        via: definition.shown_route(),
        file,
    };
    let report = Report::of(&answer, text).hint(format!("tow tunnel open {}", answer.name));
    next_steps(context, report, &answer.name, &definition)
}

fn text(answer: &TunnelAdded) -> String {
    let TunnelAdded { name, port, to, .. } = answer;
    format!("{name}  127.0.0.1:{port} to {to}\n")
}

/// The tunnel of a sandbox, from the table in the configuration; options win over the table.
fn to_sandbox(context: &Context, number: &str, args: &Args) -> Result<Tunnel> {
    let found = towline_core::bastion::tunnel_to(number, &context.layers()?.config.bastions)?;
    Ok(Tunnel {
        port: args.port,
        user: args.user.clone().or(found.user),
        probe: args.probe.as_deref().map(Probe::parse).transpose()?,
        ssh_config: ssh_config(args)?,
        ..found
    })
}

fn ssh_config(args: &Args) -> Result<Option<String>> {
    match &args.ssh_config {
        Some(file) if file.starts_with("~/") => Ok(Some(file.clone())),
        Some(file) => absolute(file).map(Some),
        None => Ok(None),
    }
}

fn tunnel(args: &Args) -> Result<Tunnel> {
    let azure = match (&args.az_bastion, &args.resource_group, &args.target) {
        (Some(name), Some(group), Some(target)) => Some(AzureBastion {
            name: name.clone(),
            resource_group: group.clone(),
            target: target.clone(),
            subscription: args.subscription.clone(),
        }),
        _ => None,
    };
    let to = match (&args.to, &azure) {
        (Some(to), _) => to.clone(),
        (None, Some(azure)) => azure.machine()?,
        (None, None) => return Err(Error::usage("where does it lead? --to HOST")),
    };
    let command = match &azure {
        Some(azure) => {
            azure.machine()?;
            Some(azure.words(Target::parse(&to)?.port))
        }
        None => Some(args.command.clone()).filter(|words| !words.is_empty()),
    };
    let ssh_config = ssh_config(args)?;
    Ok(Tunnel {
        to,
        via: args.via.clone(),
        port: args.port,
        user: args.user.clone(),
        probe: args.probe.as_deref().map(Probe::parse).transpose()?,
        command,
        ssh_config,
    })
}

/// An absolute path, because the tunnel may be opened from another folder.
fn absolute(file: &str) -> Result<String> {
    let path = std::path::absolute(file)
        .map_err(|error| Error::usage(format!("`{file}` is not a file")).source_error(error))?;
    if !path.is_file() {
        return Err(Error::config(format!(
            "there is no file {}",
            path.display()
        )));
    }
    path.into_os_string()
        .into_string()
        .map_err(|_| Error::usage(format!("`{file}` is not UTF-8 text")))
}
