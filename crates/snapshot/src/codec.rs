//! Numbers and byte strings in our files. Reading never trusts a length.

/// Appends a number in groups of 7 bits, the least significant first.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7f) as u8);
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a signed number; small absolute values are short.
pub(crate) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(
        out,
        (number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned(),
    );
}

/// Why bytes could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("it ends too early")]
    Short,
    #[error("a number is too large")]
    Number,
    #[error("a number is not in its one spelling")]
    Spelling,
    #[error("there is something behind its end")]
    Rest,
    #[error("{0}")]
    Other(&'static str),
}

pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.rest.split_first().ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(*first)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let group = u64::from(byte & 0x7f);
            if shift == 63 && group > 1 {
                return Err(Malformed::Number);
            }
            number |= group << shift;
            if byte < 0x80 {
                // Otherwise `80 00` and `00` would be two encodings of one number.
                return if byte == 0 && shift > 0 {
                    Err(Malformed::Spelling)
                } else {
                    Ok(number)
                };
            }
        }
        Err(Malformed::Number)
    }

    pub(crate) fn signed(&mut self) -> Result<i64, Malformed> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// A count of items of at least one byte each, so never more than the bytes that are left.
    pub(crate) fn count(&mut self) -> Result<usize, Malformed> {
        let count = usize::try_from(self.number()?).map_err(|_| Malformed::Number)?;
        if count > self.rest.len() {
            Err(Malformed::Short)
        } else {
            Ok(count)
        }
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.count()?;
        self.take(length)
    }

    pub(crate) fn digest(&mut self) -> Result<crate::digest::Digest, Malformed> {
        let bytes = self.take(32)?;
        Ok(crate::digest::Digest(
            bytes.try_into().map_err(|_| Malformed::Short)?,
        ))
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) const fn end(self) -> Result<(), Malformed> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Malformed::Rest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_read_back(number: u64, signed: i64) {
            let mut bytes = Vec::new();
            put_number(&mut bytes, number);
            put_signed(&mut bytes, signed);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.number(), Ok(number));
            prop_assert_eq!(reader.signed(), Ok(signed));
            prop_assert!(reader.end().is_ok());
        }

        #[test]
        fn a_number_has_one_spelling(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            let mut reader = Reader::new(&bytes);
            if let Ok(number) = reader.number() {
                let mut again = Vec::new();
                put_number(&mut again, number);
                prop_assert_eq!(&bytes[..again.len()], &again[..]);
            }
        }
    }
}
