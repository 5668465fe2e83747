//! Laying out the code of an attempt, once for all nodes.

use super::stopping::Stopping;
use super::{CHECK_INTERVAL, Head};
use crate::code::Layout;
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use towline_core::reason::{Cause, Ending};
use towline_wire::runner::CodeOrder;

impl Head {
    /// Lays out the code. Returns an ending if that failed or the attempt was stopped meanwhile.
    pub(super) fn lay_out(
        &mut self,
        attempt: u32,
        stopping: &mut Stopping,
    ) -> io::Result<Option<Ending>> {
        let Some(code) = &self.order.plan.resolved.code else {
            return Ok(None);
        };
        let order = CodeOrder {
            snapshot: code.snapshot.clone().unwrap_or_default(),
            store: self.stage.snapshots().to_string_lossy().into_owned(),
            target: self.folder.code().to_string_lossy().into_owned(),
            root: String::new(),
            links: Vec::new(),
            mapped: code.mapped.clone(),
        };
        let layout = Layout::begin(order, attempt)?;
        while !layout.is_over() {
            let limit = crate::carry::timespec(CHECK_INTERVAL);
            let _ = poll(
                &mut [
                    PollFd::from_borrowed_fd(layout.watch(), PollFlags::IN),
                    PollFd::new(&self.signals.end, PollFlags::IN),
                ],
                Some(&limit),
            );
            self.check_for_end(attempt, stopping)?;
            if stopping.ending.is_some() {
                layout.stop();
            }
        }
        let laid_out = layout.finish();
        Ok(stopping.ending.clone().or_else(|| {
            laid_out.err().map(|error| {
                Ending::cause(Cause::NotStarted)
                    .detail(format!("the code could not be laid out: {error}"))
            })
        }))
    }
}
