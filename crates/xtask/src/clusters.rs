//! The table of what each kind of cluster offers: a page of the reference, quoted in the README.

use std::fmt::Write;
use towline_backends::features::{How, Kind};
use towline_backends::registry::{self, PLANNED_KINDS};
use towline_core::cluster::Caps;

/// What stands around the table in the README.
const BEGIN: &str = "<!-- clusters: made by `cargo xtask generate` -->\n";
const END: &str = "<!-- end of clusters -->\n";

/// A row: what it is about, and the cell of a kind.
type Row = (&'static str, fn(&Kind) -> String);

/// Rows of the README, then those that only the reference has. Each capability is in one of them,
/// apart from two that only the program cares for.
const SHORT: [Row; 14] = [
    ("your laptop may be off", |kind| {
        yes(kind, |caps| !caps.is_here)
    }),
    ("a sweep is", |kind| of(kind.how, |how| how.sweep)),
    ("retries and time limits are carried out by", |kind| {
        of(kind.how, |how| how.retry)
    }),
    ("a tier becomes", |kind| of(kind.how, |how| how.tier)),
    ("`why` a run waits", |kind| of(kind.how, |how| how.waiting)),
    ("`tow ssh`", |kind| of(kind.how, |how| how.shell)),
    ("`tow port`", |kind| of(kind.how, |how| how.port)),
    ("images, run by", |kind| {
        if all(kind, |caps| caps.containers) {
            of(kind.how, |how| how.image)
        } else {
            "no".to_owned()
        }
    }),
    ("data: read, write, mount", |kind| yes(kind, |caps| caps.io)),
    (
        "runs of my other machines (`ps --remote`, `adopt`)",
        |kind| yes(kind, |caps| !caps.is_here),
    ),
    ("jobs of colleagues and other tools, adopted", |kind| {
        yes(kind, |caps| caps.adopts_others)
    }),
    ("queued runs: `hold`, `resume`", |kind| {
        yes(kind, |caps| caps.holds)
    }),
    ("queued runs: `edit` of tier and time", |kind| {
        yes(kind, |caps| caps.edits)
    }),
    ("queued runs: `edit` of the size", |kind| {
        yes(kind, |caps| caps.edits_size)
    }),
];

const MORE: [Row; 8] = [
    ("secrets travel through", |kind| {
        of(kind.how, |how| how.secret)
    }),
    ("`account`, `native`", |kind| {
        yes(kind, |caps| caps.native_options)
    }),
    ("a job chooses its machines (`instance_type`)", |kind| {
        yes(kind, |caps| caps.native_options && !caps.fixed_machines)
    }),
    ("`location`", |kind| yes(kind, |caps| caps.locations)),
    ("`identity`", |kind| yes(kind, |caps| caps.identity)),
    ("a run has its nodes to itself", |kind| {
        yes(kind, |caps| caps.whole_nodes)
    }),
    ("datastores that the cluster itself knows", |kind| {
        yes(kind, |caps| caps.own_datastores.is_some())
    }),
    ("mapped folders are mounted by the cluster", |kind| {
        yes(kind, |caps| caps.mounts_folders)
    }),
];

/// What the seam asks of every kind, so that there is no choice to show.
const EVERY_KIND: &str = "Every kind has frozen code, sweeps, several nodes and ranks, logs of every rank and attempt, \
    `why`, `wait`, `abort`, `resubmit --to`,\n`get`, `diff`, retries, tiers, time limits, secrets and `--dry-run`. \
    One suite of tests runs over every kind ([the seam](../../ARCHITECTURE.md#seams)).\n";

fn of(how: How, phrase: fn(&How) -> &'static str) -> String {
    phrase(&how).to_owned()
}

fn all(kind: &Kind, can: impl Fn(&Caps) -> bool) -> bool {
    kind.flavours.iter().all(|(_, caps)| can(caps))
}

/// Yes or no, or which flavours.
fn yes(kind: &Kind, can: impl Fn(&Caps) -> bool) -> String {
    let able = kind.flavours.iter().filter(|(_, caps)| can(caps));
    let able: Vec<&str> = able.map(|(flavour, _)| *flavour).collect();
    match able.len() {
        0 => "no".to_owned(),
        some if some == kind.flavours.len() => "yes".to_owned(),
        _ => able.join(", "),
    }
}

fn table(rows: &[Row]) -> String {
    let kinds = registry::kinds();
    let planned = PLANNED_KINDS.join(", ");
    let titles = kinds.iter().map(|kind| kind.title);
    let titles: Vec<&str> = titles.chain([planned.as_str()]).collect();
    let mut table = format!("| | {} |\n", titles.join(" | "));
    table += &format!("|---|{}\n", "---|".repeat(titles.len()));
    for (title, cell) in rows {
        let cells = kinds.iter().map(cell);
        let cells: Vec<String> = cells.chain(["planned".to_owned()]).collect();
        let _ = writeln!(table, "| {title} | {} |", cells.join(" | "));
    }
    table
}

/// `docs/reference/clusters.md`
pub(crate) fn page() -> String {
    let rows: Vec<Row> = SHORT.into_iter().chain(MORE).collect();
    format!(
        "# Clusters\n\nMade from the capabilities of each kind (`Caps`) by `cargo xtask generate`.\n\n{}\n{EVERY_KIND}\n\
        Computes and virtual clusters are flavours of Azure ML; Kubernetes that is attached to a workspace (ITP) counts as a compute. \
        A key that means nothing\non a cluster is told when you submit. How to use each kind: [this machine](../guide/first-steps.md), \
        [Slurm](../guide/slurm.md), [Azure ML](../guide/azure-ml.md).\n",
        table(&rows)
    )
}

/// The README with the table as it is now.
pub(crate) fn quoted(readme: &str) -> Result<String, String> {
    let parts = readme
        .split_once(BEGIN)
        .and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = parts.ok_or_else(|| format!("README.md has no {BEGIN}"))?;
    Ok(format!("{before}{BEGIN}\n{}\n{END}{after}", table(&SHORT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each capability alone.
    fn every_capability() -> [Caps; 13] {
        [
            Caps {
                holds: true,
                ..Caps::NONE
            },
            Caps {
                edits: true,
                ..Caps::NONE
            },
            Caps {
                edits_size: true,
                ..Caps::NONE
            },
            Caps {
                is_here: true,
                ..Caps::NONE
            },
            Caps {
                containers: true,
                ..Caps::NONE
            },
            Caps {
                io: true,
                ..Caps::NONE
            },
            Caps {
                native_options: true,
                ..Caps::NONE
            },
            Caps {
                locations: true,
                ..Caps::NONE
            },
            Caps {
                identity: true,
                ..Caps::NONE
            },
            Caps {
                whole_nodes: true,
                ..Caps::NONE
            },
            Caps {
                own_datastores: Some(&towline_core::config::StoreKind::Azureml),
                ..Caps::NONE
            },
            Caps {
                mounts_folders: true,
                ..Caps::NONE
            },
            Caps {
                adopts_others: true,
                ..Caps::NONE
            },
        ]
    }

    /// A new capability has to be shown, or named here with the reason.
    #[test]
    fn every_capability_changes_a_cell() {
        let none = || Kind {
            title: "",
            flavours: vec![("", Caps::NONE)],
            how: registry::kinds()[0].how,
        };
        let cells = |kind: &Kind| -> Vec<String> {
            let rows = SHORT.iter().chain(&MORE);
            rows.map(|(_, cell)| cell(kind)).collect()
        };
        let Caps {
            is_here: _,
            containers: _,
            io: _,
            native_options: _,
            locations: _,
            identity: _,
            whole_nodes: _,
            // Shown only beside `native_options`, as `instance_type`.
            fixed_machines: _,
            own_datastores: _,
            mounts_folders: _,
            adopts_others: _,
            // How often the daemon asks is not for users to choose by.
            watches: _,
            holds: _,
            edits: _,
            edits_size: _,
        } = Caps::NONE;
        for caps in every_capability() {
            let kind = Kind {
                flavours: vec![("", caps)],
                ..none()
            };
            assert_ne!(cells(&kind), cells(&none()), "{caps:?}");
        }
    }

    #[test]
    fn flavours_that_differ_are_named() {
        let azure = &registry::kinds()[2];
        assert_eq!(yes(azure, |caps| caps.locations), "virtual clusters");
        assert_eq!(yes(azure, |caps| caps.identity), "yes");
        assert_eq!(yes(azure, |caps| caps.is_here), "no");
    }

    #[test]
    fn the_readme_keeps_what_is_around_the_table() {
        let readme = format!("before\n{BEGIN}STALE\n{END}after\n");
        let quoted = quoted(&readme).expect("it has the marks");
        assert!(
            quoted.starts_with("before\n") && quoted.ends_with("after\n"),
            "{quoted}"
        );
        assert!(quoted.contains("| this machine | Slurm |") && !quoted.contains("STALE"));
        assert!(super::quoted("nothing").is_err());
    }
}
