//! `tow ui`: the page in a browser.

use super::Report;
use crate::context::Context;
use crate::output;
use crate::wiring::{api, threads};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use towline_api::http::{Downloads, File, Site, Token, serve};
use towline_core::{Error, Result};
use towline_host::surroundings;
use towline_page::FILES;
use towline_wire::report::ui::PageAddress;

/// The port that is tried first, so that a tunnel to it stays right.
const USUAL_PORT: u16 = 7860;

/// Open the page: runs, logs, clusters and data in a browser.
///
/// It answers on this machine alone, to whoever has the address that it prints, until Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow ui                     opens the browser
  tow ui --no-open           only prints the address
  tow ui --port 9000         at a port of your choice")]
pub(crate) struct Args {
    /// Do not open a browser.
    #[arg(long)]
    no_open: bool,
    /// The port on this machine [default: 7860, or a free one].
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let session = api::session(context)?;
    let runtime = threads::serving_runtime()?;
    runtime.block_on(async {
        let listener = listen(args.port).await?;
        let address = listener
            .local_addr()
            .map_err(|error| Error::from_io("the port is not known", error))?;
        let token = Token::new()?;
        let page = format!("http://{address}/#token={}", token.expose());
        let mut interrupted = signals(SignalKind::interrupt())?;
        let mut terminated = signals(SignalKind::terminate())?;
        say(context, &page, address, args)?;
        let files = FILES.iter().map(|file| File {
            name: file.name,
            gzip: file.gzip,
            tag: file.tag,
        });
        let site = Site {
            session,
            files: files.collect(),
            token,
            downloads: Downloads::default(),
            address,
        };
        let end = async {
            tokio::select! {
                _ = interrupted.recv() => {},
                _ = terminated.recv() => {},
            }
        };
        serve(Arc::new(site), listener, end).await
    })?;
    // Calls that are under way are cut off: those that change something are processes of their own.
    runtime.shutdown_background();
    Ok(Report::default())
}

fn signals(kind: SignalKind) -> Result<tokio::signal::unix::Signal> {
    signal(kind).map_err(|error| Error::bug("signals cannot be watched").source_error(error))
}

async fn listen(port: Option<u16>) -> Result<TcpListener> {
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Some(port) = port else {
        return match TcpListener::bind(at(USUAL_PORT)).await {
            Ok(listener) => Ok(listener),
            Err(_) => TcpListener::bind(at(0))
                .await
                .map_err(|error| Error::from_io("no port on this machine can be used", error)),
        };
    };
    TcpListener::bind(at(port)).await.map_err(|error| {
        Error::from_io(format!("port {port} on this machine cannot be used"), error)
            .hint("leave `--port` out to get a free one")
    })
}

/// Prints the address, and opens it if there is a browser here.
fn say(context: &Context, page: &str, address: SocketAddr, args: &Args) -> Result<()> {
    if context.json {
        let answer = PageAddress {
            address: page.to_owned(),
            port: address.port(),
        };
        let value = serde_json::to_value(answer)
            .map_err(|error| Error::bug("the address cannot be printed").source_error(error))?;
        return output::json(&value);
    }
    output::text(&format!("{page}\n"))?;
    output::hint("the address holds a key to your runs: keep it to yourself. Ctrl-C ends the page");
    let over_ssh = ["SSH_CONNECTION", "SSH_CLIENT"]
        .iter()
        .any(|name| surroundings::variable_os(name).is_some());
    if over_ssh {
        let port = address.port();
        let host = surroundings::host_name();
        output::hint(&format!(
            "to see it where you sit, type there: ssh -N -L {port}:127.0.0.1:{port} {host}    and \
                open the same address"
        ));
        return Ok(());
    }
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| surroundings::variable_os(name).is_some_and(|value| !value.is_empty()));
    if !args.no_open && has_screen && towline_host::own::open_browser(page).is_err() {
        output::hint("no browser could be started: open the address yourself");
    }
    Ok(())
}
