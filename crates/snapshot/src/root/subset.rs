//! A root with only some of its entries.

use super::Root;
use crate::manifest::{Entry, Flavor, Kind};
use std::collections::{HashMap, HashSet};

impl Root {
    /// The same root with only the wanted entries and the folders that hold them.
    #[must_use]
    pub fn only(&self, wanted: impl Fn(&Entry) -> bool) -> Self {
        let chosen: Vec<&Entry> = self
            .manifest
            .entries
            .iter()
            .filter(|entry| wanted(entry))
            .collect();
        let mut folders: HashSet<&[u8]> = HashSet::new();
        for entry in &chosen {
            let mut path = &*entry.path;
            while let Some(at) = path.iter().rposition(|byte| *byte == b'/') {
                path = &path[..at];
                folders.insert(path);
            }
        }
        let chunks = self.chunks();
        let mut part = Self {
            about: self.about.clone(),
            summary: self.summary.clone(),
            packs: self.packs.clone(),
            frames: self.frames.clone(),
            ..Self::default()
        };
        (part.manifest.flavor, part.manifest.top) = (self.manifest.flavor, self.manifest.top);
        let files: HashMap<&[u8], &Entry> = match self.manifest.flavor {
            Flavor::Code => HashMap::new(),
            Flavor::Workspace => self
                .manifest
                .entries
                .iter()
                .map(|entry| (&*entry.path, entry))
                .collect(),
        };
        // The first wanted name of a file with hard links becomes the file.
        let mut first: HashMap<&[u8], Box<[u8]>> = HashMap::new();
        let mut seen = HashSet::new();
        for entry in &self.manifest.entries {
            let leads_to_one = entry.kind == Kind::Folder && folders.contains(&*entry.path);
            if !wanted(entry) && !leads_to_one {
                continue;
            }
            let mut entry = entry.clone();
            if let Kind::Same(name) = &entry.kind {
                if let Some(known) = first.get(&**name) {
                    entry.kind = Kind::Same(known.clone());
                } else if let Some((path, file)) = files.get_key_value(&**name) {
                    first.insert(path, entry.path.clone());
                    entry.kind = file.kind.clone();
                }
            } else if let Some((path, _)) = files.get_key_value(&*entry.path) {
                first.insert(path, entry.path.clone());
            }
            part.places.extend(
                entry
                    .chunks()
                    .filter(|(digest, _)| seen.insert(**digest))
                    .filter_map(|(digest, _)| chunks.get(digest).map(|(place, _)| *place)),
            );
            part.manifest.entries.push(entry);
        }
        part
    }
}
