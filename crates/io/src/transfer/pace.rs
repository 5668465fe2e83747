//! How many requests run at once. The limit grows while the rate grows, and is halved when the
//! service throttles us. The bytes in memory are bounded.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests that run at once in the beginning.
const INITIAL_REQUESTS: u32 = 8;
/// The limit never falls below this many requests.
const MIN_REQUESTS: u32 = 2;
/// The limit never rises above this many requests.
const MAX_REQUESTS: u32 = 64;
/// Bytes of blocks held at once, whatever the number of requests.
const MAX_BYTES_HELD: u64 = 32 << 20;
/// A request costs as much as this many more bytes.
const REQUEST_OVERHEAD_BYTES: u64 = 64 << 10;
/// The shortest time over which a rate is measured.
const RATE_WINDOW: Duration = Duration::from_millis(250);
/// After this many windows at one limit a larger limit is tried again.
const STEADY_WINDOWS: u32 = 8;

/// Decides on the limit. It does no I/O and knows no clock.
#[derive(Debug)]
struct Judge {
    limit: u32,
    best: f64,
    work: u64,
    count: u32,
    since: Duration,
    quiet: u32,
    throttled: u64,
}

impl Judge {
    const fn new() -> Self {
        Self {
            limit: INITIAL_REQUESTS,
            best: 0.0,
            work: 0,
            count: 0,
            since: Duration::ZERO,
            quiet: 0,
            throttled: 0,
        }
    }

    /// A request of `bytes` ended at `now`. `throttled` is how often the service has throttled us.
    fn done(&mut self, bytes: u64, throttled: u64, now: Duration) {
        if throttled > self.throttled {
            self.throttled = throttled;
            self.limit = (self.limit / 2).max(MIN_REQUESTS);
            self.begin(now);
            self.best = 0.0;
            return;
        }
        self.work += bytes + REQUEST_OVERHEAD_BYTES;
        self.count += 1;
        let elapsed = now.saturating_sub(self.since);
        if elapsed < RATE_WINDOW || self.count < self.limit {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "a rate, not an account")]
        let rate = self.work as f64 / elapsed.as_secs_f64();
        if rate > self.best * 1.05 || self.quiet >= STEADY_WINDOWS {
            self.best = self.best.max(rate);
            self.limit = (self.limit + (self.limit / 4).max(1)).min(MAX_REQUESTS);
            self.quiet = 0;
        } else if rate < self.best * 0.7 {
            // The network became slower, so the best rate starts again from here.
            self.best = rate;
            self.limit = (self.limit - self.limit / 4).max(MIN_REQUESTS);
            self.quiet = 0;
        } else {
            self.quiet += 1;
        }
        self.begin(now);
    }

    fn begin(&mut self, now: Duration) {
        (self.work, self.count, self.since) = (0, 0, now);
    }
}

#[derive(Debug)]
pub struct Pace {
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    begun: Instant,
    /// The judge, the permits that exist, and how many of them are dropped when they return.
    state: Mutex<(Judge, u32, u32)>,
}

/// The right to make one request and to hold its bytes.
#[derive(Debug)]
pub struct Turn {
    pace: Arc<Pace>,
    request: Option<OwnedSemaphorePermit>,
    _bytes: OwnedSemaphorePermit,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            requests: Arc::new(Semaphore::new(INITIAL_REQUESTS as usize)),
            bytes: Arc::new(Semaphore::new(units(MAX_BYTES_HELD) as usize)),
            begun: Instant::now(),
            state: Mutex::new((Judge::new(), INITIAL_REQUESTS, 0)),
        }
    }
}

/// Bytes are counted in units of 4 KiB.
fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(4096)).unwrap_or(u32::MAX)
}

impl Pace {
    /// Waits for a turn.
    pub async fn turn(self: &Arc<Self>, bytes: u64) -> Turn {
        let held = self
            .bytes
            .clone()
            .acquire_many_owned(units(bytes.min(MAX_BYTES_HELD)))
            .await
            .expect("never closed");
        let request = self
            .requests
            .clone()
            .acquire_owned()
            .await
            .expect("never closed");
        Turn {
            pace: self.clone(),
            request: Some(request),
            _bytes: held,
        }
    }

    /// How many requests may run now.
    pub fn limit(&self) -> u32 {
        self.state.lock().expect("no panic while held").0.limit
    }

    fn done(&self, bytes: u64, throttled: u64) {
        let mut state = self.state.lock().expect("no panic while held");
        let (judge, exist, surplus) = &mut *state;
        judge.done(bytes, throttled, self.begun.elapsed());
        let wanted = judge.limit;
        if wanted > *exist - *surplus {
            let more = wanted - (*exist - *surplus);
            let kept = more.min(*surplus);
            *surplus -= kept;
            *exist += more - kept;
            self.requests.add_permits((more - kept) as usize);
        } else {
            *surplus = *exist - wanted;
        }
    }
}

impl Turn {
    /// Ends the turn: how many bytes it moved, and how often the service has throttled us so far.
    pub fn done(self, bytes: u64, throttled: u64) {
        self.pace.done(bytes, throttled);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.pace.state.lock().expect("no panic while held");
        if state.2 > 0
            && let Some(request) = self.request.take()
        {
            request.forget();
            state.1 -= 1;
            state.2 -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A service that gives `rate(parallel)` requests a second; the limit after some seconds.
    fn settle(rate: impl Fn(u32) -> f64, seconds: f64) -> u32 {
        let mut judge = Judge::new();
        let mut now = 0.0;
        while now < seconds {
            now += 1.0 / rate(judge.limit);
            judge.done(1 << 20, 0, Duration::from_secs_f64(now));
        }
        judge.limit
    }

    #[test]
    fn the_limit_grows_while_the_rate_does() {
        assert!(
            settle(|parallel| f64::from(parallel) * 20.0, 30.0) >= 60,
            "a distant service is kept busy"
        );
        assert!(settle(|_| 160.0, 10.0) <= 24, "a busy one is left in peace");
    }

    #[test]
    fn throttling_halves_the_limit_within_its_bounds() {
        let mut judge = Judge::new();
        for complaint in 1..10 {
            judge.done(1, complaint, Duration::from_secs(complaint));
        }
        assert_eq!(judge.limit, MIN_REQUESTS);
        judge.limit = 32;
        judge.done(1, 10, Duration::from_secs(20));
        assert_eq!(judge.limit, 16);
        judge.done(1, 10, Duration::from_secs(20));
        assert_eq!(judge.limit, 16, "the same complaint counts once");
    }

    #[tokio::test]
    async fn permits_follow_the_limit_down_and_up() {
        let pace = Arc::new(Pace::default());
        let mut turns = Vec::new();
        for _ in 0..INITIAL_REQUESTS {
            turns.push(pace.turn(1).await);
        }
        turns.pop().expect("one").done(1, 1);
        assert_eq!(pace.limit(), INITIAL_REQUESTS / 2);
        drop(turns);
        assert_eq!(
            pace.requests.available_permits(),
            INITIAL_REQUESTS as usize / 2
        );
        for complaint in 2..9 {
            pace.turn(1).await.done(1, complaint);
        }
        assert_eq!(pace.requests.available_permits(), MIN_REQUESTS as usize);
    }

    #[tokio::test]
    async fn bytes_are_bounded() {
        let pace = Arc::new(Pace::default());
        let held = [
            pace.turn(MAX_BYTES_HELD / 2).await,
            pace.turn(MAX_BYTES_HELD / 2).await,
        ];
        assert!(
            tokio::time::timeout(Duration::from_millis(20), pace.turn(4096))
                .await
                .is_err()
        );
        drop(held);
        let _ = pace.turn(MAX_BYTES_HELD * 4).await;
    }
}
