//! Parts that long campaigns share: a seed that reproduces a campaign, its length, and its
//! submissions.

/// Whether campaigns run in full: `cargo xtask soak`.
pub fn is_soak() -> bool {
    std::env::var_os("TOW_SOAK").is_some()
}

/// `TOW_SEED`, or the seed of CI.
pub fn seed() -> u64 {
    std::env::var("TOW_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20_261_115)
}

/// A small random generator.
#[derive(Debug, Clone)]
pub struct Seeded(pub u64);

impl Seeded {
    /// A number below `below`; 0 when `below` is 0.
    pub fn next(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % below.max(1) as u64).unwrap()
    }

    pub fn small(&mut self, below: u32) -> u32 {
        u32::try_from(self.next(below as usize)).unwrap()
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.next(from.len())]
    }

    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.next(at + 1));
        }
    }
}

/// Bytes that do not compress, do not repeat and are the same each time.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// The kind of submission to a cluster that is not this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    One,
    /// Three runs.
    Sweep,
    /// Two nodes.
    Gang,
}

impl Shape {
    /// The options for it.
    pub const fn words(self) -> &'static [&'static str] {
        match self {
            Self::One => &[],
            Self::Sweep => &["--sweep", "seed=1-3"],
            Self::Gang => &["--nodes", "2"],
        }
    }

    /// The runs of a submission.
    pub fn runs(self, id: &str) -> Vec<String> {
        if self == Self::Sweep {
            (1..=3).map(|number| format!("{id}-{number}")).collect()
        } else {
            vec![id.to_owned()]
        }
    }
}

/// The crash points of client and daemon that a run on any such cluster passes, besides those of
/// its kind.
pub fn shared_crash_points() -> impl Iterator<Item = &'static str> {
    let passed = [
        "client.",
        "daemon.submit.",
        "daemon.cancel.",
        "daemon.ended.committed",
        "daemon.requeue.committed",
    ];
    towline_host::crash::POINTS
        .iter()
        .copied()
        .filter(move |point| passed.iter().any(|begin| point.starts_with(begin)))
}
