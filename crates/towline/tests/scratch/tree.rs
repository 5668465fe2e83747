//! A tree with everything that file systems allow, that changes from round to round by a seed, and
//! all that is to be seen of it.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use towline_testkit::campaign::{Seeded, noise};

/// What is to be seen of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    mode: u32,
    /// In nanoseconds.
    modified: i128,
    size: u64,
    /// Of a file the hash of its bytes, of a link where it leads.
    content: Vec<u8>,
    has_holes: bool,
    /// The first name of the same file.
    same: Option<Vec<u8>>,
}

pub(crate) type Look = BTreeMap<Vec<u8>, Seen>;

/// Everything below a folder, and the folder itself under the empty name.
pub(crate) fn look(root: &Path) -> Look {
    let mut seen = Look::new();
    let mut names: HashMap<(u64, u64), Vec<Vec<u8>>> = HashMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(path) = left.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let name = path
            .strip_prefix(root)
            .unwrap()
            .as_os_str()
            .as_bytes()
            .to_vec();
        let content = if meta.is_symlink() {
            fs::read_link(&path).unwrap().into_os_string().into_vec()
        } else if meta.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            Vec::new()
        } else {
            names
                .entry((meta.dev(), meta.ino()))
                .or_default()
                .push(name.clone());
            towline_snapshot::digest::Digest::of(&fs::read(&path).unwrap())
                .0
                .to_vec()
        };
        let modified = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
        // What lies in a folder's own file is the file system's.
        let size = if meta.is_dir() { 0 } else { meta.len() };
        let has_holes = meta.is_file() && meta.blocks() * 512 + (64 << 10) < meta.len();
        seen.insert(
            name,
            Seen {
                mode: meta.permissions().mode(),
                modified,
                size,
                content,
                has_holes,
                same: None,
            },
        );
    }
    for mut twins in names.into_values().filter(|names| names.len() > 1) {
        twins.sort();
        for name in &twins {
            seen.get_mut(name).unwrap().same = Some(twins[0].clone());
        }
    }
    seen
}

/// How two trees differ, in words; nothing where they do not.
pub(crate) fn differences(wanted: &Look, found: &Look) -> Vec<String> {
    let names = wanted
        .keys()
        .chain(found.keys().filter(|name| !wanted.contains_key(*name)));
    let differing = names.filter(|name| wanted.get(*name) != found.get(*name));
    differing
        .take(5)
        .map(|name| {
            format!(
                "{}: {:?} became {:?}",
                String::from_utf8_lossy(name),
                wanted.get(name),
                found.get(name)
            )
        })
        .collect()
}

const ODD: [&[u8]; 9] = [
    b"a b",
    b"quo'te\"",
    b"new\nline",
    b"not\xffutf8",
    b"-rf",
    b"*?[a]",
    "ü日本🚀".as_bytes(),
    b"back\\slash",
    b".hidden",
];

/// A tree that changes.
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
    random: Seeded,
    /// Who it belongs to, where that is somebody else.
    owner: Option<u32>,
    rounds: u32,
}

impl Tree {
    pub(crate) fn new(root: PathBuf, seed: u64, owner: Option<u32>) -> Self {
        fs::create_dir_all(&root).unwrap();
        let mut tree = Self {
            root,
            random: Seeded(seed),
            owner,
            rounds: 0,
        };
        tree.begin();
        tree.settle();
        tree
    }

    fn at(&self, name: impl AsRef<[u8]>) -> PathBuf {
        self.root.join(OsStr::from_bytes(name.as_ref()))
    }

    fn begin(&mut self) {
        for folder in 0..12 {
            fs::create_dir_all(self.at(format!("src/{folder}/deep/er"))).unwrap();
            for file in 0..20 {
                let length = self.random.next(20_000);
                fs::write(
                    self.at(format!("src/{folder}/deep/{file}.py")),
                    "x = 1\n".repeat(length / 6),
                )
                .unwrap();
            }
        }
        fs::create_dir(self.at("odd")).unwrap();
        for (number, name) in ODD.iter().enumerate() {
            fs::write(
                self.at([b"odd/".as_slice(), name].concat()),
                noise(100, number as u64),
            )
            .unwrap();
        }
        fs::write(self.at(format!("odd/{}", "n".repeat(255))), "a long name").unwrap();
        let deep = self.at(format!("deep/{}", ["d".repeat(100).as_str(); 20].join("/")));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("bottom"), "far down").unwrap();
        fs::write(self.at("large"), noise(24 << 20, 1)).unwrap();
        let sparse = fs::File::create(self.at("sparse")).unwrap();
        sparse.set_len(48 << 20).unwrap();
        sparse.write_all_at(b"in the middle", 20 << 20).unwrap();
        fs::write(self.at("empty"), "").unwrap();
        fs::create_dir_all(self.at("empty folder/and another")).unwrap();
        fs::create_dir_all(self.at(".git/objects")).unwrap();
        fs::write(self.at(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        for (name, target) in [
            ("to-file", "large"),
            ("dangling", "no/where"),
            ("absolute", "/etc/hostname"),
            ("loop", "loop"),
            ("up", "../.."),
        ] {
            symlink(target, self.at(name)).unwrap();
        }
        fs::hard_link(self.at("large"), self.at("src/large-too")).unwrap();
        fs::hard_link(self.at("src/0/deep/0.py"), self.at("odd/same")).unwrap();
        for (name, mode) in [
            ("src", 0o2775),
            ("odd", 0o750),
            ("empty", 0o400),
            ("src/1/deep/1.py", 0o755),
            ("empty folder", 0o1777),
            ("sparse", 0o640),
        ] {
            fs::set_permissions(self.at(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let old = UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
        fs::File::open(self.at("src/2/deep/2.py"))
            .unwrap()
            .set_modified(old)
            .unwrap();
        fs::File::open(self.at("empty folder"))
            .unwrap()
            .set_modified(old)
            .unwrap();
    }

    /// Changes some of it, and never nothing.
    pub(crate) fn change(&mut self) {
        self.rounds += 1;
        let round = self.rounds;
        fs::write(self.at("round"), format!("{round}\n")).unwrap();
        let folder = self.random.next(12);
        for _ in 0..8 {
            match self.random.next(9) {
                0 => {
                    let length = 1 << (10 + self.random.next(13));
                    let (seed, at) = (
                        self.random.next(1 << 30) as u64,
                        self.random.next(16 << 20) as u64,
                    );
                    fs::OpenOptions::new()
                        .write(true)
                        .open(self.at("large"))
                        .unwrap()
                        .write_all_at(&noise(length, seed), at)
                        .unwrap();
                }
                1 => {
                    let length = self.random.next(3 << 20);
                    fs::write(
                        self.at(format!("src/{folder}/new-{round}")),
                        noise(length, u64::from(round)),
                    )
                    .unwrap();
                }
                2 => {
                    let _ = fs::remove_file(
                        self.at(format!("src/{folder}/new-{}", round.saturating_sub(3))),
                    );
                }
                3 => {
                    let _ = fs::rename(
                        self.at(format!("src/{folder}/deep/3.py")),
                        self.at(format!("odd/moved-{round}")),
                    );
                }
                4 => fs::set_permissions(
                    self.at("sparse"),
                    fs::Permissions::from_mode(0o600 + self.random.small(64)),
                )
                .unwrap(),
                5 => {
                    let when = UNIX_EPOCH
                        + Duration::new(
                            1_600_000_000 + u64::from(round),
                            self.random.small(1_000_000_000),
                        );
                    fs::File::open(self.at(".git/HEAD"))
                        .unwrap()
                        .set_modified(when)
                        .unwrap();
                }
                6 => {
                    let _ = fs::hard_link(
                        self.at("odd/a b"),
                        self.at(format!("src/{folder}/twin-{round}")),
                    );
                }
                7 => {
                    let file = fs::OpenOptions::new()
                        .write(true)
                        .open(self.at("sparse"))
                        .unwrap();
                    file.write_all_at(
                        &noise(5000, u64::from(round)),
                        self.random.next(40 << 20) as u64,
                    )
                    .unwrap();
                }
                _ => {
                    let mut file = fs::OpenOptions::new()
                        .append(true)
                        .open(self.at(".git/HEAD"))
                        .unwrap();
                    writeln!(file, "{round}").unwrap();
                }
            }
        }
        self.settle();
    }

    /// All of it belongs to its owner, and can be read by them.
    fn settle(&self) {
        let Some(owner) = self.owner else { return };
        let mut left = vec![self.root.clone()];
        while let Some(path) = left.pop() {
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.uid() != owner {
                std::os::unix::fs::lchown(&path, Some(owner), Some(owner)).unwrap();
                // A change of owner takes the bits for the group's rights away.
                if meta.is_dir() {
                    fs::set_permissions(&path, meta.permissions()).unwrap();
                }
            }
            if meta.is_dir() {
                left.extend(
                    fs::read_dir(&path)
                        .unwrap()
                        .map(|entry| entry.unwrap().path()),
                );
            }
        }
    }

    pub(crate) fn look(&self) -> Look {
        look(&self.root)
    }
}
