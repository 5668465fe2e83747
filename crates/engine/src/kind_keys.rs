//! Warnings about keys of a cluster that its kind does not use.

use towline_core::config::{ClusterKind, Config, keys_of};
use towline_core::yaml::{Content, Node, Warning};

fn has(kind: ClusterKind, key: &str) -> bool {
    keys_of(kind).is_some_and(|keys| keys.contains(&key))
}

/// A key that only another kind has is no typing mistake, and still has no effect.
pub(crate) fn useless(tree: &Node, config: &Config) -> Vec<Warning> {
    let Some(clusters) = tree.get("clusters") else {
        return Vec::new();
    };
    let mut warnings = Vec::new();
    for (name, cluster) in &config.clusters {
        let kind = cluster.kind.kind();
        let (Some(known), Some(node)) = (keys_of(kind), clusters.get(name)) else {
            continue;
        };
        let Content::Mapping(entries) = &node.content else {
            continue;
        };
        for (key, _) in entries {
            // The decoder warns of keys that no kind has.
            let text = key.text().unwrap_or_default();
            if ClusterKind::ALL.iter().any(|kind| has(*kind, text)) && !known.contains(&text) {
                warnings.push(Warning {
                    at: key.at.clone(),
                    message: format!(
                        "`{text}` means nothing to cluster `{name}`, which is of kind `{}`",
                        kind.word()
                    ),
                });
            }
        }
    }
    warnings
}
