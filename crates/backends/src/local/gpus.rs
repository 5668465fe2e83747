//! GPUs of this machine. The program is static and cannot load a driver's library, so it uses
//! `nvidia-smi`, `/proc/driver/nvidia` and sysfs.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use towline_core::cluster::{GpuFacts, GpuMake};
use towline_host::program;

/// A GPU without visible processes counts as busy if more than one part in this many of its memory
/// is used.
const BUSY_SHARE: u64 = 10;

/// The probable number of GPUs, without starting a program.
pub fn count_quickly() -> u32 {
    let nvidia = entries("/proc/driver/nvidia/gpus")
        .len()
        .max(device_nodes());
    u32::try_from(nvidia.max(amd().len())).unwrap_or(0)
}

fn entries(folder: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

fn device_nodes() -> usize {
    entries("/dev")
        .iter()
        .filter_map(|name| name.strip_prefix("nvidia"))
        .filter(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
        .count()
}

/// All GPUs with their users. `ours` tells whether a process belongs to one of our runs.
pub fn detect(ours: &dyn Fn(i32) -> bool) -> Vec<GpuFacts> {
    if count_quickly() == 0 && program::on_path("nvidia-smi").is_none() {
        return Vec::new();
    }
    let found = nvidia_smi(ours);
    if !found.is_empty() {
        return found;
    }
    let found = nvidia_proc();
    if found.is_empty() { amd() } else { found }
}

fn query(what: &str) -> Option<String> {
    let listing = program::output("nvidia-smi", &[what, "--format=csv,noheader,nounits"])?;
    Some(String::from_utf8_lossy(&listing).into_owned())
}

fn nvidia_smi(ours: &dyn Fn(i32) -> bool) -> Vec<GpuFacts> {
    let Some(listing) = query("--query-gpu=index,uuid,name,memory.total,memory.used") else {
        return Vec::new();
    };
    let users = query("--query-compute-apps=gpu_uuid,pid")
        .map(|text| parse_users(&text))
        .unwrap_or_default();
    parse_nvidia(&listing, &users, ours)
}

/// Processes by GPU.
fn parse_users(listing: &str) -> HashMap<String, Vec<i32>> {
    let mut users: HashMap<String, Vec<i32>> = HashMap::new();
    for line in listing.lines() {
        if let Some((uuid, pid)) = line.split_once(',')
            && let Ok(pid) = pid.trim().parse()
        {
            users.entry(uuid.trim().to_owned()).or_default().push(pid);
        }
    }
    users
}

fn parse_nvidia(
    listing: &str,
    users: &HashMap<String, Vec<i32>>,
    ours: &dyn Fn(i32) -> bool,
) -> Vec<GpuFacts> {
    listing
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split(',').map(str::trim).collect();
            let [index, uuid, name, total, used] = fields.as_slice() else {
                return None;
            };
            let mebibytes = |text: &str| text.parse::<u64>().unwrap_or(0) << 20;
            let (memory, memory_used) = (mebibytes(total), mebibytes(used));
            let pids = users.get(*uuid).map(Vec::as_slice).unwrap_or_default();
            Some(GpuFacts {
                index: index.parse().ok()?,
                name: (*name).to_owned(),
                make: GpuMake::Nvidia,
                memory,
                memory_used,
                run: None,
                busy_with: busy_with(pids, memory, memory_used, ours),
            })
        })
        .collect()
}

fn busy_with(pids: &[i32], memory: u64, used: u64, ours: &dyn Fn(i32) -> bool) -> Option<String> {
    let foreign: Vec<String> = pids
        .iter()
        .filter(|pid| !ours(**pid))
        .map(|pid| describe(*pid))
        .collect();
    if !foreign.is_empty() {
        return Some(foreign.join(", "));
    }
    // In a container the processes of other users are not listed, but the memory they use is.
    (pids.is_empty() && memory > 0 && used > memory / BUSY_SHARE)
        .then(|| format!("{} MiB in use", used >> 20))
}

fn describe(pid: i32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    match name.trim() {
        "" => format!("process {pid}"),
        name => format!("{name} ({pid})"),
    }
}

/// Reads `/proc/driver/nvidia/gpus/<address>/information`, if `nvidia-smi` is missing.
fn nvidia_proc() -> Vec<GpuFacts> {
    let folder = "/proc/driver/nvidia/gpus";
    (0..)
        .zip(entries(folder))
        .map(|(index, address)| {
            let text = fs::read_to_string(Path::new(folder).join(address).join("information"))
                .unwrap_or_default();
            let model = text
                .lines()
                .find_map(|line| line.strip_prefix("Model:"))
                .unwrap_or("NVIDIA GPU")
                .trim()
                .to_owned();
            GpuFacts {
                index,
                name: model,
                make: GpuMake::Nvidia,
                ..GpuFacts::default()
            }
        })
        .collect()
}

fn amd() -> Vec<GpuFacts> {
    let cards = entries("/sys/class/drm")
        .into_iter()
        .filter(|name| name.starts_with("card") && !name.contains('-'));
    let read = |card: &str, file: &str| {
        fs::read_to_string(format!("/sys/class/drm/{card}/device/{file}"))
            .map(|text| text.trim().to_owned())
    };
    let amd_cards = cards.filter(|card| {
        read(card, "vendor").is_ok_and(|vendor| vendor == "0x1002")
            && read(card, "mem_info_vram_total").is_ok()
    });
    (0..)
        .zip(amd_cards.collect::<Vec<_>>())
        .map(|(index, card)| {
            let number = |file: &str| {
                read(&card, file)
                    .ok()
                    .and_then(|text| text.parse().ok())
                    .unwrap_or(0)
            };
            let (memory, memory_used) =
                (number("mem_info_vram_total"), number("mem_info_vram_used"));
            GpuFacts {
                index,
                name: read(&card, "product_name")
                    .ok()
                    .filter(|name| !name.is_empty())
                    .unwrap_or_else(|| "AMD GPU".into()),
                make: GpuMake::Amd,
                memory,
                memory_used,
                run: None,
                busy_with: busy_with(&[], memory, memory_used, &|_| false),
            }
        })
        .collect()
}

/// GPUs that only the configuration names.
pub fn declared(count: u32) -> Vec<GpuFacts> {
    (0..count)
        .map(|index| GpuFacts {
            index,
            name: "declared".into(),
            make: GpuMake::Declared,
            ..GpuFacts::default()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "0, GPU-aa, NVIDIA H200, 143771, 0\n1, GPU-bb, NVIDIA H200, 143771, \
        20000\n2, GPU-cc, NVIDIA H200, 143771, 900\nbroken line\n";

    #[test]
    fn gpus_that_others_keep_busy_are_known() {
        let users = parse_users("GPU-aa, 11\nGPU-cc, 22\nGPU-xx, [N/A]\n");
        let gpus = parse_nvidia(LISTING, &users, &|pid| pid == 11);
        assert_eq!(gpus.len(), 3);
        assert_eq!(gpus[0].memory, 143_771 << 20);
        assert_eq!(gpus[0].busy_with, None, "our own process");
        assert!(
            gpus[1]
                .busy_with
                .as_deref()
                .is_some_and(|text| text.contains("20000 MiB"))
        );
        assert!(
            gpus[2]
                .busy_with
                .as_deref()
                .is_some_and(|text| text.contains("22"))
        );
    }
}
