//! Any bytes that a cluster sends are read or refused; nothing panics, nothing hangs.

use super::parse::{
    accounting, answer, config, hosts, ids, job, node, pairs, partition, qos, queue, reservation,
    share, tasks, values,
};
use super::{reasons, refusal, script, state};
use proptest::prelude::*;

/// Pieces that occur in real answers, in any order.
fn soup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => any::<String>(),
        2 => "[0-9]{1,12}",
        2 => "[A-Za-z]{1,9}=",
        4 => prop::sample::select(vec![
            "\u{1e}", "\u{1f}", "\n", " ", "|", ",", "-", "%", ":", "[", "]", "(", ")", "=", "+", "_", ".", "...", "JobId=1 ", "JobID\u{1f}", "NodeName=c1 ",
            "PartitionName=p ", "ReservationName=r ", "ClusterName = \
                x\n", "SLURM_VERSION = 22.05.8\n", "State=", "JobState=RUNNING ", "Gres=gpu:", "QOSMax", "Per",
            "ReqNodeNotAvail, ", "sbatch: error: ", "N/A", "UNLIMITED", "1-00:00:00", "0-4000000", "COMPLET", "ü",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_answer_is_read_or_refused(text in soup()) {
        let _ = queue::read(&text);
        let _ = queue::read_marked("1", &text);
        let _ = accounting::read(&text);
        let _ = answer::accepted(&text);
        let _ = config::read(&text);
        let _ = config::version(&text);
        let _ = hosts::expand(&text);
        let _ = ids::JobId::read(&text);
        let _ = job::read(&text);
        let _ = node::read(&text);
        let _ = node::gres(&text);
        let _ = pairs::pairs(&text, &[]);
        let _ = partition::read(&text);
        let _ = qos::read(&text);
        let _ = reservation::read(&text);
        let _ = share::read(&text);
        let _ = tasks::TaskSet::read(&text).map(|set| (set.len(), set.contains(7)));
        let _ = (values::span(&text), values::moment(&text), values::bytes(&text, 1), values::count(&text), values::Resources::read(&text).gpus());
        let _ = (state::native(&text), state::ExitPair::read(&text), state::cancelled_by(&text));
        let _ = reasons::explain(&text);
        let _ = refusal::refusal(&text, &refusal::Asked::default());
    }

    #[test]
    fn a_word_that_slurm_does_not_have_is_no_ending(word in "[A-Z_]{1,14}") {
        let known = ["COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "DEADLINE", "NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "CD", "F", "CA", "TO", "DL", "NF", "BF", "PR", "OOM"];
        prop_assert!(known.contains(&word.as_str()) || !state::native(&word).is_ended(), "{}", word);
    }

    /// A value on an `#SBATCH` line reads back as Slurm reads it.
    #[test]
    fn values_survive_the_quoting_of_directives(name in "[^\n\r\0]{1,20}") {
        let batch = script::Batch { name: name.clone(), nodes: 1, ntasks_per_node: 1, command: vec!["x".into()], ..script::Batch::default() };
        let text = batch.render().expect("renders");
        let line = text.lines().nth(1).expect("a name").strip_prefix("#SBATCH ").expect("a directive").to_owned();
        prop_assert_eq!(as_sbatch(&line), vec![format!("--job-name={name}")]);
    }
}

/// The rules of `sbatch` for a line of options: quotes group, a backslash escapes, `#` ends.
fn as_sbatch(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let (mut quote, mut escaped) = (None, false);
    for c in line.chars() {
        let open = word.get_or_insert_default();
        match (c, quote) {
            (c, _) if escaped => {
                open.push(c);
                escaped = false;
            }
            ('\\', _) => escaped = true,
            (c, Some(mark)) if c == mark => quote = None,
            (c, Some(_)) => open.push(c),
            ('"' | '\'', None) => quote = Some(c),
            ('#', None) => break,
            (c, None) if c.is_ascii_whitespace() => words.extend(word.take()),
            (c, None) => open.push(c),
        }
    }
    words.extend(word);
    words
}
