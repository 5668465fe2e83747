//! One line on stderr that says how far something is; only on a terminal, only after a blink.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use towline_core::quantity::Memory;
use towline_snapshot::progress::Reading;

/// What takes less is not worth a line.
const BLINK: Duration = Duration::from_millis(400);
const FRAME: Duration = Duration::from_millis(100);

pub(crate) struct Bar {
    name: &'static str,
    begun: Instant,
}

impl Bar {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, begun: Instant::now() }
    }

    /// Does `work` and draws meanwhile.
    pub(crate) fn watch<T>(&self, read: impl Fn() -> Reading + Sync, work: impl FnOnce() -> T) -> T {
        if !std::io::stderr().is_terminal() {
            return work();
        }
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let drawer = scope.spawn(|| self.draw_until(&over, &read));
            let result = work();
            over.store(true, Ordering::Relaxed);
            drawer.thread().unpark();
            result
        })
    }

    fn draw_until(&self, over: &AtomicBool, read: &(impl Fn() -> Reading + Sync)) {
        let mut drawn = false;
        while !over.load(Ordering::Relaxed) {
            std::thread::park_timeout(FRAME);
            if self.begun.elapsed() >= BLINK && !over.load(Ordering::Relaxed) {
                let _ = write!(std::io::stderr(), "\r\x1b[K{}", line(self.name, &read(), self.begun.elapsed()));
                drawn = true;
            }
        }
        if drawn {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// `snapshot  45%  84M of 190M  310M/s  1s left`
fn line(name: &str, reading: &Reading, elapsed: Duration) -> String {
    let (done, all) = reading.bytes;
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = done.saturating_mul(1000) / millis;
    let percent = if all == 0 { 0 } else { done.min(all).saturating_mul(100) / all };
    let left = if rate == 0 { String::new() } else { format!("  {}s left", all.saturating_sub(done) / rate) };
    format!("{name}  {percent}%  {} of {}  {}/s{left}", Memory(done), Memory(all), Memory(rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_share_rate_and_rest() {
        let reading = Reading { files: (1, 2), bytes: (50 << 20, 200 << 20) };
        assert_eq!(line("up", &reading, Duration::from_secs(5)), "up  25%  50M of 200M  10M/s  15s left");
        assert_eq!(line("up", &Reading { files: (0, 0), bytes: (0, 0) }, Duration::ZERO), "up  0%  0 of 0  0/s");
    }
}
