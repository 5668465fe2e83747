//! `sku` of an amlt job: `[N x] [memGB]G<gpus>|C<cpus> [-TYPE…] [@region,region]`.

use towline_core::Result;
use towline_core::yaml::Position;

use super::section::wrong;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Sku {
    pub(super) nodes: u32,
    pub(super) gpus: u32,
    pub(super) cpus: Option<u32>,
    /// Memory of each GPU, in GB.
    pub(super) gpu_memory: Option<u32>,
    /// Kinds of GPU and of network, as they are written.
    pub(super) kinds: Vec<String>,
    pub(super) regions: Vec<String>,
}

pub(super) fn parse(text: &str, at: &Position) -> Result<Sku> {
    let not_one = || {
        wrong(
            at,
            format!(
                "`sku: {text}` cannot be read: [N x] [GB]G<gpus> or C<cpus>, [-TYPE], [@region]"
            ),
        )
    };
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let (plain, regions) = plain.split_once('@').unwrap_or((&plain, ""));
    // `SERIES:…` names the machine type before the count.
    let (series, plain) = plain
        .split_once(':')
        .map_or((None, plain), |(series, rest)| (Some(series), rest));
    let (nodes, rest) = match plain.split_once(['x', 'X']) {
        Some((count, rest))
            if count.bytes().all(|byte| byte.is_ascii_digit()) && !count.is_empty() =>
        {
            (count.parse().map_err(|_| not_one())?, rest)
        }
        _ => (1, plain),
    };
    let mut parts = rest.split('-');
    let size = parts.next().unwrap_or_default();
    let mut sku = Sku {
        nodes,
        regions: listed(regions),
        ..Sku::default()
    };
    let split = size.find(['G', 'g', 'C', 'c']).ok_or_else(not_one)?;
    let (memory, count) = (
        &size[..split],
        size[split + 1..].parse().map_err(|_| not_one())?,
    );
    if size[split..].starts_with(['G', 'g']) {
        sku.gpus = count;
        sku.gpu_memory = if memory.is_empty() {
            None
        } else {
            Some(memory.parse().map_err(|_| not_one())?)
        };
    } else {
        sku.cpus = Some(count);
    }
    if sku.nodes == 0 {
        return Err(not_one());
    }
    sku.kinds = series
        .into_iter()
        .chain(parts)
        .filter(|kind| !kind.is_empty())
        .map(str::to_owned)
        .collect();
    Ok(sku)
}

fn listed(text: &str) -> Vec<String> {
    text.split(',')
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let at = Position {
            source: "x".into(),
            line: 1,
            column: 1,
        };
        let read = |text: &str| {
            parse(text, &at).map(|sku| {
                (
                    sku.nodes,
                    sku.gpus,
                    sku.cpus,
                    sku.gpu_memory,
                    sku.kinds.join(" "),
                    sku.regions.join(" "),
                )
            })
        };
        for (text, wanted) in [
            ("G1", (1, 1, None, None, "", "")),
            ("2x8G4", (2, 4, None, Some(8), "", "")),
            (
                "4 x 80G8-A100-IB-NvLink@westus3,eastus",
                (4, 8, None, Some(80), "A100 IB NvLink", "westus3 eastus"),
            ),
            ("C8", (1, 0, Some(8), None, "", "")),
            ("NDv4:2xG8", (2, 8, None, None, "NDv4", "")),
        ] {
            let (nodes, gpus, cpus, memory, kinds, regions) = wanted;
            assert_eq!(
                read(text).expect(text),
                (
                    nodes,
                    gpus,
                    cpus,
                    memory,
                    kinds.to_owned(),
                    regions.to_owned()
                ),
                "{text}"
            );
        }
        for text in ["", "x", "0xG1", "G", "Gx", "many"] {
            assert!(parse(text, &at).is_err(), "{text}");
        }
    }
}
