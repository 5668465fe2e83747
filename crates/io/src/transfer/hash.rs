//! BLAKE3 of an object in blocks. Blocks are hashed once and in any order; their values together
//! give the hash of the whole.

use crate::data::{Shape, Sums};
use blake3::hazmat::{
    ChainingValue, HasherExt, Mode, left_subtree_len, merge_subtrees_non_root, merge_subtrees_root,
};
use md5::{Digest, Md5};

pub fn md5(bytes: &[u8]) -> [u8; 16] {
    Md5::digest(bytes).into()
}

pub fn blake3(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}

/// The value of one block, which [`whole`] needs. Block sizes are powers of two of at least 1 KiB.
/// The value of an only block is its plain BLAKE3.
pub fn block_value(shape: Shape, index: u32, bytes: &[u8]) -> ChainingValue {
    if shape.blocks() <= 1 {
        return blake3(bytes);
    }
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(shape.range(index).start);
    hasher.update(bytes);
    hasher.finalize_non_root()
}

/// The hashes of one block.
pub fn sums(shape: Shape, index: u32, bytes: &[u8]) -> Sums {
    Sums {
        value: block_value(shape, index, bytes),
    }
}

/// The plain BLAKE3 of the whole, from the values of all its blocks.
pub fn whole(shape: Shape, values: &[[u8; 32]]) -> [u8; 32] {
    match values {
        [] => blake3(&[]),
        [only] => *only,
        _ => {
            let left = left_subtree_len(shape.size);
            let (first, second) = split(shape.block, left, values);
            let (left, right) = (
                subtree(shape.block, left, first),
                subtree(shape.block, shape.size - left, second),
            );
            *merge_subtrees_root(&left, &right, Mode::Hash).as_bytes()
        }
    }
}

fn subtree(block: u64, size: u64, values: &[[u8; 32]]) -> ChainingValue {
    if let [only] = values {
        return *only;
    }
    let left = left_subtree_len(size);
    let (first, second) = split(block, left, values);
    merge_subtrees_non_root(
        &subtree(block, left, first),
        &subtree(block, size - left, second),
        Mode::Hash,
    )
}

/// Splits the values of more than one block; the left half is a power of two of blocks.
fn split(block: u64, left: u64, values: &[[u8; 32]]) -> (&[[u8; 32]], &[[u8; 32]]) {
    values.split_at(usize::try_from(left / block).expect("as many as there are values"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_in_any_order_make_the_plain_hash() {
        let bytes: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        for block in [1024usize, 4096, 65_536] {
            for size in [
                0, 1, 1023, 1024, 1025, 4096, 4097, 8192, 12_288, 65_536, 65_537, 200_001, 262_144,
                400_000,
            ] {
                let shape = Shape {
                    size: size as u64,
                    block: block as u64,
                    disk_bytes: None,
                };
                let mut values: Vec<(usize, [u8; 32])> = bytes[..size]
                    .chunks(block)
                    .enumerate()
                    .rev()
                    .map(|(index, part)| {
                        (
                            index,
                            block_value(shape, u32::try_from(index).expect("few"), part),
                        )
                    })
                    .collect();
                values.sort_unstable();
                let values: Vec<[u8; 32]> = values.into_iter().map(|(_, value)| value).collect();
                assert_eq!(
                    whole(shape, &values),
                    blake3(&bytes[..size]),
                    "{size} in blocks of {block}"
                );
            }
        }
    }
}
