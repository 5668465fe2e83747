//! Ids of blocks: the index and the beginning of the BLAKE3 of what a block holds.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// The id of a block. All ids of a blob must have one length; ours have 28 characters.
pub(super) fn block_id(index: u32, digest: [u8; 16]) -> String {
    BASE64_STANDARD.encode([&index.to_be_bytes()[..], &digest].concat())
}

/// The index and the digest in an id of ours; `None` for a block of another tool.
pub(super) fn read_block_id(id: &str) -> Option<(u32, [u8; 16])> {
    let bytes: [u8; 20] = BASE64_STANDARD.decode(id).ok()?.try_into().ok()?;
    let (index, digest) = bytes.split_at(4);
    Some((
        u32::from_be_bytes(index.try_into().ok()?),
        digest.try_into().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_ids_have_one_length_and_read_back() {
        for (index, digest) in [
            (0, [0; 16]),
            (49_999, [255; 16]),
            (u32::MAX, *b"0123456789abcdef"),
        ] {
            let id = block_id(index, digest);
            assert_eq!(id.len(), 28);
            assert_eq!(read_block_id(&id), Some((index, digest)));
        }
        assert_eq!(read_block_id("YmxvY2stMDAwMDAx"), None, "another tool's");
    }
}
