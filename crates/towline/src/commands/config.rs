//! `tow config`: shows the configuration and where each value was written.

use super::Report;
use crate::context::Context;
use crate::output::Paint;
use crate::output::table::Table;
use towline_core::Result;
use towline_wire::report::config::{ConfigValue, ConfigValues, JobFileSchema};

/// Show the configuration, or the schema of the job file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow config show --origin
  tow config schema > towline-job.schema.json")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Show every configured value; `--origin` adds where it was written.
    #[command(after_help = "Examples:
  tow config show --origin
  tow config show --json")]
    Show {
        /// Add file, line and column, or the variable.
        #[arg(long)]
        origin: bool,
    },
    /// Print the JSON Schema of the job file, for editors.
    #[command(after_help = "Examples:
  tow config schema > towline-job.schema.json")]
    Schema,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    match args.what {
        What::Schema => {
            let schema = JobFileSchema(towline_core::job::schema());
            Ok(Report::of(&schema, |schema| {
                serde_json::to_string_pretty(schema).unwrap_or_default() + "\n"
            }))
        }
        What::Show { origin } => {
            let layers = context.layers()?;
            let mut entries = layers.entries();
            if layers.config.default_cluster.is_none() {
                entries.insert(
                    0,
                    towline_engine::layers::Entry {
                        key: "default_cluster".into(),
                        value: "local".into(),
                        origin: "default".into(),
                    },
                );
            }
            let values = entries.into_iter().map(|entry| ConfigValue {
                key: entry.key,
                value: entry.value,
                origin: entry.origin,
            });
            let answer = ConfigValues {
                values: values.collect(),
            };
            Ok(Report::of(&answer, |answer| text(answer, origin)))
        }
    }
}

fn text(answer: &ConfigValues, shows_origin: bool) -> String {
    let mut table = Table::new(&["KEY", "VALUE", "ORIGIN"]);
    for entry in &answer.values {
        let origin = if shows_origin {
            entry.origin.clone()
        } else {
            String::new()
        };
        table.row(vec![
            (entry.key.clone(), Paint::Bold),
            (entry.value.clone(), Paint::Plain),
            (origin, Paint::Quiet),
        ]);
    }
    table.render()
}
