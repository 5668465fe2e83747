//! Words before parsing: options may stand before or after the verb, and ACT's habits work.

use std::ffi::{OsStr, OsString};

/// Options that take a value, wherever they stand before the verb.
const WITH_VALUE: [&str; 12] = ["-c", "--cluster", "-n", "--gpus", "--num_gpu", "-f", "--from_cluster", "--from-cluster", "-rt", "--resubmit_to", "--max", "--tier"];

/// Moves options that stand before the verb behind it: `tow -n 8 submit x` is `tow submit -n 8 x`.
/// There `-f` means ACT's from-cluster.
pub(crate) fn normalise(words: Vec<OsString>) -> Vec<OsString> {
    let mut words = words.into_iter();
    let program = words.next().unwrap_or_else(|| "tow".into());
    let mut before: Vec<OsString> = Vec::new();
    let mut verb = None;
    let mut rest: Vec<OsString> = Vec::new();
    while let Some(word) = words.next() {
        if !word.as_encoded_bytes().starts_with(b"-") || word == "-" {
            verb = Some(word);
            rest.extend(words.by_ref());
            break;
        }
        let takes_value = WITH_VALUE.iter().any(|option| word == *option);
        before.push(old_name(&word, true));
        if takes_value && let Some(value) = words.next() {
            before.push(value);
        }
    }
    let mut all = vec![program];
    let is_resubmit = verb.as_deref() == Some(OsStr::new("resubmit"));
    all.extend(verb);
    all.extend(before);
    all.extend(rest.into_iter().map(|word| if is_resubmit { old_name(&word, false) } else { word }));
    all
}

fn old_name(word: &OsStr, before_verb: bool) -> OsString {
    match word.to_str() {
        Some("-rt" | "--resubmit_to") => "--to".into(),
        Some("--num_gpu") => "--gpus".into(),
        Some("--max") => "--limit".into(),
        Some("-f" | "--from_cluster") if before_verb => "--from-cluster".into(),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::normalise;

    fn check(from: &str, to: &str) {
        let split = |text: &str| text.split(' ').map(Into::into).collect::<Vec<std::ffi::OsString>>();
        assert_eq!(normalise(split(from)), split(to), "{from}");
    }

    #[test]
    fn options_before_the_verb_are_options_after_it() {
        check("tow -n 8 submit python train.py -n 3", "tow submit -n 8 python train.py -n 3");
        check("tow -c eu -f we3v32 up data/voc20", "tow up -c eu --from-cluster we3v32 data/voc20");
        check("tow resubmit ab12 -rt c2", "tow resubmit ab12 --to c2");
        check("tow --json ps", "tow ps --json");
        check("tow --version", "tow --version");
        check("tow submit -f job.yaml", "tow submit -f job.yaml");
    }
}
