//! A batch script of Slurm as a job: its `#SBATCH` lines are keys, its lines the script.

use super::sbatch_options::{Given, array, mebibytes, options, seconds};
use super::section::wrong;
use super::{Converted, add_secret, put_script, quoted, scrub};
use std::collections::BTreeMap;
use std::path::Path;
use towline_core::Result;
use towline_core::quantity::Span;
use towline_core::yaml::{Node, Position};

/// What the count of ranks, CPUs and GPUs is made from, once all lines are read.
#[derive(Default)]
struct Size {
    nodes: Option<u32>,
    tasks: Option<u32>,
    tasks_per_node: Option<u32>,
    cpus_per_task: Option<u32>,
    gpus: BTreeMap<&'static str, u32>,
    memory: BTreeMap<&'static str, u64>,
}

struct Work<'w> {
    job: Node,
    converted: &'w mut Converted,
    native: Vec<Node>,
    size: Size,
    /// A folder to begin in that lies outside the code.
    begin: Option<String>,
}

pub(super) fn convert(file: &Path, text: &str) -> Result<Converted> {
    let source = file.display().to_string();
    let top = Position { source: source.as_str().into(), line: 1, column: 1 };
    if !text.starts_with("#!") {
        return Err(wrong(&top, "this is no batch script: its first line is not `#!` with a shell"));
    }
    let given = options(&source, text)?;
    let mut converted = Converted::new(&source);
    let mut work = Work { job: Node::mapping(top.clone()), converted: &mut converted, native: Vec::new(), size: Size::default(), begin: None };
    // The batch script itself runs once, on the first node.
    for option in &given {
        work.option(option)?;
    }
    work.sizes(&top)?;
    if !work.native.is_empty() {
        let native = Node::sequence(std::mem::take(&mut work.native), top.clone());
        work.job.put(&["resources", "native"], native);
    }
    let Work { mut job, begin, .. } = work;
    body(text, begin, &mut job, &mut converted, &top)?;
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = job.get("name").and_then(Node::text).map_or(stem, str::to_owned);
    converted.job = Some((name, job));
    Ok(converted)
}

impl Work<'_> {
    fn put(&mut self, given: &Given, path: &[&str], node: Node) {
        self.job.put(path, node);
        self.converted.report.mapped(format!("--{}", given.name), &given.at, path.join("."));
    }

    fn scalar(&mut self, given: &Given, path: &[&str], text: &str) {
        self.put(given, path, quoted(text, &given.at));
    }

    /// The option itself, for Slurm as it is.
    fn pass(&mut self, given: &Given) {
        if !scrub::scrub(&given.word()).1.is_empty() {
            return self.converted.report.not_mapped(format!("--{}", given.name), &given.at, "its value holds a secret: it was not copied");
        }
        self.native.push(quoted(&given.word(), &given.at));
        self.converted.report.mapped(format!("--{}", given.name), &given.at, "resources.native, as it is");
    }

    fn option(&mut self, given: &Given) -> Result<()> {
        let at = &given.at;
        match given.name.as_str() {
            "job-name" => self.scalar(given, &["name"], given.text()?),
            "account" => self.scalar(given, &["resources", "account"], given.text()?),
            "qos" if ["premium", "standard", "basic"].contains(&given.text()?) => self.scalar(given, &["resources", "tier"], given.text()?),
            "partition" => {
                self.pass(given);
                self.converted.report.warn(format!(
                    "the partition `{}` is the job's own now; as `partition` of a cluster in the configuration it would count for all",
                    given.text()?
                ));
            }
            "time" => match seconds(given)? {
                Some(seconds) => self.scalar(given, &["resources", "time"], &Span(seconds).to_string()),
                None => self.converted.report.not_needed("--time", at, "without a time there is no limit but the cluster's"),
            },
            "output" | "error" => self.converted.report.not_needed(format!("--{}", given.name), at, "every rank's output is kept: `tow logs`"),
            "open-mode" | "parsable" | "quiet" => self.converted.report.not_needed(format!("--{}", given.name), at, "every rank's output is kept: `tow logs`"),
            "wait" => self.converted.report.not_needed("--wait", at, "`tow run` and `tow wait` do so"),
            "requeue" => self.converted.report.not_needed("--requeue", at, "a run that is evicted is queued again by itself"),
            "no-requeue" => self.converted.report.not_mapped("--no-requeue", at, "a run that is evicted is always queued again"),
            "chdir" => self.folder(given)?,
            "export" => self.export(given)?,
            "array" => self.array(given)?,
            "clusters" => self.converted.report.not_mapped("--clusters", at, "name the cluster with `cluster:` or `-c`"),
            _ if self.count(given)? => {}
            _ => self.pass(given),
        }
        Ok(())
    }

    /// Options that are counted together in the end.
    fn count(&mut self, given: &Given) -> Result<bool> {
        let size = &mut self.size;
        match given.name.as_str() {
            "nodes" => {
                let text = given.text()?;
                let (least, most) = text.split_once('-').unwrap_or((text, text));
                let nodes =
                    least.parse().ok().filter(|nodes| *nodes > 0).ok_or_else(|| wrong(&given.at, format!("`--nodes`: `{text}` is not a number of nodes")))?;
                size.nodes = Some(nodes);
                if least != most {
                    self.converted.report.warn(format!("`--nodes={text}`: the smaller number is taken"));
                }
            }
            "ntasks" => size.tasks = Some(given.number()?),
            "ntasks-per-node" => size.tasks_per_node = Some(given.number()?),
            "cpus-per-task" => size.cpus_per_task = Some(given.number()?),
            "gpus" | "gpus-per-node" | "gpus-per-task" | "gres" => return self.gpus(given),
            "mem" if given.text()? == "0" => return Ok(false),
            "mem" => drop(size.memory.insert("node", mebibytes(given)?)),
            "mem-per-cpu" => drop(size.memory.insert("cpu", mebibytes(given)?)),
            "mem-per-gpu" => drop(size.memory.insert("gpu", mebibytes(given)?)),
            _ => return Ok(false),
        }
        self.converted.report.mapped(format!("--{}", given.name), &given.at, "resources");
        Ok(true)
    }

    /// `4`, `a100:4`, and for `--gres` `gpu:4`, `gpu:a100:4`, `gpu`.
    fn gpus(&mut self, given: &Given) -> Result<bool> {
        let text = given.text()?;
        let (text, kind) = match given.name.as_str() {
            "gres" if text.contains(',') => return Ok(false),
            "gres" => match text.strip_prefix("gpu") {
                Some("") => ("1", "node"),
                Some(rest) if rest.starts_with(':') => (&rest[1..], "node"),
                _ => return Ok(false),
            },
            "gpus" => (text, "all"),
            "gpus-per-task" => (text, "task"),
            _ => (text, "node"),
        };
        let (make, count) = text.rsplit_once(':').map_or((None, text), |(make, count)| (Some(make), count));
        let (make, count) = if count.parse::<u32>().is_err() && make.is_none() && given.name == "gres" { (Some(count), "1") } else { (make, count) };
        let count = count.parse().map_err(|_| wrong(&given.at, format!("`--{}`: `{text}` is not a number of GPUs", given.name)))?;
        self.size.gpus.insert(kind, count);
        self.converted.report.mapped(format!("--{}", given.name), &given.at, "resources.gpus_per_node");
        if let Some(make) = make {
            self.scalar(given, &["resources", "instance_type"], make);
        }
        Ok(true)
    }

    fn folder(&mut self, given: &Given) -> Result<()> {
        let path = given.text()?;
        if path.starts_with('/') || path.starts_with('~') || path.split('/').any(|part| part == "..") {
            self.begin = Some(path.to_owned());
            self.converted.report.mapped("--chdir", &given.at, "the script's first line, `cd`: the folder lies outside the code");
        } else {
            self.scalar(given, &["code", "workdir"], path);
        }
        Ok(())
    }

    fn export(&mut self, given: &Given) -> Result<()> {
        for part in given.text()?.split(',') {
            match part.split_once('=') {
                Some((name, value)) if scrub::is_secret(name, value) => {
                    add_secret(&mut self.job, name, &given.at);
                    self.converted.report.not_mapped(
                        format!("--export: {name}"),
                        &given.at,
                        "a secret: its value was not copied, only its name to environment.secrets",
                    );
                    self.converted.report.store(name, &format!("the value of {name} in `--export`"));
                }
                Some((name, value)) => self.scalar(given, &["environment", "env", name], value),
                None if part == "NONE" || part == "NIL" => {
                    self.converted.report.not_needed("--export: NONE", &given.at, "a far run gets what the job file names");
                }
                None => self.converted.report.not_mapped(
                    format!("--export: {part}"),
                    &given.at,
                    "a far run gets what the job file names: write variables under `environment.env`",
                ),
            }
        }
        Ok(())
    }

    fn array(&mut self, given: &Given) -> Result<()> {
        let (numbers, at_once) = array(given)?;
        let values = numbers.iter().map(|number| quoted(number, &given.at)).collect();
        self.put(given, &["sweep", "task"], Node::sequence(values, given.at.clone()));
        self.job.put(&["environment", "env", "SLURM_ARRAY_TASK_ID"], quoted("${{task}}", &given.at));
        if let Some(at_once) = at_once {
            self.converted.report.not_mapped(format!("--array: %{at_once}"), &given.at, "how many run at once is the cluster's choice");
        }
        Ok(())
    }

    /// Per node, as the job file has it.
    fn sizes(&mut self, at: &Position) -> Result<()> {
        let Size { nodes, tasks, tasks_per_node, cpus_per_task, gpus, memory } = std::mem::take(&mut self.size);
        let count = nodes.unwrap_or(1);
        let ranks = tasks_per_node.or_else(|| tasks.map(|tasks| tasks.div_ceil(count))).unwrap_or(1);
        let cpus = cpus_per_task.map(|cpus| cpus.saturating_mul(ranks)).or((ranks > 1).then_some(ranks));
        let whole = |total: u32| {
            if total.is_multiple_of(count) { Ok(total / count) } else { Err(wrong(at, format!("{total} GPUs cannot be shared out among {count} nodes"))) }
        };
        let gpus = match (gpus.get("node"), gpus.get("task"), gpus.get("all")) {
            (Some(gpus), ..) => Some(*gpus),
            (_, Some(gpus), _) => Some(gpus.saturating_mul(ranks)),
            (.., Some(total)) => Some(whole(*total)?),
            _ => None,
        };
        let times = |size: u64, count: Option<u32>| size.saturating_mul(u64::from(count.unwrap_or(1)));
        let memory = match (memory.get("node"), memory.get("cpu"), memory.get("gpu")) {
            (Some(size), ..) => Some(*size),
            (_, Some(size), _) => Some(times(*size, cpus)),
            (.., Some(size)) => Some(times(*size, gpus)),
            _ => None,
        };
        let mut put = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                self.job.put(&["resources", key], Node::scalar(value, at.clone()));
            }
        };
        put("nodes", nodes.map(|nodes| nodes.to_string()));
        put("gpus_per_node", gpus.map(|gpus| gpus.to_string()));
        put("cpus_per_node", cpus.map(|cpus| cpus.to_string()));
        put("memory", memory.map(|size| if size.is_multiple_of(1024) { format!("{}G", size / 1024) } else { format!("{size}M") }));
        self.job.put(&["launch"], Node::scalar("once", at.clone()));
        if tasks.is_some() || tasks_per_node.is_some() {
            self.converted.report.warn(format!("the script runs once, as with `sbatch`. Towline can start its {ranks} ranks per node by itself: write `launch: {ranks}`, and the command without `srun`"));
        }
        Ok(())
    }
}

/// The script without its `#SBATCH` lines. Its `#!` line stays, and with it the shell's own manners.
fn body(text: &str, begin: Option<String>, job: &mut Node, converted: &mut Converted, top: &Position) -> Result<()> {
    let mut lines: Vec<String> = text.lines().filter(|line| !line.starts_with("#SBATCH")).map(str::to_owned).collect();
    if lines.iter().skip(1).all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Err(wrong(top, "the script has no command"));
    }
    if let Some(folder) = begin {
        lines.insert(1, format!("cd {folder}"));
    }
    for variable in ["SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_MIN", "SLURM_SUBMIT_DIR"] {
        if lines.iter().any(|line| line.contains(variable)) {
            converted.report.warn(format!("the script uses ${variable}, which is another one here, or none"));
        }
    }
    // What looks like a value of a sweep is meant as it stands.
    let lines: Vec<String> = lines.iter().map(|line| line.replace("${{", "$${{")).collect();
    put_script(converted, job, &["script"], &lines, top);
    Ok(())
}
