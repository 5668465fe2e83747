//! "Did you mean": the nearest known word, if any is near.

/// The candidate closest to `word`, if one is close enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&word.to_lowercase(), &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, candidate)| {
            let longest = word.chars().count().max(candidate.chars().count());
            *distance * 5 <= longest * 2 || (longest > 3 && candidate.starts_with(word))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The hint text for [`nearest`].
pub fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(word, candidates).map(|near| format!("did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_of_the_finger_is_found_and_a_stranger_is_not() {
        let known = ["submit", "resubmit", "query", "logs"];
        assert_eq!(nearest("sumbit", known), Some("submit"));
        assert_eq!(nearest("log", known), Some("logs"));
        assert_eq!(nearest("frobnicate", known), None);
        assert_eq!(nearest("x", known), None);
    }

    #[test]
    fn two_letters_of_five_may_be_wrong() {
        assert_eq!(nearest("quxxy", ["query"]), Some("query"));
        assert_eq!(nearest("quxxx", ["query"]), None);
    }
}
