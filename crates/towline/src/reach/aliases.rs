//! Host names for `ssh` and for editors: `tow-<run>` for every active run of a far cluster,
//! `tow-node` for the newest allocation, and `tow-<name>` for every open tunnel to an ssh server.
//! They are in a file of ours that the user's configuration includes. The target of a name is
//! looked up when it is used, so it follows a run from node to node.

use crate::context::Context;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::rc::Rc;
use towline_core::record::RunRecord;
use towline_core::state::Phase;
use towline_core::transport::{Login, Transport};
use towline_core::{Error, Result};
use towline_engine::history::Filter;
use towline_io::machine::Client;
use towline_wire::tunnel::Wanted;

/// The alias of the newest allocation.
pub(crate) const NODE: &str = "tow-node";
/// Marks a run that only holds nodes.
pub(crate) const ALLOCATION: &str = "allocation";
/// The hidden verb behind `ProxyCommand`.
pub(crate) const CONNECT_VERB: &str = "__connect";
/// How many aliases are written, because nobody picks from a longer list.
const MAX_ALIASES: usize = 100;

const ACTIVE_PHASES: [Phase; 4] = [
    Phase::Staging,
    Phase::Submitting,
    Phase::Queued,
    Phase::Running,
];

/// The file to include.
pub(crate) fn file(context: &Context) -> Result<PathBuf> {
    Ok(context.state()?.ssh().join("config"))
}

/// The `Include` line of that file, for `~/.ssh/config`.
pub(crate) fn include(context: &Context) -> Result<String> {
    Ok(format!("Include \"{}\"", file(context)?.display()))
}

/// Active runs on far clusters, newest first.
pub(crate) fn active(context: &Context) -> Result<Vec<RunRecord>> {
    let Some(history) = context.maybe_history()? else {
        return Ok(Vec::new());
    };
    let mut far = Vec::new();
    for record in history.list(&Filter {
        phases: ACTIVE_PHASES.to_vec(),
        ..Filter::default()
    })? {
        if record.cluster != "local" && crate::runs::far::is_far(&history, &record.id)? {
            far.push(record);
        }
    }
    Ok(far)
}

pub(crate) fn is_allocation(record: &RunRecord) -> bool {
    record.tags.iter().any(|tag| tag == ALLOCATION)
}

/// The run that an alias means now.
pub(crate) fn find(context: &Context, alias: &str) -> Result<RunRecord> {
    let runs = active(context)?;
    if alias == NODE {
        let newest = runs.into_iter().find(is_allocation);
        return newest.ok_or_else(|| {
            Error::not_found("no allocation is active").hint("`tow alloc` makes one")
        });
    }
    let part = alias.strip_prefix("tow-").unwrap_or(alias);
    let found = runs
        .into_iter()
        .find(|record| record.id.short() == part || record.id.as_str() == part);
    found.ok_or_else(|| {
        Error::not_found(format!("`{alias}` names no active run")).hint("`tow ps` lists them")
    })
}

/// Writes the file again. A cluster that cannot be read is left out: aliases are never a reason to
/// fail.
pub(crate) fn write(context: &Context) -> Result<()> {
    let mut text = String::from("# Written by tow; changes are lost.\n");
    let mut has_node = false;
    for (record, login) in &reachable(context)? {
        let mut names = vec![format!("tow-{}", record.id.short())];
        if is_allocation(record) && !has_node {
            has_node = true;
            names.push(NODE.to_owned());
        }
        text += &entry(context, &names, login).unwrap_or_default();
    }
    forget_keys(context, &text);
    for (name, wanted) in crate::reach::tunnels::wanted(context.state()?)? {
        text += &tunnel_entry(context, &name, &wanted).unwrap_or_default();
    }
    if std::fs::read_to_string(file(context)?).is_ok_and(|written| written == text) {
        return Ok(());
    }
    let failed = |error| Error::from_io("the aliases cannot be written", error);
    towline_host::filesystem::private_folder(&context.state()?.ssh()).map_err(failed)?;
    towline_host::once::replace(&file(context)?, text.as_bytes()).map_err(failed)
}

/// Removes host keys of nodes that no alias leads to any more.
fn forget_keys(context: &Context, text: &str) {
    let Ok(folder) = context.state().map(|state| state.ssh().join("keys")) else {
        return;
    };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !text
            .lines()
            .any(|line| line.strip_prefix("Host ") == Some(name.as_str()))
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The newest active runs that an alias can lead to, however many others there are.
fn reachable(context: &Context) -> Result<Vec<(RunRecord, Rc<Login>)>> {
    let Some(history) = context.maybe_history()? else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for cluster in context.layers()?.config.clusters.keys() {
        let Ok(login) = login(context, cluster).map(Rc::new) else {
            continue;
        };
        let newest = Filter {
            phases: ACTIVE_PHASES.to_vec(),
            cluster: Some(cluster.clone()),
            limit: Some(MAX_ALIASES),
            ..Filter::default()
        };
        found.extend(
            history
                .list(&newest)?
                .into_iter()
                .map(|record| (record, Rc::clone(&login))),
        );
    }
    found.sort_by(|(one, _), (other, _)| {
        other
            .created
            .cmp(&one.created)
            .then_with(|| other.id.cmp(&one.id))
    });
    found.truncate(MAX_ALIASES);
    Ok(found)
}

fn login(context: &Context, cluster: &str) -> Result<Login> {
    match context.cluster(cluster)?.transport() {
        Some(machine) => machine.login(),
        None => Err(Error::unsupported(format!(
            "runs of `{cluster}` have no host that an alias could lead to"
        ))),
    }
}

fn entry(context: &Context, names: &[String], login: &Login) -> Result<String> {
    let mut text = String::new();
    for name in names {
        let _ = write!(
            text,
            "\nHost {name}\n{}  ControlMaster no\n  ControlPath none\n",
            lines(context, name, login)?
        );
    }
    Ok(text)
}

/// The options for the node that an alias means. Only options that OpenSSH clients know since 7.3,
/// because a client refuses the user's whole configuration for one unknown option.
pub(crate) fn lines(context: &Context, alias: &str, login: &Login) -> Result<String> {
    let own = std::env::current_exe()
        .map_err(|error| Error::bug("the path of this program is unknown").source_error(error))?;
    let (own, state) = (own.display(), context.state()?.root().display());
    let mut text = format!("  User {}\n", login.user);
    text += &identities(&login.keys);
    let _ = writeln!(
        text,
        "  ProxyCommand \"{own}\" {CONNECT_VERB} \"{state}\" {alias} %p"
    );
    // Our command fetches the node's host keys over the trusted connection to the login host, and
    // writes them to this file before ssh reads it.
    let keys = crate::reach::tunnels::quoted(&keys_file(context, alias)?)?;
    let _ = writeln!(
        text,
        "  UserKnownHostsFile {keys}\n  GlobalKnownHostsFile /dev/null\n  HostKeyAlias {alias}"
    );
    text += "  StrictHostKeyChecking yes\n  CheckHostIP no\n  UpdateHostKeys no\n";
    Ok(text)
}

/// The key files that exist. ssh lists the default ones even if they are missing, and warns about
/// each missing file in its configuration.
fn identities(keys: &[String]) -> String {
    let is_there =
        |key: &&String| crate::wiring::machines::expand(key).is_ok_and(|path| path.exists());
    keys.iter()
        .filter(is_there)
        .fold(String::new(), |text, key| {
            text + "  IdentityFile \"" + key + "\"\n"
        })
}

/// Host keys of the node that an alias led to last.
fn keys_file(context: &Context, alias: &str) -> Result<PathBuf> {
    Ok(context.state()?.ssh().join("keys").join(alias))
}

/// The alias of a tunnel's far end. Its host key is that of the target host, whatever the local
/// port.
fn tunnel_entry(context: &Context, name: &str, wanted: &Wanted) -> Result<String> {
    let definition = &wanted.definition;
    if !definition.is_for_ssh() {
        return Ok(String::new());
    }
    let mut text = format!(
        "\nHost tow-{name}\n  HostName 127.0.0.1\n  Port {}\n  HostKeyAlias {}\n",
        definition.port,
        definition.key_name()
    );
    if let Some(user) = &wanted.user {
        let _ = writeln!(text, "  User {user}");
    }
    text += &identities(&wanted.keys);
    let known = crate::reach::tunnels::quoted(&context.state()?.ssh().join("known_hosts"))?;
    let _ = writeln!(
        text,
        "  UserKnownHostsFile {known} ~/.ssh/known_hosts ~/.ssh/known_hosts2\n  CheckHostIP \
            no\n  ProxyJump none"
    );
    // A client without this option asks its user about a new host.
    if Client::installed().takes_new_hosts() {
        text += "  StrictHostKeyChecking accept-new\n";
    }
    Ok(text)
}

/// Becomes the connection of an alias: `ssh` starts this as its `ProxyCommand`.
#[expect(
    clippy::disallowed_methods,
    reason = "it becomes the ssh that leads to the node"
)]
pub(crate) fn connect(
    context: &Context,
    alias: &str,
    port: u16,
) -> Result<std::convert::Infallible> {
    use std::os::unix::process::CommandExt;
    let record = find(context, alias)?;
    let (machine, host) = crate::reach::through(context, &record.id, 0)?;
    let keys = host_keys(machine.as_ref(), &host, port)?;
    let lines = keys
        .iter()
        .fold(String::new(), |text, key| text + alias + " " + key + "\n");
    let file = keys_file(context, alias)?;
    let failed = |error| Error::from_io(format!("{} cannot be written", file.display()), error);
    towline_host::filesystem::private_folder(file.parent().unwrap_or(&file)).map_err(failed)?;
    towline_host::once::replace(&file, lines.as_bytes()).map_err(failed)?;
    let argv = machine.proxy(&host, port)?;
    let error = std::process::Command::new(&argv[0]).args(&argv[1..]).exec();
    Err(Error::from_io("ssh cannot be started", error))
}

/// The host keys of a node, fetched from its login host. A node that is down shows this within
/// seconds, while a connection to it would hang for minutes.
fn host_keys(login: &dyn Transport, host: &str, port: u16) -> Result<Vec<String>> {
    let port = port.to_string();
    let words = [
        "ssh-keyscan",
        "-T",
        "5",
        "-p",
        &port,
        "-t",
        "ed25519,ecdsa,rsa",
        "--",
        host,
    ];
    let ran = login.run(&words, b"", std::time::Duration::from_secs(15))?;
    if ran.code == 127 {
        return Err(Error::unsupported(format!(
            "there is no `ssh-keyscan` on `{}` to read the host key of {host}",
            login.place()
        ))
        .hint("`tow ssh` goes through Slurm instead"));
    }
    let text = String::from_utf8_lossy(&ran.out);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let keys: Vec<String> = lines
        .filter_map(|line| line.split_once(' '))
        .map(|(_, key)| key.trim().to_owned())
        .collect();
    if keys.is_empty() {
        return Err(Error::unreachable(format!(
            "{host} does not answer `{}` on port {port}: it is down, or runs no ssh server",
            login.place()
        ))
        .hint(
            "`tow nodes` shows the state of nodes; `tow ssh` goes through Slurm, not through ssh \
                to the node",
        ));
    }
    Ok(keys)
}
