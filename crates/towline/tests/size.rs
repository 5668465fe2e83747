//! Memory stays small however many files there are and however large they are.
//!
//! The peak is the kernel's own account of that one process: Python's `wait4` gives `ru_maxrss` of
//! the child it started, and of nothing else. It counts from the fork on, so that no peak is below
//! Python's own 11 MiB. A tenth of the files here, all with `TOW_SOAK=1`.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)]

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;
use towline_testkit::Home;
use towline_testkit::campaign::is_soak;
use towline_testkit::real::{Azurite, python};

const FEW: u64 = 300;
const LARGE: u64 = 10 << 30;

/// Starts a program and reports what it printed, how it ended and the most memory it ever held.
const WATCH: &str = r#"
import json, os, sys, tempfile
folder, count, *rest = sys.argv[1:]
variables, words = rest[:int(count)], rest[int(count):]
os.chdir(folder)
said = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]
actions = [(os.POSIX_SPAWN_DUP2, file.fileno(), number) for number, file in enumerate(said, 1)]
pid = os.posix_spawn(words[0], words, dict(pair.split("=", 1) for pair in variables), file_actions=actions)
_, status, usage = os.wait4(pid, 0)
def text(file):
    file.seek(0)
    return file.read().decode()
json.dump({"code": os.waitstatus_to_exitcode(status), "peak": usage.ru_maxrss // 1024, "stdout": text(said[0]), "stderr": text(said[1])}, sys.stdout)
"#;

/// Runs `tow`, which must do what it is asked, and gives its answer and its peak in MiB.
#[track_caller]
fn peak(home: &Home, words: &[&str]) -> (serde_json::Value, u64) {
    let command: Command = home.command([words, &["--json"]].concat());
    let pairs: Vec<OsString> = command
        .get_envs()
        .map(|(name, value)| {
            [name, "=".as_ref(), value.unwrap_or_default()]
                .into_iter()
                .collect()
        })
        .collect();
    let mut given: Vec<OsString> = vec![
        command.get_current_dir().unwrap().into(),
        pairs.len().to_string().into(),
    ];
    given.extend(pairs);
    given.push(command.get_program().into());
    given.extend(command.get_args().map(Into::into));
    let ended = python(WATCH, given).json();
    assert_eq!(ended["code"], 0, "{words:?}: {ended}");
    (
        serde_json::from_str(ended["stdout"].as_str().unwrap()).unwrap(),
        ended["peak"].as_u64().unwrap(),
    )
}

fn home() -> Home {
    let home = Home::new(env!("CARGO_BIN_EXE_tow"));
    fs::create_dir(home.path("nas")).unwrap();
    home.configure(&format!(
        "datastores:\n  nas: {{kind: folder, path: {}}}\nfolders:\n  data: {{datastore: nas, path: \
            data}}\n  code: {{datastore: nas, path: code}}\n",
        home.path("nas").display()
    ));
    home
}

/// Small files of which no two are alike, a hundred to a folder.
fn many_files(root: &Path, count: usize) {
    for number in 0..count {
        if number % 100 == 0 {
            fs::create_dir_all(root.join(format!("d{}/{}", number / 10_000, number / 100)))
                .unwrap();
        }
        let text = format!("{number} ").repeat(1 + number % 90);
        fs::write(
            root.join(format!(
                "d{}/{}/{number}.txt",
                number / 10_000,
                number / 100
            )),
            text,
        )
        .unwrap();
    }
}

/// 10 GiB of which a few MiB are there: at the begin, across the middle and at the end.
fn sparse_file(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = File::create(path).unwrap();
    file.set_len(LARGE).unwrap();
    for at in DATA_AT {
        let bytes: Vec<u8> = (0..1_500_000u64)
            .map(|number| u8::try_from((number * number / 7 + at) % 251).unwrap())
            .collect();
        file.write_all_at(&bytes, at).unwrap();
    }
}
const DATA_AT: [u64; 3] = [0, (5 << 30) - 777, LARGE - 1_500_000];

/// The same length, the same bytes where there are some and around, and as little on disk.
fn assert_same_sparse(one: &Path, other: &Path) {
    let (this, that) = (File::open(one).unwrap(), File::open(other).unwrap());
    assert_eq!(that.metadata().unwrap().len(), LARGE);
    assert!(
        that.metadata().unwrap().blocks() * 512 < 64 << 20,
        "holes stay holes"
    );
    for at in DATA_AT {
        let from = at.saturating_sub(1 << 20);
        let mut bytes = [vec![0; 4 << 20], vec![1; 4 << 20]];
        let read = [(&this, 0), (&that, 1)].map(|(file, number)| {
            let many = usize::try_from((LARGE - from).min(4 << 20)).unwrap();
            file.read_exact_at(&mut bytes[number][..many], from)
                .unwrap();
            many
        });
        assert!(bytes[0][..read[0]] == bytes[1][..read[1]], "around {at}");
    }
}

/// Every file and byte, by a program that nobody here wrote.
fn assert_same_tree(one: &Path, other: &Path) {
    let output = Command::new("diff")
        .args(["-r", "-q", "--no-dereference"])
        .args([one, other])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .take(5)
            .collect::<Vec<_>>()
            .join("\n")
    );
}

#[test]
fn many_files_by_path_and_as_a_snapshot() {
    let count = if is_soak() { 100_000 } else { 10_000 };
    let home = home();
    many_files(&home.project().join("data"), count);
    let (up, up_peak) = peak(&home, &["up", "data"]);
    assert_eq!(up["transfers"][0]["sent"], count);
    let (again, again_peak) = peak(&home, &["up", "data"]);
    assert_eq!(again["transfers"][0]["equal_by_time"], count);
    fs::rename(home.project().join("data"), home.project().join("tree")).unwrap();
    let (_, down_peak) = peak(&home, &["down", "data"]);
    assert_same_tree(&home.project().join("tree"), &home.project().join("data"));
    fs::remove_dir_all(home.project().join("data")).unwrap();

    let (made, init_peak) = peak(&home, &["init", "--any-size"]);
    assert_eq!(made["files"], count);
    let back = home.path("back");
    let (_, get_peak) = peak(
        &home,
        &[
            "snapshot",
            "get",
            made["id"].as_str().unwrap(),
            back.to_str().unwrap(),
        ],
    );
    assert_same_tree(&home.project(), &back);
    let (_, check_peak) = peak(&home, &["snapshot", "check"]);
    println!(
        "size: {count} files: up {up_peak} MiB, again {again_peak} MiB, down {down_peak} MiB, \
            snapshot {init_peak} MiB, laid out {get_peak} MiB, checked {check_peak} MiB at most"
    );
    assert!(
        [
            up_peak, again_peak, down_peak, init_peak, get_peak, check_peak
        ]
        .iter()
        .all(|peak| *peak < FEW)
    );
}

#[test]
fn a_file_of_10_gib_with_holes() {
    let home = home();
    let path = home.project().join("data/sparse");
    sparse_file(&path);
    let (_, up_peak) = peak(&home, &["up", "data/sparse"]);
    assert_same_sparse(&path, &home.path("nas/data/sparse"));
    fs::create_dir(home.project().join("tree")).unwrap();
    fs::rename(&path, home.project().join("tree/sparse")).unwrap();
    let (made, init_peak) = peak(&home, &["init", "--any-size"]);
    assert_eq!(made["bytes"], LARGE);
    let back = home.path("back");
    let (_, get_peak) = peak(
        &home,
        &[
            "snapshot",
            "get",
            made["id"].as_str().unwrap(),
            back.to_str().unwrap(),
        ],
    );
    assert_same_sparse(
        &home.project().join("tree/sparse"),
        &back.join("tree/sparse"),
    );
    println!(
        "size: 10 GiB with holes: up {up_peak} MiB, snapshot {init_peak} MiB, laid out {get_peak} \
            MiB at most"
    );
    assert!(
        [up_peak, init_peak, get_peak]
            .iter()
            .all(|peak| *peak < FEW)
    );
}

#[test]
fn a_large_file_to_and_from_a_service() {
    let mebibytes = if is_soak() { 1024 } else { 128 };
    let folder = tempfile::tempdir().unwrap();
    let azurite = Azurite::start_in(folder.path());
    azurite.make_container("size");
    let home = Home::new(env!("CARGO_BIN_EXE_tow")).with("AZ_KEY", azurite.key());
    home.configure(&format!(
        "datastores:\n  az: {{kind: azure_blob, account: {}, container: size, endpoint: '{}', \
            credential: {{account_key: env:AZ_KEY}}}}\nfolders:\n  data: {{datastore: az, path: \
                data}}\n",
        azurite.account(),
        azurite.endpoint()
    ));
    fs::create_dir(home.project().join("data")).unwrap();
    let path = home.project().join("data/big");
    let made = Command::new("dd")
        .args([
            "if=/dev/urandom",
            "bs=1M",
            &format!("count={mebibytes}"),
            "status=none",
        ])
        .arg(format!("of={}", path.display()))
        .status();
    assert!(made.unwrap().success());
    let (_, up_peak) = peak(&home, &["up", "data/big"]);
    let before = home.project().join("before");
    fs::rename(&path, &before).unwrap();
    let (_, down_peak) = peak(&home, &["down", "data/big"]);
    assert!(
        Command::new("cmp")
            .args([&before, &path])
            .status()
            .unwrap()
            .success()
    );
    println!("size: {mebibytes} MiB to a service: up {up_peak} MiB, down {down_peak} MiB at most");
    assert!(
        up_peak < 64 && down_peak < 96,
        "up {up_peak} MiB, down {down_peak} MiB"
    );
}
