//! The version of this build. It is stored in one marked string, so that a test can make a "newer"
//! copy of the program by changing its bytes.

const MARK: &str = "towline-version:";
static STAMP: &str = concat!("towline-version:", env!("CARGO_PKG_VERSION"), ";");

/// The program's version, such as `0.1.0`.
pub fn version() -> &'static str {
    // Hidden from the optimiser, so that the string is read from the program's bytes.
    std::hint::black_box(STAMP)
        .trim_start_matches(MARK)
        .trim_end_matches(';')
}

/// Whether `one` is an older release than `other`. Unreadable parts count as 0.
pub fn is_older(one: &str, other: &str) -> bool {
    let parts = |text: &str| -> Vec<u64> {
        text.split(['.', '-', '+'])
            .take(3)
            .map(|part| part.parse().unwrap_or(0))
            .collect()
    };
    parts(one) < parts(other)
}

#[cfg(test)]
mod tests {
    #[test]
    fn releases_are_ordered_by_number() {
        assert!(super::is_older("0.1.9", "0.1.10"));
        assert!(!super::is_older("0.2.0", "0.1.10"));
        assert!(!super::is_older(super::version(), super::version()));
    }
}
