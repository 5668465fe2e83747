//! Faults between a client and a service, and rules that choose the requests.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection is reset when the request's head is read; nothing reaches the service.
    ResetBefore,
    /// Reset with half of the request's body read; nothing reaches the service.
    ResetWithin,
    /// Reset as soon as the service has the whole request. The service acts on it, perhaps after
    /// the client has tried again.
    ResetAfter,
    /// The service has acted and answered; the connection is closed and the answer is lost.
    LostAnswer,
    /// The service has acted; its answer never comes and the connection stays open.
    Silence,
    /// Answered by the proxy on a connection that stays open: nothing reaches the service.
    Answer {
        status: u16,
        retry_after_seconds: Option<u32>,
    },
    /// The answer's body comes in pieces of so many bytes, with a pause before each.
    Trickle { piece: usize, pause: Duration },
    /// Half of the body comes, then the connection is closed; Content-Length gives all of it.
    Truncated,
    /// Content-Length gives half and half comes: no error in the protocol.
    Shortened,
    /// One bit in the middle of the body is flipped.
    Flipped,
}

impl Fault {
    /// 503 with `Retry-After` of a second.
    pub const BUSY: Self = Self::Answer {
        status: 503,
        retry_after_seconds: Some(1),
    };
    /// 429 with `Retry-After` of a second.
    pub const TOO_MANY: Self = Self::Answer {
        status: 429,
        retry_after_seconds: Some(1),
    };
}

/// A rule: a fault, and the requests it happens to.
#[derive(Debug, Clone)]
pub struct Rule {
    faults: Vec<Fault>,
    method: Option<String>,
    path_has: Option<String>,
    when: When,
    most_per_request: usize,
    matched: usize,
    times: BTreeMap<String, (usize, usize)>,
}

#[derive(Debug, Clone, Copy)]
enum When {
    Always,
    Nth(usize),
    First(usize),
    Every(usize),
    Share { percent: u64, seed: u64 },
}

impl Rule {
    /// For every request, until narrowed.
    pub fn new(fault: Fault) -> Self {
        Self::one_of(&[fault])
    }

    /// One of several: drawn at random if requests are, else in turn.
    pub fn one_of(faults: &[Fault]) -> Self {
        let faults = faults.to_vec();
        Self {
            faults,
            method: None,
            path_has: None,
            when: When::Always,
            most_per_request: usize::MAX,
            matched: 0,
            times: BTreeMap::new(),
        }
    }

    /// Only requests of this method whose path with query contains `path_has`.
    pub fn to(mut self, method: &str, path_has: &str) -> Self {
        (self.method, self.path_has) = (Some(method.to_owned()), Some(path_has.to_owned()));
        self
    }

    /// The n-th that matches, counted from 1.
    pub fn nth(self, n: usize) -> Self {
        self.when(When::Nth(n))
    }
    /// The first n that match.
    pub fn first(self, n: usize) -> Self {
        self.when(When::First(n))
    }
    /// Each n-th that matches.
    pub fn every(self, n: usize) -> Self {
        self.when(When::Every(n))
    }
    /// So many of a hundred. The outcome depends on the seed, the request itself and how often it
    /// was sent, and not on the order in which parallel requests arrive.
    pub fn share(self, percent: u64, seed: u64) -> Self {
        self.when(When::Share { percent, seed })
    }
    /// At most so many faults for the same request, so that a client that retries gets through.
    pub fn at_most_per_request(mut self, times: usize) -> Self {
        self.most_per_request = times;
        self
    }

    fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    /// The fault for this request. `same` is equal for a request and its repetitions.
    pub(super) fn decide(&mut self, method: &str, path: &str, same: &str) -> Option<Fault> {
        let fits = self.method.as_deref().is_none_or(|wanted| wanted == method)
            && self
                .path_has
                .as_deref()
                .is_none_or(|part| path.contains(part));
        if !fits {
            return None;
        }
        self.matched += 1;
        let (sent, faulted) = self.times.entry(same.to_owned()).or_default();
        *sent += 1;
        let draw = |seed: u64| {
            BuildHasherDefault::<DefaultHasher>::default().hash_one((seed, same, *sent))
        };
        let (happens, turn) = match self.when {
            When::Always => (true, self.matched),
            When::Nth(n) => (self.matched == n, 0),
            When::First(n) => (self.matched <= n, self.matched),
            When::Every(n) => (self.matched.is_multiple_of(n), self.matched / n),
            When::Share { percent, seed } => (
                draw(seed) % 100 < percent,
                usize::try_from(draw(!seed) % 1024).unwrap_or(0),
            ),
        };
        if !happens || *faulted >= self.most_per_request || self.faults.is_empty() {
            return None;
        }
        *faulted += 1;
        Some(self.faults[turn % self.faults.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(rule: &mut Rule, many: usize) -> Vec<usize> {
        (1..=many)
            .filter(|_| {
                rule.decide("PUT", "/c/b?comp=block&blockid=AA", "same")
                    .is_some()
            })
            .collect()
    }

    #[test]
    fn rules_hit_what_they_say() {
        let rule = || Rule::new(Fault::ResetBefore);
        assert_eq!(hit(&mut rule(), 3), [1, 2, 3]);
        assert_eq!(hit(&mut rule().nth(2), 4), [2]);
        assert_eq!(hit(&mut rule().first(2), 4), [1, 2]);
        assert_eq!(hit(&mut rule().every(2), 5), [2, 4]);
        assert_eq!(hit(&mut rule().at_most_per_request(1), 5), [1]);
        assert!(hit(&mut rule().to("GET", ""), 5).is_empty());
        assert!(hit(&mut rule().to("PUT", "comp=blocklist"), 5).is_empty());
        assert_eq!(hit(&mut rule().to("PUT", "comp=block&").nth(5), 5), [5]);
    }

    #[test]
    fn a_share_follows_from_the_seed_and_not_from_the_order() {
        let requests: Vec<String> = (0..2000).map(|number| format!("/c/{number}")).collect();
        let faulted = |seed: u64, requests: Vec<&String>| -> Vec<String> {
            let mut rule = Rule::one_of(&[Fault::ResetBefore, Fault::Flipped]).share(20, seed);
            let mut faulted: Vec<String> = requests
                .into_iter()
                .filter_map(|path| {
                    rule.decide("GET", path, path)
                        .map(|fault| format!("{path} {fault:?}"))
                })
                .collect();
            faulted.sort();
            faulted
        };
        let forward = faulted(7, requests.iter().collect());
        assert_eq!(forward, faulted(7, requests.iter().rev().collect()));
        assert_ne!(forward, faulted(8, requests.iter().collect()));
        assert!((300..500).contains(&forward.len()), "{}", forward.len());
        assert!(
            (100..300).contains(
                &forward
                    .iter()
                    .filter(|line| line.ends_with("Flipped"))
                    .count()
            )
        );
    }
}
