//! A workspace on another machine: this program does the work there, and reports its progress.

use crate::{Datastores, Task, act};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use towline_core::Result;
use towline_core::redact::SecretSet;
use towline_core::transport::Transport;
use towline_snapshot::digest::Digest;
use towline_snapshot::progress::{Progress, Reading};
use towline_wire::daemon::Refusal;
use towline_wire::frame;
use towline_wire::line::{GREETING, Line};
use towline_wire::program::OwnProgram;
use towline_wire::workspace::{
    Outcome, PROTOCOL, SCRATCH_VERB, ScratchHello, ScratchOrder, ScratchReply,
};

/// The folder for this program on the other machine, below the home.
const STAGE_FOLDER: &str = ".towline";
/// The time between two reports of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);
/// More than any set of credentials has.
const MAX_SECRET_BYTES: u64 = 1 << 20;

/// Has a task done on another machine. The caller has signed in. This program is uploaded if it is
/// missing there.
pub fn ask(
    machine: &dyn Transport,
    program: &OwnProgram,
    task: &Task,
    progress: &Progress,
    say: &mut dyn FnMut(String),
) -> Result<Outcome> {
    let (mut line, _) =
        Line::open::<ScratchHello>(machine, STAGE_FOLDER, program, &[SCRATCH_VERB])?;
    let secrets = task.secrets.to_private_bytes();
    line.send(
        &ScratchOrder {
            secrets: secrets.len() as u64,
            ..task.order.clone()
        },
        &secrets,
    )?;
    loop {
        match line.receive()? {
            ScratchReply::Progress { files, bytes } => progress.show(Reading { files, bytes }),
            ScratchReply::Said(text) => say(text),
            ScratchReply::Done(outcome) => return Ok(*outcome),
            ScratchReply::Refused(refusal) => return Err(refusal.into()),
        }
    }
}

/// The other side: reads one order from stdin and writes answers to stdout. This process exits when
/// the connection ends, because an unfinished act has no effect.
pub fn serve(datastores: Datastores) -> io::Result<()> {
    let output = Mutex::new(BufWriter::new(io::stdout()));
    let tell = |reply: &ScratchReply| {
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        frame::write(&mut *output, reply).and_then(|()| output.flush())
    };
    let program = Digest::of(&std::fs::read("/proc/self/exe")?).to_string();
    {
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        output.write_all(GREETING)?;
        frame::write(
            &mut *output,
            &ScratchHello {
                protocol: PROTOCOL,
                program,
            },
        )?;
        output.flush()?;
    }
    let mut input = BufReader::new(io::stdin());
    let Some(order) = frame::read_exactly::<ScratchOrder>(&mut input)? else {
        return Ok(());
    };
    let mut secrets = Vec::new();
    (&mut input)
        .take(order.secrets.min(MAX_SECRET_BYTES))
        .read_to_end(&mut secrets)?;
    std::thread::Builder::new().spawn(move || end_with(input))?;
    let secrets = SecretSet::from_private_bytes(&secrets).unwrap_or_default();
    let progress = Progress::default();
    let over = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        let teller = std::thread::Builder::new().spawn_scoped(scope, || {
            while !over.load(Ordering::Relaxed) {
                std::thread::park_timeout(PROGRESS_INTERVAL);
                let Reading { files, bytes } = progress.read();
                if tell(&ScratchReply::Progress { files, bytes }).is_err() {
                    return;
                }
            }
        });
        let outcome = act::perform(&order, &secrets, datastores, &progress, &mut |line| {
            drop(tell(&ScratchReply::Said(line)));
        });
        over.store(true, Ordering::Relaxed);
        let _ = teller.inspect(|teller| teller.thread().unpark());
        outcome
    });
    tell(&match outcome {
        Ok(outcome) => ScratchReply::Done(Box::new(outcome)),
        Err(error) => ScratchReply::Refused(Refusal::from(&error)),
    })
}

/// Waits for the end of the connection, and exits.
fn end_with(mut input: impl Read) {
    while matches!(input.read(&mut [0; 64]), Ok(count) if count > 0) {}
    #[expect(clippy::exit, reason = "killed at any moment, nothing is lost")]
    std::process::exit(1);
}
