//! Samples of stored and spoken formats, for tests: JSON files that are committed once and read by
//! every later version.
//!
//! A file is an object; each of its keys names a group, and each group is a list of samples of one
//! type. [`Samples::check`] decodes every sample of a group and encodes it again. The new encoding
//! must have every key and value of the sample; it may have more. [`Samples::finish`] fails if a
//! group was not checked, or if no sample has a field or a variant that the decoded types have.
//!
//! A sample is never changed or removed, because some installed version wrote it. Samples of a new
//! field or variant are appended, by hand or by [`Samples::append`].

mod contain;
mod coverage;
mod least;

pub use contain::lost;

use coverage::{Coverage, Traced};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The folder of samples that `TOW_GOLDEN_DRAFTS` names, to be appended.
#[expect(
    clippy::disallowed_methods,
    reason = "whoever appends samples says where they are"
)]
pub fn drafts() -> PathBuf {
    PathBuf::from(std::env::var_os("TOW_GOLDEN_DRAFTS").expect("TOW_GOLDEN_DRAFTS"))
}

/// Fails unless each of these patterns matches one of the values. The compiler requires that the
/// patterns are all variants of the type. It is for types that serde reads through a buffer
/// (`tag`, `flatten`), because [`Samples::finish`] does not see their variants.
#[macro_export]
macro_rules! assert_every_variant {
    ($values:expr, $($pattern:pat),+ $(,)?) => {{
        let mut missing = ::std::vec![$(::std::stringify!($pattern)),+];
        for value in $values {
            let name = match value {
                $($pattern => ::std::stringify!($pattern)),+
            };
            missing.retain(|known| *known != name);
        }
        ::std::assert!(missing.is_empty(), "there is no sample of {missing:?}");
    }};
}

/// One file of samples while a test checks it.
#[derive(Debug)]
pub struct Samples {
    path: PathBuf,
    groups: Map<String, Value>,
    checked: BTreeSet<String>,
    coverage: RefCell<Coverage>,
    /// Samples to append, by group.
    drafts: Option<Map<String, Value>>,
}

impl Samples {
    /// Opens a file to check it.
    pub fn open(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let groups = read(&path).unwrap_or_else(|| panic!("{} is missing", path.display()));
        Self {
            path,
            groups,
            checked: BTreeSet::new(),
            coverage: RefCell::default(),
            drafts: None,
        }
    }

    /// Opens a file to append the samples that the file of the same name in `drafts` has. Each
    /// draft is written as today's code encodes it, and again with only its required keys.
    pub fn append(path: impl Into<PathBuf>, drafts: &Path) -> Self {
        let path = path.into();
        let name = path.file_name().expect("a file has a name");
        let drafts = read(&drafts.join(name)).unwrap_or_default();
        let groups = read(&path).unwrap_or_default();
        Self {
            path,
            groups,
            checked: BTreeSet::new(),
            coverage: RefCell::default(),
            drafts: Some(drafts),
        }
    }

    /// Other files have samples of every field and variant of this type.
    pub fn covered_elsewhere<T>(&mut self) -> &mut Self {
        let name = std::any::type_name::<T>();
        let name = name.rsplit("::").next().unwrap_or(name);
        self.coverage.borrow_mut().skip(name);
        self
    }

    /// Every sample of the group is read as `T`, and nothing of it is lost.
    #[track_caller]
    pub fn check<T: Serialize + DeserializeOwned>(&mut self, group: &str) -> &mut Self {
        self.read::<T>(group);
        self
    }

    /// Checks a group and gives its values.
    #[track_caller]
    pub fn read<T: Serialize + DeserializeOwned>(&mut self, group: &str) -> Vec<T> {
        assert!(
            self.checked.insert(group.to_owned()),
            "{group} is checked twice"
        );
        if let Some(drafts) = &self.drafts {
            let drafts = drafts
                .get(group)
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let new: Vec<Value> = drafts.flat_map(|draft| least::forms::<T>(draft)).collect();
            let known = self
                .groups
                .entry(group)
                .or_insert_with(|| Value::Array(Vec::new()));
            let known = known.as_array_mut().expect("a group is a list");
            for sample in new {
                if !known.contains(&sample) {
                    known.push(sample);
                }
            }
        }
        let samples = self.groups.get(group).and_then(Value::as_array);
        let place = format!("{}: {group}", self.path.display());
        let samples = samples.unwrap_or_else(|| panic!("{place} has no samples"));
        assert!(!samples.is_empty(), "{place} has no samples");
        let values = samples.iter().enumerate();
        values
            .map(|(at, sample)| self.read_one(&format!("{place}[{at}]"), sample))
            .collect()
    }

    #[track_caller]
    fn read_one<T: Serialize + DeserializeOwned>(&self, place: &str, sample: &Value) -> T {
        let value: T = serde_json::from_str(&sample.to_string())
            .unwrap_or_else(|error| panic!("{place} is not read any more: {error}"));
        let now = serde_json::to_value(&value).expect("it encodes");
        if let Some(lost) = contain::lost(sample, &now) {
            panic!("{place} lost {lost}\nsample: {sample}\nnow: {now}");
        }
        T::deserialize(Traced::new(sample, &self.coverage)).expect("it was read before");
        value
    }

    /// All groups were checked, and they have every field and every variant.
    #[track_caller]
    pub fn finish(&self) {
        let path = self.path.display();
        if self.drafts.is_some() {
            let text = serde_json::to_string_pretty(&self.groups).expect("JSON encodes");
            std::fs::write(&self.path, text + "\n").expect("the file of samples is writable");
        }
        let unchecked: Vec<&String> = self
            .groups
            .keys()
            .filter(|group| !self.checked.contains(*group))
            .collect();
        assert!(unchecked.is_empty(), "{path}: no test reads {unchecked:?}");
        let missing = self.coverage.borrow().missing();
        assert!(
            missing.is_empty(),
            "{path} has no sample of {}",
            missing.join(", ")
        );
    }
}

fn read(path: &Path) -> Option<Map<String, Value>> {
    let text = std::fs::read_to_string(path).ok()?;
    let groups = serde_json::from_str(&text);
    Some(groups.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests;
