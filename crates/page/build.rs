//! Makes the files of the page: from the folder in `TOW_UI_DIST`, else from `dist/` beside this
//! file, else by npm and Vite from `ui/`. If Node.js is missing or the page cannot be made, the
//! program is built all the same, with one plain page that says so.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::hash_map::DefaultHasher;
use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Node.js before this cannot run Vite.
const OLDEST_NODE: u32 = 20;

fn main() -> Outcome<()> {
    println!("cargo::rerun-if-env-changed=TOW_UI_DIST");
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let folder = if let Some(given) = env::var_os("TOW_UI_DIST").filter(|given| !given.is_empty()) {
        let given = PathBuf::from(given);
        if !given.join("index.html").is_file() {
            let shown = given.display();
            return Err(format!("TOW_UI_DIST: {shown} has no index.html").into());
        }
        println!("cargo::rerun-if-changed={}", given.display());
        given
    } else if here.join("dist/index.html").is_file() {
        println!("cargo::rerun-if-changed=dist");
        here.join("dist")
    } else {
        match made(&here.join("../../ui"), &out) {
            Ok(folder) => folder,
            Err(error) => {
                println!("cargo::warning=tow is built without its page: {error}");
                here.join("without-node")
            }
        }
    };
    println!("cargo::rerun-if-changed=build.rs");
    // The tests of this crate run it again.
    let script = env::current_exe()?;
    println!(
        "cargo::rustc-env=TOW_PAGE_BUILD_SCRIPT={}",
        script.display()
    );
    println!("cargo::rerun-if-changed=without-node");
    write_files(&folder, &out)
}

/// Makes the page from its source.
fn made(source: &Path, out: &Path) -> Outcome<PathBuf> {
    for name in [
        "src",
        "index.html",
        "package.json",
        "package-lock.json",
        "vite.config.js",
    ] {
        println!("cargo::rerun-if-changed={}", source.join(name).display());
    }
    if !source.join("package.json").is_file() {
        return Err("its source is not here".into());
    }
    check_node()?;
    install(source)?;
    let folder = out.join("page");
    // What an earlier build left there is not part of this page.
    let _ = fs::remove_dir_all(&folder);
    let vite = source.join("node_modules/vite/bin/vite.js");
    let mut build = Command::new("node");
    build.arg(vite).args(["build", "--logLevel", "warn"]);
    run(build
        .current_dir(source)
        .env("TOW_UI_OUT", &folder)
        .env("NODE_ENV", "production"))?;
    Ok(folder)
}

fn check_node() -> Outcome<()> {
    let output = Command::new("node").arg("--version").output();
    let output = output.map_err(|_| "Node.js is not installed")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let major = text.trim().trim_start_matches('v').split('.').next();
    let major: u32 = major.unwrap_or_default().parse().unwrap_or(0);
    if major < OLDEST_NODE {
        let found = text.trim();
        return Err(format!("Node.js {OLDEST_NODE} or newer is needed, {found} is here").into());
    }
    Ok(())
}

/// Installs Vite and its plugin beside the source, once for each lock file. Builds that run at the
/// same time wait for each other.
fn install(source: &Path) -> Outcome<()> {
    let lock_file = fs::read(source.join("package-lock.json"))?;
    let mut hash = DefaultHasher::new();
    lock_file.hash(&mut hash);
    let stamp = format!("{:016x}", hash.finish());
    let modules = source.join("node_modules");
    fs::create_dir_all(&modules)?;
    let lock = File::create(source.join(".install.lock"))?;
    lock.lock()?;
    let stamped = modules.join(".towline-stamp");
    if fs::read_to_string(&stamped).is_ok_and(|found| found == stamp) {
        return Ok(());
    }
    let words = [
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ];
    run(Command::new("npm").args(words).current_dir(source))?;
    fs::write(stamped, stamp)?;
    Ok(())
}

/// Runs a program; its output is told only if it fails.
fn run(command: &mut Command) -> Outcome<()> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{shown} cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stderr, output.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    let last: Vec<&str> = said
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = last[last.len().saturating_sub(3)..].join(" / ");
    Err(format!("{shown} failed: {last}").into())
}

/// Writes the list of files, each compressed beside it.
fn write_files(folder: &Path, out: &Path) -> Outcome<()> {
    let mut names = Vec::new();
    collect(folder, "", &mut names)?;
    names.sort();
    let packed = out.join("packed");
    let _ = fs::remove_dir_all(&packed);
    fs::create_dir_all(&packed)?;
    let mut list =
        String::from("/// The files of the page, by name.\npub static FILES: &[PageFile] = &[\n");
    for (number, name) in names.iter().enumerate() {
        let bytes = fs::read(folder.join(name))?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&bytes)?;
        fs::write(packed.join(number.to_string()), encoder.finish()?)?;
        let mut hash = DefaultHasher::new();
        bytes.hash(&mut hash);
        writeln!(
            list,
            "    PageFile {{ name: {name:?}, tag: \"\\\"{:016x}\\\"\", gzip: \
                include_bytes!(concat!(env!(\"OUT_DIR\"), \"/packed/{number}\")) }},",
            hash.finish()
        )?;
    }
    list += "];\n";
    fs::write(out.join("files.rs"), list)?;
    Ok(())
}

fn collect(folder: &Path, below: &str, names: &mut Vec<String>) -> Outcome<()> {
    for entry in fs::read_dir(folder.join(below))? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().ok_or("a name of the page is no text")?;
        let path = if below.is_empty() {
            name.to_owned()
        } else {
            format!("{below}/{name}")
        };
        if entry.file_type()?.is_dir() {
            collect(folder, &path, names)?;
        } else {
            names.push(path);
        }
    }
    Ok(())
}
