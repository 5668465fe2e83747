//! Random numbers and names.

use towline_core::{Error, Result};

/// A number between 0 and 1; one half where the machine gives no random bytes.
pub(crate) fn fraction() -> f64 {
    let mut byte = [0];
    if getrandom::fill(&mut byte).is_err() {
        return 0.5;
    }
    f64::from(byte[0]) / 255.0
}

/// A name that nobody can guess, of 32 hexadecimal digits.
pub(crate) fn token() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::bug("the machine gives no random bytes").source_error(error))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
