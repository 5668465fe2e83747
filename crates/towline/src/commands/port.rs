//! `tow port`: forwards a port of a run to this machine.

use super::{Report, logs};
use crate::context::Context;
use crate::output;
use crate::reach;
use crate::runs::far;
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use towline_core::record::RunRecord;
use towline_core::transport::Forward;
use towline_core::{Error, Result};

/// Forward a port of a running job to this machine, until Ctrl-C.
///
/// It follows the run: if the run is started again on another node, new connections go there.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow port @ 8888              http://127.0.0.1:8888 is port 8888 of the latest run
  tow port 60ce 6006 --local 16006
  tow port 60ce 8888 --rank 8  of the node that has rank 8")]
pub(crate) struct Args {
    /// A run: an id, the end of one, or @ for the latest.
    #[arg(value_name = "RUN")]
    run: String,
    /// The port on the node.
    #[arg(value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// The port on this machine [default: the same if it is free, else any].
    #[arg(long, value_name = "PORT")]
    local: Option<u16>,
    /// Use the node that has this rank.
    #[arg(long, default_value_t = 0, value_name = "K")]
    rank: u32,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let history = context.history()?;
    let record = logs::one_run(history.find_to_read(&args.run)?)?;
    let is_far = far::is_far(&history, &record.id)?;
    drop(history);
    let listener = listen(args)?;
    let port = listener
        .local_addr()
        .map_err(|error| Error::bug("a port without a number").source_error(error))?
        .port();
    let connections = Connections {
        record,
        rank: args.rank,
        port: args.port,
        is_far,
        open: Mutex::default(),
    };
    // One look before anything is promised.
    let first = connections.dial(context)?;
    drop(first);
    output::text(&format!("127.0.0.1:{port}\n"))?;
    output::hint(&format!(
        "port {} of {}; Ctrl-C ends it",
        args.port, connections.record.id
    ));
    let interrupts = crate::runs::follow::interrupts()?;
    let connections = Arc::new(connections);
    loop {
        let mut ready = [
            rustix::event::PollFd::new(&listener, rustix::event::PollFlags::IN),
            rustix::event::PollFd::from_borrowed_fd(
                interrupts.as_fd(),
                rustix::event::PollFlags::IN,
            ),
        ];
        let _ = rustix::event::poll(&mut ready, None);
        if !ready[1].revents().is_empty() {
            return Ok(Report {
                code: 130,
                ..Report::default()
            });
        }
        if ready[0].revents().is_empty() {
            continue;
        }
        if let Ok((near, _)) = listener.accept() {
            match connections.dial(context) {
                Ok(far) => carry(near, far),
                Err(error) => output::status(&format!("warning: {error}")),
            }
        }
    }
}

/// Listens on the loopback address, so that only this machine can connect.
fn listen(args: &Args) -> Result<TcpListener> {
    let taken = |port: u16, error: io::Error| {
        Error::from_io(format!("port {port} of this machine cannot be used"), error)
            .hint("choose another with `--local`")
    };
    match args.local {
        Some(port) => {
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| taken(port, error))
        }
        None => TcpListener::bind((Ipv4Addr::LOCALHOST, args.port))
            .or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
            .map_err(|error| taken(args.port, error)),
    }
}

struct Connections {
    record: RunRecord,
    rank: u32,
    port: u16,
    is_far: bool,
    /// Ports of this machine that lead to nodes, by node.
    open: Mutex<HashMap<String, Box<dyn Forward>>>,
}

impl Connections {
    /// Connects to the run's present node.
    fn dial(&self, context: &Context) -> Result<TcpStream> {
        let near = if self.is_far {
            self.far_port(context)?
        } else {
            self.port
        };
        TcpStream::connect((Ipv4Addr::LOCALHOST, near)).map_err(|error| {
            Error::unreachable(format!(
                "nothing answers at port {} of {}",
                self.port, self.record.id
            ))
            .source_error(error)
            .hint("does it listen already, and not on another address?")
        })
    }

    fn far_port(&self, context: &Context) -> Result<u16> {
        let (machine, host) = reach::through(context, &self.record.id, self.rank)?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(forward) = open.get(&host) {
            return Ok(forward.port());
        }
        let forward = machine.forward(&host, self.port)?;
        let port = forward.port();
        open.insert(host, forward);
        Ok(port)
    }
}

/// Copies bytes in both directions until either side closes.
fn carry(near: TcpStream, far: TcpStream) {
    let copy = |mut from: TcpStream, mut to: TcpStream| {
        // Without a thread both ends are dropped, as by a server that hangs up.
        let _ = std::thread::Builder::new().spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
    };
    if let (Ok(near_again), Ok(far_again)) = (near.try_clone(), far.try_clone()) {
        copy(near, far);
        copy(far_again, near_again);
    }
}
