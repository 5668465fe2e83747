//! `tow config`: shows the configuration and where each value was written.

use super::Report;
use crate::context::Context;
use crate::output::Paint;
use crate::output::table::Table;
use towline_core::Result;

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
            let schema = towline_core::job::schema();
            let text = serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n";
            Ok(Report {
                text,
                json: Some(schema),
                ..Report::default()
            })
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
            let mut table = Table::new(&["KEY", "VALUE", "ORIGIN"]);
            for entry in &entries {
                let origin = if origin {
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
            let rows: Vec<_> = entries.iter().map(|entry| serde_json::json!({ "key": entry.key, "value": entry.value, "origin": entry.origin })).collect();
            Ok(Report::new(
                table.render(),
                &serde_json::json!({ "values": rows }),
            ))
        }
    }
}
