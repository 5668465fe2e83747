//! MD5 of several messages at once. A crate of its own because it is compiled for speed, while the
//! program is compiled for size.
//!
//! Every step of MD5 needs the result of the step before, so one message cannot use the width of a
//! core. Eight messages side by side, word by word, take little longer than one. Compilers turn
//! arrays of this size into the widest vector instructions of the machine.

/// Messages that are hashed side by side.
pub const LANES: usize = 8;

type Words = [u32; LANES];

/// The rotations of the four rounds, as RFC 1321 has them.
const ROUND_SHIFTS: [[u32; 4]; 4] = [
    [7, 12, 17, 22],
    [5, 9, 14, 20],
    [4, 11, 16, 23],
    [6, 10, 15, 21],
];
/// The state before the first block, as RFC 1321 has it.
const INITIAL_STATE: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// `floor(2^32 * |sin(step + 1)|)`, as RFC 1321 has it.
const SINE_TABLE: [u32; 64] = [
    0xd76a_a478,
    0xe8c7_b756,
    0x2420_70db,
    0xc1bd_ceee,
    0xf57c_0faf,
    0x4787_c62a,
    0xa830_4613,
    0xfd46_9501,
    0x6980_98d8,
    0x8b44_f7af,
    0xffff_5bb1,
    0x895c_d7be,
    0x6b90_1122,
    0xfd98_7193,
    0xa679_438e,
    0x49b4_0821,
    0xf61e_2562,
    0xc040_b340,
    0x265e_5a51,
    0xe9b6_c7aa,
    0xd62f_105d,
    0x0244_1453,
    0xd8a1_e681,
    0xe7d3_fbc8,
    0x21e1_cde6,
    0xc337_07d6,
    0xf4d5_0d87,
    0x455a_14ed,
    0xa9e3_e905,
    0xfcef_a3f8,
    0x676f_02d9,
    0x8d2a_4c8a,
    0xfffa_3942,
    0x8771_f681,
    0x6d9d_6122,
    0xfde5_380c,
    0xa4be_ea44,
    0x4bde_cfa9,
    0xf6bb_4b60,
    0xbebf_bc70,
    0x289b_7ec6,
    0xeaa1_27fa,
    0xd4ef_3085,
    0x0488_1d05,
    0xd9d4_d039,
    0xe6db_99e5,
    0x1fa2_7cf8,
    0xc4ac_5665,
    0xf429_2244,
    0x432a_ff97,
    0xab94_23a7,
    0xfc93_a039,
    0x655b_59c3,
    0x8f0c_cc92,
    0xffef_f47d,
    0x8584_5dd1,
    0x6fa8_7e4f,
    0xfe2c_e6e0,
    0xa301_4314,
    0x4e08_11a1,
    0xf753_7e82,
    0xbd3a_f235,
    0x2ad7_d2bb,
    0xeb86_d391,
];

/// The hashes of up to [`LANES`] messages.
#[multiversion::multiversion(targets(
    "x86_64+avx+avx2+avx512f+avx512vl",
    "x86_64+avx+avx2",
    "aarch64+neon"
))]
pub fn md5_of(messages: &[&[u8]]) -> Vec<[u8; 16]> {
    assert!(messages.len() <= LANES, "the caller takes no more than fit");
    let tails: Vec<Vec<u8>> = messages.iter().map(|message| tail(message)).collect();
    let blocks: Vec<usize> = messages.iter().map(|message| message.len() / 64).collect();
    let total = |lane: usize| blocks[lane] + tails[lane].len() / 64;
    let mut state = INITIAL_STATE.map(|word| [word; LANES]);
    let mut hashes = vec![[0; 16]; messages.len()];
    let longest = (0..messages.len()).map(total).max().unwrap_or(0);
    let mut input: [Words; 16] = [[0; LANES]; 16];
    for number in 0..longest {
        for lane in 0..messages.len() {
            let block = match number.checked_sub(blocks[lane]) {
                None => &messages[lane][number * 64..][..64],
                Some(after) => tails[lane]
                    .get(after * 64..after * 64 + 64)
                    .unwrap_or(&[0; 64]),
            };
            for (words, bytes) in input.iter_mut().zip(block.as_chunks::<4>().0) {
                words[lane] = u32::from_le_bytes(*bytes);
            }
        }
        mix(&mut state, &input);
        for lane in (0..messages.len()).filter(|lane| number + 1 == total(*lane)) {
            for (bytes, words) in hashes[lane].as_chunks_mut::<4>().0.iter_mut().zip(&state) {
                *bytes = words[lane].to_le_bytes();
            }
        }
    }
    hashes
}

/// The padding after the last whole block: the rest, a one bit, and the length in bits.
fn tail(message: &[u8]) -> Vec<u8> {
    let mut tail = message[message.len() / 64 * 64..].to_vec();
    tail.push(0x80);
    tail.resize(if tail.len() <= 56 { 56 } else { 120 }, 0);
    tail.extend_from_slice(&(message.len() as u64).wrapping_mul(8).to_le_bytes());
    tail
}

/// One block of every message.
#[expect(
    clippy::inline_always,
    reason = "it must be compiled for the instructions of its caller"
)]
#[inline(always)]
fn mix(state: &mut [Words; 4], input: &[Words; 16]) {
    let [mut a, mut b, mut c, mut d] = *state;
    macro_rules! round {
        ($round:literal, $word:expr, $blend:expr) => {
            for step in 0..16 {
                let (words, sine, shift) = (
                    &input[$word(step) % 16],
                    SINE_TABLE[$round * 16 + step],
                    ROUND_SHIFTS[$round][step % 4],
                );
                let mut next = [0; LANES];
                for lane in 0..LANES {
                    let blended: u32 = $blend(b[lane], c[lane], d[lane]);
                    let sum = a[lane]
                        .wrapping_add(blended)
                        .wrapping_add(words[lane])
                        .wrapping_add(sine);
                    next[lane] = b[lane].wrapping_add(sum.rotate_left(shift));
                }
                (a, d, c, b) = (d, c, b, next);
            }
        };
    }
    round!(0, |step| step, |b: u32, c: u32, d: u32| d ^ (b & (c ^ d)));
    round!(1, |step| 5 * step + 1, |b: u32, c: u32, d: u32| c
        ^ (d & (b ^ c)));
    round!(2, |step| 3 * step + 5, |b: u32, c: u32, d: u32| b ^ c ^ d);
    round!(3, |step| 7 * step, |b: u32, c: u32, d: u32| c ^ (b | !d));
    for (words, mixed) in state.iter_mut().zip([a, b, c, d]) {
        for (word, mixed) in words.iter_mut().zip(mixed) {
            *word = word.wrapping_add(mixed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use md5::{Digest, Md5};

    #[test]
    fn many_at_once_are_what_each_is_alone() {
        let bytes: Vec<u8> = (0..5_000u32)
            .map(|number| (number.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0])
            .collect();
        let lengths = [
            0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 4_096, 4_999,
        ];
        for first in 0..lengths.len() {
            for many in 1..=LANES {
                let messages: Vec<&[u8]> = (0..many)
                    .map(|lane| &bytes[lane..lengths[(first + lane) % lengths.len()].max(lane)])
                    .collect();
                let alone: Vec<[u8; 16]> = messages
                    .iter()
                    .map(|message| Md5::digest(message).into())
                    .collect();
                assert_eq!(md5_of(&messages), alone);
            }
        }
    }
}
