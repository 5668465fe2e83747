//! Random numbers from a seed: the same on every machine.

/// `SplitMix64`: small, quick, and good enough to choose between actions.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 if the limit is 0.
    pub(crate) const fn below(&mut self, limit: usize) -> usize {
        if limit == 0 {
            return 0;
        }
        let bytes = self.next().to_le_bytes();
        // The remainder of a small limit is even enough.
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize % limit
    }

    /// Whether something happens that happens once in `times`.
    pub(crate) const fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}
