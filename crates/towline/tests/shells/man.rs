//! `tow man`: manual pages that `man` can show.

use super::home;
use std::fs;
use std::path::Path;
use std::process::Command;
use towline_testkit::{Home, Output};

fn shown(page: &Path) -> Output {
    Command::new("man")
        .args(["--warnings", "--local-file"])
        .arg(page)
        .env("MANWIDTH", "120")
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap()
        .into()
}

/// All verbs, those of verbs too, by the names of their pages.
fn names(home: &Home) -> Vec<String> {
    let first = home.tow(["--help"]).ok().stdout;
    let verbs = first
        .lines()
        .take_while(|line| *line != "Options:")
        .filter(|line| line.starts_with("  "))
        .map(|line| line.split_whitespace().next().unwrap());
    let mut names = vec!["tow".to_owned()];
    for verb in verbs {
        names.push(format!("tow-{verb}"));
        let help = home.tow([verb, "--help"]).ok().stdout;
        let inner = help
            .lines()
            .skip_while(|line| *line != "Commands:")
            .skip(1)
            .take_while(|line| !line.is_empty())
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        for line in inner {
            let inner = line.split_whitespace().next().unwrap();
            names.push(format!("tow-{verb}-{inner}"));
        }
    }
    names.sort();
    names
}

#[test]
fn every_verb_has_a_page_that_man_shows() {
    let home = home();
    let folder = home.path("share/man/man1");
    let output = home.tow(["man", folder.to_str().unwrap()]).ok();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", ""));
    let mut made: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .inspect(|page| assert_eq!(page.extension().unwrap(), "1"))
        .map(|page| page.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    made.sort();
    assert_eq!(made, names(&home));
    for name in &made {
        let page = shown(&folder.join(format!("{name}.1")));
        assert_eq!((page.code, page.stderr.as_str()), (0, ""), "{name}");
        assert!(page.stdout.contains(&name.to_uppercase()), "{name}");
    }
    let first = shown(&folder.join("tow.1")).stdout;
    for text in [
        "RUN JOBS",
        "tow-submit(1)",
        "HOUSE-KEEPING",
        "tow run echo hello",
    ] {
        assert!(first.contains(text), "{text}: {first}");
    }
    assert!(!first.contains("tow-qf"), "old names are not listed");
    let submit = shown(&folder.join("tow-submit.1")).stdout;
    for text in [
        "--hold-on-failure",
        "       tow submit 'make && ./bench | tee out.txt'       one word",
    ] {
        assert!(submit.contains(text), "{text}: {submit}");
    }
    assert!(!home.path("state/towline").exists());
}

#[test]
fn a_folder_that_cannot_be_made_is_refused() {
    let home = home();
    let file = home.write("file", "");
    let output = home.tow(["man", file.to_str().unwrap()]);
    assert_eq!((output.code, output.stdout.as_str()), (123, ""));
    assert!(
        output.stderr.contains("file cannot be written"),
        "{}",
        output.stderr
    );
}
