//! What a job needs of this machine, and whether it can ever have it.

use std::path::Path;
use towline_core::backend::Facts;
use towline_core::job::IoMode;
use towline_core::plan::Request;
use towline_core::quantity::Memory;
use towline_core::resolve::{Resolved, Shape};
use towline_core::{Error, Result};

/// The resources of one run, all its nodes together: they share this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Need {
    pub cpus: u32,
    pub memory: u64,
    pub gpus: u32,
}

/// CPUs that were not asked for are no reason to wait for more than the machine has.
pub fn need(shape: &Shape, machine_cpus: u32) -> Need {
    let cpus = match shape.cpus_per_node {
        Some(_) => shape.total_cpus(),
        None => shape.total_cpus().min(machine_cpus.max(1)),
    };
    Need { cpus, memory: shape.total_memory(), gpus: shape.total_gpus() }
}

/// A request that can never fit is refused at once, with the reason.
pub fn check_fits(need: &Need, machine: &Need) -> Result<()> {
    let refuse = |what: String, has: String| {
        Err(Error::refused(format!("this machine can never start it: it asks for {what} and there are {has}"))
            .hint("ask for less, or choose another cluster with `-c`"))
    };
    if need.gpus > machine.gpus {
        let has = if machine.gpus == 0 { "none".to_owned() } else { machine.gpus.to_string() };
        return refuse(format!("{} GPU{}", need.gpus, plural(need.gpus)), has);
    }
    if need.cpus > machine.cpus {
        return refuse(format!("{} CPUs", need.cpus), machine.cpus.to_string());
    }
    if need.memory > machine.memory {
        return refuse(format!("{} of memory", Memory(need.memory)), Memory(machine.memory).to_string());
    }
    Ok(())
}

const fn plural(count: u32) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The machine's size, as the facts tell it.
pub fn machine(facts: &Facts) -> Need {
    facts.nodes.first().map_or_else(Need::default, |node| Need {
        cpus: node.cpus,
        memory: node.memory,
        gpus: u32::try_from(node.gpus.len()).unwrap_or(u32::MAX),
    })
}

/// The first few by name.
fn shown_links(links: &[String]) -> String {
    let mut text = links.iter().take(6).cloned().collect::<Vec<_>>().join(", ");
    if links.len() > 6 {
        text += &format!(" and {} more", links.len() - 6);
    }
    text
}

/// The request as text: what the runner will start, where and with what.
pub(super) fn render(resolved: &Resolved, facts: &Facts) -> Result<Request> {
    use std::fmt::Write;
    let machine = machine(facts);
    let need = need(&resolved.shape, machine.cpus);
    check_fits(&need, &machine)?;
    let shape = &resolved.shape;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<9} {value}");
    };
    line("starts", resolved.program.display());
    match &resolved.code {
        None => line("in", format!("{} itself", resolved.workdir)),
        Some(code) => {
            line("in", Path::new("code of the run").join(&code.workdir).display().to_string().trim_end_matches('/').to_owned());
            line("code", format!("{} file{}, {} from {}", code.files, if code.files == 1 { "" } else { "s" }, Memory(code.bytes), code.root));
            let links: Vec<String> = code.links.iter().chain(code.mapped.keys()).cloned().collect();
            if !links.is_empty() {
                line("linked", shown_links(&links));
            }
        }
    }
    if let Some(container) = &resolved.container {
        line("image", format!("{} ({})", container.image, container.program));
    }
    for io in &resolved.io {
        let mode = match io.mode {
            IoMode::Read => "read",
            IoMode::Write => "write",
            IoMode::Mount => "mount",
        };
        line("data", format!("{} = {}:{} ({mode})", io.name, io.store.name, io.path));
    }
    if let Some(copy) = &resolved.copy {
        line("copy", format!("{}:{} {}", copy.store.name, copy.path, copy.subdirs.join(", ")).trim_end().to_owned());
    }
    line("ranks", format!("{} on {} node{}", shape.world(), shape.nodes, plural(shape.nodes)));
    let memory = if need.memory > 0 { format!(", {} memory", Memory(need.memory)) } else { String::new() };
    line("takes", format!("{} CPU{}, {} GPU{}{memory}", need.cpus, plural(need.cpus), need.gpus, plural(need.gpus)));
    line("tier", resolved.tier.word().to_owned());
    if let Some(time) = resolved.time {
        line("at most", time.to_string());
    }
    for setup in &resolved.setup {
        line("set-up", setup.clone());
    }
    for (name, value) in &resolved.env {
        line("variable", format!("{name}={value}"));
    }
    if !resolved.inherited.is_empty() {
        line("inherits", format!("{} variables of this shell", resolved.inherited.len()));
    }
    if !resolved.secrets.is_empty() {
        line("secrets", resolved.secrets.join(", "));
    }
    Ok(Request { text })
}
