//! Requests of clients (`tow` commands).

use super::far::FarRequest;
use super::ledger::{Query, ReadThen};
use super::{Daemon, Effect};
use towline_core::state::RunState;
use towline_core::{Error, Result};
use towline_wire::daemon::{
    Hello, Observation, PROTOCOL, Refusal, RefusalKind, Reply, Request, Status,
};
use towline_wire::version;

impl Daemon {
    pub(super) fn asked(&mut self, connection: u64, hello: Hello, limits_are_possible: bool) {
        self.connections += 1;
        if matches!(hello.request, Request::Stop) {
            self.reply(connection, Reply::Stopping);
            return self.effect(Effect::Leave);
        }
        if version::is_older(version::version(), &hello.version) {
            let message = format!(
                "tow {} makes room for {}",
                version::version(),
                hello.version
            );
            self.refuse(connection, RefusalKind::Leaving, message);
            return self.effect(Effect::Leave);
        }
        if hello.protocol != PROTOCOL {
            let message = format!(
                "this tow ({}) is too old to talk to the daemon ({})",
                hello.version,
                version::version()
            );
            return self.refuse_with(connection, &Error::unsupported(message));
        }
        self.answer(connection, hello.request, limits_are_possible);
    }

    fn answer(&mut self, connection: u64, request: Request, limits_are_possible: bool) {
        match request {
            Request::Status => {
                let status = self.status();
                self.reply(connection, Reply::Status(status));
            }
            Request::Stop => {}
            Request::Submit(submit) => self.submit(*submit, limits_are_possible, connection),
            Request::Cancel { runs, by } => self.cancel(runs, by.as_deref(), connection),
            Request::Watch { runs, logs } => self.watch(connection, runs, logs),
            Request::Refresh { run } => self.ask_far(connection, run, FarRequest::Look),
            Request::BringLogs { run } => self.ask_far(connection, run, FarRequest::Logs),
            Request::Observe { runs } => {
                self.ledger
                    .read(Query::States(runs), ReadThen::Observe { connection });
            }
            Request::Explain { run } => self.explain(&run, connection),
            Request::Facts { limits } => {
                self.set_limits(limits);
                self.facts(connection);
            }
            Request::Workspaces => self.effect(Effect::Workspaces { connection }),
            Request::Forget { runs, told } => self.forget(runs, told, connection),
            Request::Change { runs, change } => self.change(&runs, &change, connection),
            Request::Tag { runs, add, remove } => self.tag(runs, &add, &remove, connection),
            Request::Tunnel { name } => self.effect(Effect::Tunnel { connection, name }),
        }
    }

    pub(super) fn refuse(
        &mut self,
        connection: u64,
        kind: RefusalKind,
        message: impl Into<String>,
    ) {
        let refusal = Refusal {
            kind,
            refusal: None,
            message: message.into(),
            hints: Vec::new(),
        };
        self.reply(connection, Reply::Refused(refusal));
    }

    pub(super) fn refuse_with(&mut self, connection: u64, error: &Error) {
        self.reply(connection, Reply::Refused(Refusal::from(error)));
    }

    /// The shell adds the memory that the process uses.
    fn status(&self) -> Status {
        Status {
            version: version::version().to_owned(),
            protocol: PROTOCOL,
            pid: self.settings.pid,
            started: self.settings.begun,
            queued: self.queue.waiting_count(),
            running: self.queue.holding_count(),
            runners: self.runners.count(),
            memory_bytes: 0,
            trouble: self.trouble(),
        }
    }

    /// Why the history cannot be written, or no run can be started, at present.
    fn trouble(&self) -> Option<String> {
        let unwritten = self.ledger.stalled().map(ToString::to_string);
        unwritten.or_else(|| {
            self.paused_starts
                .as_ref()
                .filter(|_| self.queue.waiting_count() > 0)
                .map(|paused| paused.why.clone())
        })
    }

    pub(super) fn hung_up(&mut self, connection: u64) {
        self.connections = self.connections.saturating_sub(1);
        self.unwatch(connection);
        self.abandon(connection);
    }

    pub(super) fn observed(&mut self, connection: u64, states: Result<Vec<Option<RunState>>>) {
        let observe = |state: Option<RunState>| match state {
            Some(state) => Observation::Known {
                native: state.phase.word().to_owned(),
                state: Box::new(state),
            },
            None => Observation::Gone,
        };
        match states {
            Ok(states) => {
                let observations = states.into_iter().map(observe).collect();
                self.reply(connection, Reply::Observed { observations });
            }
            Err(error) => self.refuse_with(connection, &error),
        }
    }
}
