//! A progress line on stderr; only on a terminal, and only after a moment.

use crate::output;
use crate::output::bar;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use towline_io::transfer::progress::Glance;
use towline_snapshot::progress::Reading;
use towline_wire::api::envelope::Progress as Reported;

/// Work that takes less time shows no progress.
const SHOWN_AFTER: Duration = Duration::from_millis(400);
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) struct Bar {
    name: &'static str,
    begun: Instant,
}

impl Bar {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            begun: Instant::now(),
        }
    }

    /// Does `work` and meanwhile shows how many files and bytes are done.
    pub(crate) fn watch<T>(
        &self,
        read: impl Fn() -> Reading + Sync,
        work: impl FnOnce() -> T,
    ) -> T {
        let shown = |for_program: bool| {
            let glance = glance(&read());
            if for_program {
                output::progress_json(bar::reported(self.name, &glance));
                return String::new();
            }
            bar::line(&glance, self.begun.elapsed())
        };
        self.watch_line(shown, work)
    }

    /// Does `work` and meanwhile shows how many of `total` are done.
    pub(crate) fn watch_count<T>(
        &self,
        done: &AtomicU64,
        total: u64,
        work: impl FnOnce() -> T,
    ) -> T {
        let shown = |for_program: bool| {
            let done = done.load(Ordering::Relaxed);
            if for_program {
                output::progress_json(Reported {
                    text: self.name.to_owned(),
                    files: done,
                    of_files: total,
                    is_total_known: true,
                    bytes: 0,
                    of_bytes: 0,
                });
                return String::new();
            }
            format!("{done} of {total}")
        };
        self.watch_line(shown, work)
    }

    /// `read` gives the line for people, or reports to a program.
    fn watch_line<T>(&self, read: impl Fn(bool) -> String + Sync, work: impl FnOnce() -> T) -> T {
        if !output::progress_is_json() && !std::io::stderr().is_terminal() {
            return work();
        }
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let drawer = std::thread::Builder::new()
                .spawn_scoped(scope, || self.draw_until(&over, &read))
                .ok();
            let result = work();
            over.store(true, Ordering::Relaxed);
            drawer.inspect(|drawer| drawer.thread().unpark());
            result
        })
    }

    fn draw_until(&self, over: &AtomicBool, read: &(impl Fn(bool) -> String + Sync)) {
        let mut drawn = false;
        let for_program = output::progress_is_json();
        while !over.load(Ordering::Relaxed) {
            std::thread::park_timeout(REDRAW_INTERVAL);
            if self.begun.elapsed() >= SHOWN_AFTER && !over.load(Ordering::Relaxed) {
                let line = read(for_program);
                if !for_program {
                    output::redraw(&format!("{}: {line}", self.name));
                    drawn = true;
                }
            }
        }
        if drawn {
            output::redraw("");
        }
    }
}

const fn glance(reading: &Reading) -> Glance {
    Glance {
        found: reading.files.1,
        found_bytes: reading.bytes.1,
        done: reading.files.0,
        done_bytes: reading.bytes.0,
        all_found: true,
    }
}
