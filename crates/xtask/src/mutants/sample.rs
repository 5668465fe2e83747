//! The mutants: listed by cargo-mutants, of which a seeded sample is taken.

use serde_json::Value;

/// The modules without I/O, whose tests need nothing but cargo: a name and where its files are.
pub(super) const MODULES: [(&str, &str); 6] = [
    ("core", "crates/core/src/"),
    ("flow", "crates/engine/src/flow/"),
    ("gang", "crates/runner/src/gang/"),
    ("daemon", "crates/server/src/daemon/"),
    ("worker", "crates/server/src/worker/"),
    ("scheduler", "crates/server/src/schedule.rs"),
];

/// A line and a column, both counted from 1. Columns count characters.
pub(super) type Position = (usize, usize);

/// What of the code is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Genre {
    /// A function returns a constant.
    Function,
    Operator,
    Guard,
    Arm,
    /// A field of a struct expression takes its default.
    Field,
}

/// One small change of the code, which a test should notice.
#[derive(Debug, Clone)]
pub(super) struct Mutant {
    /// Names it in results.
    pub(super) name: String,
    pub(super) module: &'static str,
    pub(super) package: String,
    pub(super) file: String,
    pub(super) genre: Genre,
    pub(super) start: Position,
    pub(super) end: Position,
    pub(super) replacement: String,
    /// The return type of its function hides the real one, so that all returns must agree.
    pub(super) returns_hidden_type: bool,
}

impl Mutant {
    fn read(value: &Value) -> Option<Self> {
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        let position = |end: &str| {
            let at = value.get("span")?.get(end)?;
            let number = |name| usize::try_from(at.get(name)?.as_u64()?).ok();
            Some((number("line")?, number("column")?))
        };
        let file = text("file")?;
        let module = MODULES.iter().find(|(_, path)| file.starts_with(path))?.0;
        let genre = match text("genre")?.as_str() {
            "FnValue" => Genre::Function,
            "BinaryOperator" | "UnaryOperator" => Genre::Operator,
            "MatchArmGuard" => Genre::Guard,
            "MatchArm" => Genre::Arm,
            "StructField" => Genre::Field,
            _ => return None,
        };
        let returns = value
            .pointer("/function/return_type")
            .and_then(Value::as_str);
        Some(Self {
            name: text("name")?,
            module,
            package: text("package")?,
            file,
            genre,
            start: position("start")?,
            end: position("end")?,
            replacement: text("replacement")?,
            returns_hidden_type: returns.is_some_and(|returns| returns.contains("impl ")),
        })
    }
}

/// All mutants in the list of cargo-mutants, in the order of their files.
pub(super) fn read_list(list: &[u8]) -> Result<Vec<Mutant>, String> {
    let values: Vec<Value> =
        serde_json::from_slice(list).map_err(|error| format!("the list of mutants: {error}"))?;
    Ok(values.iter().filter_map(Mutant::read).collect())
}

/// A sample in proportion to the mutants of each module, in the order of the list. The same seed
/// makes the same sample.
pub(super) fn draw(mutants: Vec<Mutant>, count: usize, seed: u64) -> Vec<Mutant> {
    let all = mutants.len().max(1);
    let count = count.min(mutants.len());
    let of = |module: &str| {
        let indexes = (0..mutants.len()).filter(|index| mutants[*index].module == module);
        indexes.collect::<Vec<usize>>()
    };
    let mut parts: Vec<(Vec<usize>, usize)> = MODULES
        .iter()
        .map(|(module, _)| of(module))
        .map(|indexes| {
            let quota = indexes.len() * count / all;
            (indexes, quota)
        })
        .collect();
    // The rest of the division goes to the modules that lost most by it.
    let missing = count - parts.iter().map(|(_, quota)| quota).sum::<usize>();
    let mut by_loss: Vec<usize> = (0..parts.len()).collect();
    by_loss.sort_by_key(|part| std::cmp::Reverse(parts[*part].0.len() * count % all));
    for part in by_loss.into_iter().take(missing) {
        parts[part].1 += 1;
    }
    let mut random = Random(seed);
    let mut chosen = vec![false; mutants.len()];
    for (mut indexes, quota) in parts {
        for place in 0..quota {
            let other = place + random.below(indexes.len() - place);
            indexes.swap(place, other);
            chosen[indexes[place]] = true;
        }
    }
    let marked = mutants.into_iter().zip(chosen);
    marked
        .filter_map(|(mutant, is_chosen)| is_chosen.then_some(mutant))
        .collect()
}

/// `SplitMix64`: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let limit = u64::try_from(limit.max(1)).unwrap_or(u64::MAX);
        usize::try_from(mixed % limit).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three of four mutants are in the core, the others in the scheduler.
    fn mutants() -> Vec<Mutant> {
        let made = (0..40).map(|number| {
            let file = match number % 4 {
                0 => "crates/server/src/schedule.rs",
                _ => "crates/core/src/state.rs",
            };
            let at = |column: u32| serde_json::json!({"line": number + 1, "column": column});
            serde_json::json!({
                "name": format!("{number}"),
                "file": file,
                "package": "towline",
                "genre": "FnValue",
                "replacement": "true",
                "span": {"start": at(1), "end": at(2)},
                "function": {"return_type": "-> bool"},
            })
        });
        let list = serde_json::to_vec(&made.collect::<Vec<Value>>()).expect("JSON");
        read_list(&list).expect("mutants")
    }

    #[test]
    fn a_sample_is_in_proportion_and_the_same_for_a_seed() {
        let names = |seed| {
            let drawn = draw(mutants(), 10, seed);
            let of = |module| drawn.iter().filter(|of| of.module == module).count();
            assert_eq!((of("core"), of("scheduler"), drawn.len()), (8, 2, 10));
            drawn.into_iter().map(|of| of.name).collect::<Vec<_>>()
        };
        assert_eq!(names(1), names(1));
        assert_ne!(names(1), names(2));
        let numbers = names(1);
        let mut sorted = numbers.clone();
        sorted.sort_by_key(|name| name.parse::<u32>().expect("a number"));
        assert_eq!(numbers, sorted);
    }
}
