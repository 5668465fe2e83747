//! The keys that a project's configuration may set without being trusted. These only describe jobs:
//! sizes, names, folders that are not code. All other keys are privileged, because they could make
//! `tow` run, send, read or write what the user did not ask for. The list below holds the allowed
//! keys; a key that is not on it is privileged.

use towline_core::yaml::{Content, Node};

/// Allowed keys, as paths; `*` stands for any name.
const ALLOWED_KEYS: [&str; 22] = [
    "default_cluster",
    "in_place",
    "clusters.*.kind",
    "clusters.*.gpus",
    "clusters.*.cpus",
    "clusters.*.memory",
    "clusters.*.gpus_per_node",
    "clusters.*.partition",
    "clusters.*.job.name",
    "clusters.*.job.experiment",
    "clusters.*.job.tags",
    "clusters.*.job.launch",
    "clusters.*.job.retry",
    "clusters.*.job.resources.nodes",
    "clusters.*.job.resources.gpus_per_node",
    "clusters.*.job.resources.cpus_per_node",
    "clusters.*.job.resources.memory",
    "clusters.*.job.resources.instance_type",
    "clusters.*.job.resources.tier",
    "clusters.*.job.resources.time",
    "clusters.*.job.code.ignore",
    "clusters.*.job.code.workdir",
];

/// The effects of privileged keys, by the beginning of their paths; the first that fits counts.
const KEY_EFFECTS: [(&str, &str); 18] = [
    ("clusters.*.job.command", "is run as your job"),
    ("clusters.*.job.script", "is run as your job"),
    (
        "clusters.*.job.environment.setup",
        "runs before each of your jobs",
    ),
    (
        "clusters.*.job.environment.secrets",
        "reads secrets of yours by name",
    ),
    (
        "clusters.*.job.environment",
        "changes what your jobs run in",
    ),
    (
        "clusters.*.job.resources.native",
        "is passed to the cluster as it is",
    ),
    (
        "clusters.*.job.io",
        "reads and writes datastores in your jobs",
    ),
    ("clusters.*.job.copy", "reads a datastore in your jobs"),
    ("clusters.*.job", "changes what your jobs do"),
    (
        "clusters.*.credential",
        "signs in with credentials of yours",
    ),
    ("clusters", "says where your jobs and their code go"),
    ("datastores.*.credential", "uses credentials of yours"),
    ("datastores", "says where your data goes"),
    (
        "folders",
        "reads and writes datastores with `tow up`, `tow down` and in jobs",
    ),
    ("sync", "sends your code there with `tow sync`"),
    ("tunnels", "connects there, or runs a program"),
    ("bastions", "says through which hosts tunnels go"),
    ("workspaces", "writes backups there, or runs a program"),
];

/// A key that is used only if its file is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Privilege {
    /// Its path: `clusters.lab.host`.
    pub key: String,
    /// The value in short, without characters that act on a terminal.
    pub value: String,
    pub meaning: &'static str,
}

/// The privileged keys of a project's configuration.
pub fn privileged(tree: &Node) -> Vec<Privilege> {
    let mut found = Vec::new();
    search(tree, &mut Vec::new(), &mut found);
    found
}

fn search(node: &Node, path: &mut Vec<String>, found: &mut Vec<Privilege>) {
    if let Content::Mapping(entries) = &node.content {
        for (key, value) in entries {
            path.push(key.text().unwrap_or_default().to_owned());
            match standing(path) {
                Standing::Allowed => {}
                Standing::Between if matches!(value.content, Content::Mapping(_)) => {
                    search(value, path, found);
                }
                Standing::Between | Standing::Privileged => {
                    found.push(Privilege {
                        key: plain(&path.join(".")),
                        value: in_short(value),
                        meaning: meaning(path),
                    });
                }
            }
            path.pop();
        }
    }
}

/// The configuration without its privileged keys.
pub fn without_privileges(tree: &Node) -> Node {
    fn kept(node: &Node, path: &mut Vec<String>) -> Node {
        let Content::Mapping(entries) = &node.content else {
            return node.clone();
        };
        let mut left = Vec::new();
        for (key, value) in entries {
            path.push(key.text().unwrap_or_default().to_owned());
            match standing(path) {
                Standing::Allowed => left.push((key.clone(), value.clone())),
                Standing::Between if matches!(value.content, Content::Mapping(_)) => {
                    left.push((key.clone(), kept(value, path)));
                }
                Standing::Between | Standing::Privileged => {}
            }
            path.pop();
        }
        Node {
            content: Content::Mapping(left),
            at: node.at.clone(),
        }
    }
    kept(tree, &mut Vec::new())
}

/// The names of its folders that lie inside the project. They are not code, wherever they lead.
pub fn described_folders(tree: &Node) -> Vec<String> {
    let Some(Content::Mapping(entries)) = tree.get("folders").map(|folders| &folders.content)
    else {
        return Vec::new();
    };
    let inside = |name: &&str| {
        !name.is_empty()
            && !name.starts_with('/')
            && name.split('/').all(|part| part != ".." && part != ".")
    };
    entries
        .iter()
        .filter_map(|(key, _)| key.text())
        .filter(inside)
        .map(str::to_owned)
        .collect()
}

enum Standing {
    Allowed,
    /// A mapping that may contain allowed keys.
    Between,
    Privileged,
}

fn standing(path: &[String]) -> Standing {
    // A key that no version up to this one knows has no effect; another check warns of it.
    if path
        .first()
        .is_some_and(|key| !crate::variables::TOP_LEVEL_KEYS.contains(&key.as_str()))
    {
        return Standing::Allowed;
    }
    let mut between = false;
    for allowed in ALLOWED_KEYS {
        let mut parts = allowed.split('.');
        if path.iter().all(|part| {
            parts
                .next()
                .is_some_and(|wanted| wanted == "*" || wanted == part)
        }) {
            match parts.next() {
                None => return Standing::Allowed,
                Some(_) => between = true,
            }
        }
    }
    if between {
        Standing::Between
    } else {
        Standing::Privileged
    }
}

fn meaning(path: &[String]) -> &'static str {
    let fits = |pattern: &str| {
        let mut parts = path.iter();
        pattern.split('.').all(|wanted| {
            parts
                .next()
                .is_some_and(|part| wanted == "*" || wanted == part)
        })
    };
    KEY_EFFECTS
        .iter()
        .find(|(pattern, _)| fits(pattern))
        .map_or("is not known to this version", |(_, meaning)| meaning)
}

/// The number of characters of a value that are shown, at most.
const MAX_VALUE_CHARACTERS_SHOWN: usize = 60;

fn in_short(value: &Node) -> String {
    let text = match &value.content {
        Content::Scalar { text, .. } => text.clone(),
        Content::Sequence(items) => format!(
            "[{}]",
            items.iter().map(in_short).collect::<Vec<_>>().join(", ")
        ),
        Content::Mapping(entries) => {
            let shown = entries.iter().map(|(key, value)| {
                format!("{}: {}", key.text().unwrap_or_default(), in_short(value))
            });
            format!("{{{}}}", shown.collect::<Vec<_>>().join(", "))
        }
    };
    let mut shown: String = plain(&text)
        .chars()
        .take(MAX_VALUE_CHARACTERS_SHOWN)
        .collect();
    if shown.chars().count() == MAX_VALUE_CHARACTERS_SHOWN {
        shown.push('…');
    }
    shown
}

/// A text from an untrusted file, with control characters made visible.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c == ' ' || c.is_alphanumeric() || c.is_ascii_graphic() {
                c.to_string()
            } else {
                c.escape_unicode().to_string()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::yaml::parse;

    fn keys(text: &str) -> Vec<String> {
        privileged(&parse("towline.yaml", text).expect("YAML"))
            .into_iter()
            .map(|found| found.key)
            .collect()
    }

    #[test]
    fn what_describes_jobs_is_allowed_and_all_else_is_privileged() {
        let harmless = "default_cluster: lab\nin_place: true\nclusters: {lab: {kind: slurm, \
            partition: dev, gpus_per_node: 8, job: {resources: {nodes: 2, time: \
                1h}, tags: [a], code: {ignore: [data]}}}}\n";
        assert_eq!(keys(harmless), Vec::<String>::new());
        for (text, expected) in [
            (
                "clusters: {local: {kind: local, job: {environment: {setup: [touch x]}}}}",
                "clusters.local.job.environment",
            ),
            (
                "clusters: {local: {job: {command: evil}}}",
                "clusters.local.job.command",
            ),
            (
                "clusters: {local: {job: {resources: {native: [--uid=0]}}}}",
                "clusters.local.job.resources.native",
            ),
            ("clusters: {lab: {host: evil.example}}", "clusters.lab.host"),
            (
                "clusters: {lab: {ssh_config: x}}",
                "clusters.lab.ssh_config",
            ),
            ("clusters: {lab: evil}", "clusters.lab"),
            ("clusters: [evil]", "clusters"),
            (
                "clusters: {lab: {job: {code: {root: /home/ann}}}}",
                "clusters.lab.job.code.root",
            ),
            (
                "datastores: {s: {kind: s3, endpoint: http://x}}",
                "datastores",
            ),
            ("folders: {data: {datastore: nas, path: x}}", "folders"),
            ("tunnels: {t: {to: x}}", "tunnels"),
            ("clusters: {<<: {local: {host: x}}}", "clusters.local.host"),
        ] {
            assert_eq!(keys(text), [expected], "{text}");
            let left = without_privileges(&parse("towline.yaml", text).expect("YAML"));
            assert_eq!(privileged(&left), [], "{text}");
        }
    }

    #[test]
    fn nothing_that_is_shown_acts_on_a_terminal() {
        let found = privileged(
            &parse(
                "towline.yaml",
                "datastores: \"\\e[2J\\u202e\"\nclusters: {\"a\\u0007\": 1}\n",
            )
            .expect("YAML"),
        );
        for privilege in found {
            assert!(
                format!("{}{}", privilege.key, privilege.value)
                    .chars()
                    .all(|c| c.is_ascii_graphic()),
                "{privilege:?}"
            );
        }
    }

    #[test]
    fn names_of_folders_stay_inside() {
        let tree = parse(
            "towline.yaml",
            "folders: {data: {datastore: x}, ../up: {datastore: \
            x}, /etc: {datastore: x}, a/b: {datastore: x}}",
        )
        .expect("YAML");
        assert_eq!(described_folders(&tree), ["data", "a/b"]);
    }
}
