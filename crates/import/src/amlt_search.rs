//! A `search` of an amlt file, as a sweep.

use super::amlt_job::{Mounts, job};
use super::section::{Section, wrong};
use super::{Converted, quoted};
use towline_core::Result;
use towline_core::yaml::{Content, Node};

/// A grid of listed values becomes a sweep. A parameter whose values are drawn does not.
pub(super) fn search(
    keys: &Section<'_>,
    base: &Node,
    mounts: &Mounts,
    converted: &mut Converted,
) -> Result<()> {
    let Some(template) = keys.section("job_template")? else {
        return Err(wrong(keys.at(), "`search` has no `job_template`"));
    };
    let kind = keys
        .section("sampling")?
        .and_then(|sampling| sampling.text("type").ok().flatten())
        .or(keys.text("type")?)
        .unwrap_or("grid");
    let name = template
        .text("name")?
        .map_or_else(|| "search".to_owned(), |name| name.replace(['{', '}'], ""));
    let mut made = job(&template, &name, base.clone(), mounts, converted)?;
    let names = parameters(keys, &mut made, converted)?;
    // `{lr}` of the template is `${{lr}}` here.
    for key in ["script", "name"] {
        if let Some(text) = made.get(key).and_then(Node::text).map(str::to_owned) {
            let named = names.iter().fold(text, |text, name| {
                text.replace(&format!("{{{name}}}"), &format!("${{{{{name}}}}}"))
            });
            made.put(&[key], quoted(&named, template.place("command")));
        }
    }
    if !kind.starts_with("grid") {
        converted.report.warn(format!(
            "`search` of the kind `{kind}` tries some of the \
            combinations; the sweep has all of them"
        ));
    }
    for key in ["max_trials", "parallel_trials"]
        .into_iter()
        .filter(|key| keys.get(key).is_some())
    {
        converted.report.not_mapped(
            keys.key(key),
            keys.place(key),
            "a sweep has all its combinations, and the cluster says how many run at once",
        );
    }
    keys.report_unknown(&mut converted.report, "not a known key of a search");
    converted.jobs.push((name, made));
    Ok(())
}

/// Puts `params` under `sweep`; the names of those that have values.
fn parameters(
    keys: &Section<'_>,
    job: &mut Node,
    converted: &mut Converted,
) -> Result<Vec<String>> {
    let params = keys.get("params");
    let Some(Content::Sequence(items)) = params.map(|node| &node.content) else {
        return Err(wrong(keys.at(), "`search.params` must be a list"));
    };
    let mut names = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let param = Section::new(item, &format!("search.params[{index}]"))?;
        let Some(name) = param.text("name")? else {
            return Err(wrong(&item.at, "a parameter of `search` has no `name`"));
        };
        let values = param.lines("values")?;
        if values.is_empty() {
            let spec = param.text("spec")?.unwrap_or("a range");
            converted.report.not_mapped(
                param.key("spec"),
                &item.at,
                format!(
                    "`{spec}` draws values of `{name}`: list those that are to be tried under \
                    `sweep.{name}`"
                ),
            );
            continue;
        }
        job.put(
            &["sweep", name],
            Node::sequence(
                values.iter().map(|value| quoted(value, &item.at)).collect(),
                item.at.clone(),
            ),
        );
        converted.report.mapped(
            format!("search.params[{index}]"),
            &item.at,
            format!("sweep.{name}"),
        );
        names.push(name.to_owned());
    }
    Ok(names)
}
