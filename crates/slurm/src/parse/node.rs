//! `scontrol show node`: the resources of each node, how much is in use, and whether the node can
//! be used.

use super::pairs::{Free, get, pairs, records};
use super::unreadable;
use super::values::{self, Resources};
use crate::owned;
use towline_core::Result;

/// `-d` adds the GPUs in use; `-a` shows nodes of hidden partitions.
pub fn argv() -> Vec<String> {
    owned(["scontrol", "show", "node", "-a", "-d", "-o"])
}

const AFTER_REASON: &[&str] = &[
    "Comment",
    "Extra",
    "InstanceId",
    "InstanceType",
    "ReservationName",
    "TopologyRecord",
    "Topology",
];

const FREE: &[Free] = &[
    ("OS", &[&["RealMemory"]]),
    ("Reason", &[AFTER_REASON]),
    ("Comment", &[AFTER_REASON]),
    ("Extra", &[AFTER_REASON]),
];

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    pub name: String,
    /// The base state first, then its flags: `IDLE`, `DRAIN`, `NOT_RESPONDING`.
    pub state: Vec<String>,
    pub cpus: u32,
    pub cpus_used: u32,
    /// In bytes.
    pub memory: u64,
    pub memory_used: u64,
    pub gpus: Vec<Gpus>,
    /// Why it is down or drained, followed by who said so and when.
    pub reason: Option<String>,
    pub partitions: Vec<String>,
    pub features: Vec<String>,
}

/// GPUs of one type on a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gpus {
    /// The site's name, such as `h200`. Absent if it has none.
    pub kind: Option<String>,
    pub count: u32,
    pub used: u32,
}

impl Node {
    /// Whether a job could start here now or when others end.
    pub fn is_usable(&self) -> bool {
        let base = self.state.first().map_or("", String::as_str);
        let flags = [
            "DRAIN",
            "FAIL",
            "NOT_RESPONDING",
            "MAINTENANCE",
            "INVALID_REG",
            "POWER_DOWN",
            "POWERING_DOWN",
            "REBOOT_ISSUED",
            "REBOOT_REQUESTED",
        ];
        ["IDLE", "MIXED", "ALLOCATED", "ALLOC", "MIX"].contains(&base)
            && !self.state.iter().any(|word| flags.contains(&word.as_str()))
    }
    pub fn gpu_count(&self) -> u32 {
        self.gpus
            .iter()
            .fold(0, |sum, gpus| sum.saturating_add(gpus.count))
    }
    pub fn gpus_used(&self) -> u32 {
        self.gpus
            .iter()
            .fold(0, |sum, gpus| sum.saturating_add(gpus.used))
    }
}

/// Reads the answer to [`argv`].
pub fn read(text: &str) -> Result<Vec<Node>> {
    let found = records(text, "NodeName");
    if found.is_empty() {
        return Err(unreadable("scontrol show node", text.trim()));
    }
    found.into_iter().map(node).collect()
}

fn node(record: &str) -> Result<Node> {
    let pairs = pairs(record, FREE);
    let value = |key: &str| get(&pairs, key);
    let wrong = || unreadable("scontrol show node", record);
    let name = values::words(value("NodeName")).ok_or_else(wrong)?;
    let state = state_words(value("State"));
    if state.is_empty() {
        return Err(wrong());
    }
    let mebibytes = |key: &str| values::bytes(value(key), 1 << 20).unwrap_or(0);
    let mut gpus = gres(value("Gres"));
    let in_use = gres(value("GresUsed"));
    for kind in &mut gpus {
        kind.used = in_use
            .iter()
            .find(|used| used.kind == kind.kind)
            .map_or(0, |used| used.count.min(kind.count));
    }
    // Without `-d`, or if it does not show the type, at least the sum is known.
    if let ([only], Some(used)) = (
        gpus.as_mut_slice(),
        Resources::read(value("AllocTRES")).gpus(),
    ) {
        only.used = only.used.max(used).min(only.count);
    }
    Ok(Node {
        name,
        state,
        cpus: values::count(value("CPUTot")).unwrap_or(0),
        cpus_used: values::count(value("CPUAlloc")).unwrap_or(0),
        memory: mebibytes("RealMemory"),
        memory_used: mebibytes("AllocMem"),
        gpus,
        reason: values::words(value("Reason")),
        partitions: values::list(value("Partitions")),
        features: values::list(value("ActiveFeatures")),
    })
}

/// `IDLE+DRAIN`, `DOWN*+DRAIN`, `MIXED-`: a sign after a word becomes the word it stands for.
fn state_words(text: &str) -> Vec<String> {
    const SIGNS: &[(char, &str)] = &[
        ('*', "NOT_RESPONDING"),
        ('~', "POWERED_DOWN"),
        ('#', "POWERING_UP"),
        ('%', "POWERING_DOWN"),
        ('!', "POWER_DOWN"),
        ('$', "MAINTENANCE"),
        ('@', "REBOOT_REQUESTED"),
        ('^', "REBOOT_ISSUED"),
        ('-', "PLANNED"),
    ];
    let mut words: Vec<String> = Vec::new();
    let mut flags: Vec<String> = Vec::new();
    for part in text.split('+') {
        let mut word = part.trim();
        while let Some((sign, flag)) = SIGNS.iter().find(|(sign, _)| word.ends_with(*sign)) {
            word = word.strip_suffix(*sign).unwrap_or(word);
            flags.push((*flag).to_owned());
        }
        if !word.is_empty() {
            words.push(word.to_owned());
        }
    }
    for flag in flags {
        if !words.is_empty() && !words.contains(&flag) {
            words.push(flag);
        }
    }
    words
}

/// The GPUs in `gpu:h200:4(S:0-1),gpu:2,shard:8`: equal types are joined, other resources left out.
pub fn gres(text: &str) -> Vec<Gpus> {
    let mut found: Vec<Gpus> = Vec::new();
    let mut depth = 0usize;
    let entries = text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    for entry in entries {
        let entry = entry.split('(').next().unwrap_or_default().trim();
        let mut parts = entry.split(':');
        if parts.next() != Some("gpu") {
            continue;
        }
        let (kind, count) = match (parts.next(), parts.next()) {
            (None, _) => (None, Some(1)),
            (Some(count), None) if values::count(count).is_some() => (None, values::count(count)),
            (Some(kind), None) => (Some(kind.to_owned()), Some(1)),
            // A large count has a unit: `4K`.
            (Some(kind), Some(count)) => (
                Some(kind.to_owned()),
                values::bytes(count, 1).and_then(|count| count.try_into().ok()),
            ),
        };
        let count: u32 = count.unwrap_or(0);
        match found.iter_mut().find(|known| known.kind == kind) {
            Some(known) => known.count = known.count.saturating_add(count),
            None => found.push(Gpus {
                kind,
                count,
                used: 0,
            }),
        }
    }
    found
}
