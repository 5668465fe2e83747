//! What cannot be done is said by name, with the next step and the documented code; what was there
//! stays.

use super::{azure_home, configure, home, noise, tree, write};
use std::fs;
use std::process::{Command, Stdio};
use towline_testkit::ability::not_run;
use towline_testkit::real::{Azurite, S3Server};
use towline_testkit::{Home, Output};

/// A home with `az`, good, and `poor`, the same container by a SAS with these letters that ends in
/// so many seconds.
fn poor_home(container: &str, letters: &str, seconds: i64) -> (Home, String) {
    let azurite = Azurite::shared();
    let mut home = azure_home(container);
    let account = azurite.first();
    let sas = account.container_sas(container, letters, seconds);
    home.set("POOR_SAS", &sas);
    let store = |name: &str, credential: &str| {
        format!(
            "  {name}: {{kind: azure_blob, account: {}, container: {container}, endpoint: '{}', \
                credential: {{{credential}}}}}\n",
            account.name, account.endpoint
        )
    };
    configure(
        &home,
        &(store("az", "account_key: env:AZ_KEY") + &store("poor", "sas: env:POOR_SAS")),
    );
    write(&home, "d/x", b"first");
    home.tow(["cp", "d", "az:d"]).ok();
    write(&home, "d/x", b"other");
    (home, sas)
}

#[track_caller]
fn assert_refused(output: &Output, code: i32, parts: &[&str]) {
    assert_eq!(output.code, code, "{output:?}");
    for part in parts {
        assert!(
            output.stderr.contains(part),
            "`{part}` is not in {output:?}"
        );
    }
}

#[test]
fn each_missing_letter_of_a_sas_is_named_and_nothing_changes() {
    for (letters, words, letter) in [
        ("rl", vec!["cp", "d", "poor:d"], "`w` (write)"),
        ("rw", vec!["ls", "poor:d"], "`l` (list)"),
        ("rw", vec!["cp", "poor:d", "d"], "`l` (list)"),
        ("wl", vec!["cp", "poor:d", "d"], "`r` (read)"),
        ("wl", vec!["cp", "poor:d/x", "d/x"], "`r` (read)"),
        ("rwl", vec!["rm", "poor:d/x", "--yes"], "`d` (delete)"),
        ("rwl", vec!["rm", "poor:d", "--yes"], "`d` (delete)"),
        ("rl", vec!["init", "--to", "poor"], "`c` (create)"),
        ("rw", vec!["snapshot", "ls", "--in", "poor"], "`l` (list)"),
    ] {
        let container = format!(
            "letter{}",
            words
                .join("")
                .replace(|c: char| !c.is_ascii_alphanumeric(), "")
                .to_lowercase()
                + letters
        );
        let (home, _) = poor_home(&container, letters, 600);
        let output = home.tow(&words);
        assert_refused(
            &output,
            123,
            &[
                "poor",
                &format!("its SAS lacks the permission {letter}"),
                &format!("sp={letters}"),
            ],
        );
        assert_eq!(
            Azurite::shared().client().list(&container, ""),
            [("d/x".to_owned(), 5)],
            "{words:?}"
        );
        assert_eq!(
            tree(&home.project().join("d")),
            [("x".to_owned(), b"other".to_vec())].into(),
            "{words:?}"
        );
    }
}

#[test]
fn an_expired_or_wrong_signature_is_told_apart() {
    let (mut home, sas) = poor_home("signatures", "rwdl", -3600);
    let end = sas
        .split("se=")
        .nth(1)
        .unwrap()
        .split('&')
        .next()
        .unwrap()
        .replace("%3A", ":");
    for words in [
        ["cp", "d", "poor:d"],
        ["cp", "poor:d", "d"],
        ["rm", "poor:d", "--yes"],
    ] {
        assert_refused(
            &home.tow(words),
            123,
            &["its SAS expired at", end.trim_end_matches('Z')],
        );
    }
    let good = Azurite::shared()
        .first()
        .container_sas("signatures", "rwdl", 600);
    let (head, signature) = good.split_once("sig=").unwrap();
    let turned: String = signature
        .chars()
        .map(|c| {
            if c.is_ascii_lowercase() {
                c.to_ascii_uppercase()
            } else {
                c
            }
        })
        .collect();
    home.set("POOR_SAS", &format!("{head}sig={turned}"));
    for words in [
        ["cp", "d", "poor:d"],
        ["cp", "poor:d", "d"],
        ["rm", "poor:d", "--yes"],
    ] {
        let output = home.tow(words);
        assert_refused(&output, 123, &["poor", "the SAS is not accepted"]);
        assert!(!output.stderr.contains(&turned[..12]), "{output:?}");
    }
    home.set("POOR_SAS", "sv=2022-11-02&sp=rwdl");
    assert_refused(
        &home.tow(["cp", "d", "poor:d"]),
        121,
        &["no signature", "copy the whole token"],
    );
    home.unset("POOR_SAS");
    assert_refused(&home.tow(["cp", "d", "poor:d"]), 121, &["POOR_SAS"]);
    assert_eq!(
        Azurite::shared().client().list("signatures", ""),
        [("d/x".to_owned(), 5)]
    );
    assert_eq!(
        tree(&home.project().join("d")),
        [("x".to_owned(), b"other".to_vec())].into()
    );
}

#[test]
fn what_fails_in_a_tree_tells_the_next_step() {
    for (letters, seconds, from, to, step) in [
        (
            "rl",
            600,
            "d",
            "poor:d",
            "make a SAS with `w` among its permissions",
        ),
        (
            "wl",
            600,
            "poor:d",
            "d",
            "make a SAS with `r` among its permissions",
        ),
        (
            "wl",
            600,
            "poor:d/x",
            "d/x",
            "make a SAS with `r` among its permissions",
        ),
        ("rwl", -3600, "d", "poor:d", "make a new SAS"),
    ] {
        let container = format!(
            "steps{}{seconds}",
            format!("{letters}{from}")
                .replace(|c: char| !c.is_ascii_alphanumeric(), "")
                .to_lowercase()
        );
        let (home, _) = poor_home(&container.replace('-', ""), letters, seconds);
        assert_refused(&home.tow(["cp", from, to]), 123, &[step]);
    }
    let home = azure_home("stepsfull");
    (0..30).for_each(|number| {
        drop(write(
            &home,
            &format!("many/{number}"),
            &noise(400_000, number),
        ));
    });
    home.tow(["cp", "many", "az:many"]).ok();
    let Some(full) = on_a_small_disk(&home, "$TOW cp az:many small") else {
        return;
    };
    assert_refused(
        &full,
        123,
        &[
            "no space",
            "make room; the same command goes on where it stopped",
        ],
    );
    let Some(fixed) = on_a_small_disk(&home, "mount -o remount,ro small; $TOW cp az:many small")
    else {
        return;
    };
    assert_refused(&fixed, 123, &["Read-only file system", "hint: "]);
}

#[test]
fn places_that_are_not_there_are_named_in_both_directions() {
    let mut home = azure_home("places");
    let account = Azurite::shared().first();
    let store = |name: &str, container: &str, key: &str, endpoint: &str| {
        format!(
            "  {name}: {{kind: azure_blob, account: {}, container: {container}, endpoint: \
                '{endpoint}', credential: {{account_key: env:{key}}}}}\n",
            account.name
        )
    };
    let stores = [
        store("lost", "nosuchcontainer", "AZ_KEY", &account.endpoint),
        store("closed", "places", "AZ_KEY", "http://127.0.0.1:1"),
        store("nohost", "places", "AZ_KEY", "http://no-such-host.invalid"),
        store("foreign", "places", "OTHER_KEY", &account.endpoint),
    ];
    configure(&home, &stores.concat());
    home.set("OTHER_KEY", &Azurite::shared().second().key);
    write(&home, "d/x", b"other");
    for (name, code, parts) in [
        (
            "lost",
            122,
            [
                "no container `nosuchcontainer`",
                "create it, or correct `container`",
            ],
        ),
        ("closed", 125, ["closed", "nothing listens at 127.0.0.1:1"]),
        (
            "nohost",
            125,
            ["nohost", "look at `account` and `endpoint`"],
        ),
        (
            "foreign",
            123,
            ["the account key is not accepted", "is it the key of"],
        ),
    ] {
        let place = format!("{name}:d");
        for words in [
            vec!["cp", "d", &place],
            vec!["cp", &place, "d"],
            vec!["cp", &place, "new"],
            vec!["ls", &place],
            vec!["rm", &place, "--yes"],
            vec!["init", "--to", name],
        ] {
            assert_refused(&home.tow(words), code, &parts);
        }
        assert_eq!(
            tree(&home.project()),
            [("d/x".to_owned(), b"other".to_vec())].into(),
            "{name}"
        );
    }
    assert!(Azurite::shared().client().list("places", "").is_empty());
}

#[test]
fn only_whole_names_go_from_services_too() {
    let home = azure_home("wholenames");
    let server = S3Server::start();
    let home = home
        .with("S3_ID", server.access_key())
        .with("S3_SECRET", server.secret_key());
    let account = Azurite::shared().first();
    configure(
        &home,
        &format!(
            "  az: {{kind: azure_blob, account: {}, container: wholenames, endpoint: '{}', \
                credential: {{account_key: env:AZ_KEY}}}}\n  s3: {{kind: s3, bucket: {}, endpoint: \
                    '{}', credential: {{access_key_id: env:S3_ID, secret_access_key: \
                        env:S3_SECRET}}}}\n",
            account.name,
            account.endpoint,
            server.bucket(),
            server.endpoint()
        ),
    );
    for name in [
        "coco/a",
        "coco/b/c",
        "coco2017/a",
        "coco.txt",
        "coco-x/a",
        "other/coco/x",
    ] {
        write(&home, &format!("data/{name}"), b"x");
    }
    for store in ["az", "s3"] {
        home.tow(["cp", "data", &format!("{store}:data")]).ok();
        let path = format!("{store}:data/coco");
        assert_refused(&home.tow(["rm", &path]), 123, &["2 file(s)"]);
        assert_eq!(
            home.tow(["rm", &format!("{store}:data/coc"), "--yes"]).code,
            122
        );
        home.tow(["rm", &path, "--yes"]).ok();
        let left = home
            .tow(["ls", &format!("{store}:data"), "--deep", "--json"])
            .ok()
            .json();
        let names: Vec<&str> = left["objects"]
            .as_array()
            .unwrap()
            .iter()
            .map(|object| object["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            ["coco-x/a", "coco.txt", "coco2017/a", "other/coco/x"],
            "{store}"
        );
    }
    let by_microsoft: Vec<String> = Azurite::shared()
        .client()
        .list("wholenames", "")
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        by_microsoft,
        [
            "data/coco-x/a",
            "data/coco.txt",
            "data/coco2017/a",
            "data/other/coco/x"
        ]
    );
}

/// Runs lines of a shell where mounts are its own. `$TOW` is `tow`; the folder `small` of the
/// project is a disk of 6 MiB. None where nobody may mount.
fn on_a_small_disk(home: &Home, lines: &str) -> Option<Output> {
    let command = home.command([] as [&str; 0]);
    fs::create_dir_all(home.project().join("small")).unwrap();
    let shell = |lines: &str| {
        let mut shell = Command::new("unshare");
        shell.args([
            "-m",
            "sh",
            "-c",
            &format!("mount -t tmpfs -o size=6m tmpfs small || exit 99\n{lines}"),
        ]);
        shell
            .current_dir(home.project())
            .env_clear()
            .env("TOW", home.binary())
            .stdin(Stdio::null());
        shell.envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        shell.output().unwrap()
    };
    if !shell("exit 0").status.success() {
        not_run("a full and a read-only disk: nothing can be mounted here");
        return None;
    }
    let output = shell(lines);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(Output {
        code: output.status.code().unwrap(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
        raw: output.stdout,
    })
}

/// A file of 1 GiB that takes 64 KiB fits on a disk of 6 MiB, and stays a file with a hole there.
#[test]
fn a_file_with_holes_needs_room_for_its_bytes_alone() {
    let home = Home::new(env!("CARGO_BIN_EXE_tow"));
    home.configure(&format!(
        "datastores:\n  disk: {{kind: folder, path: {}}}\nfolders:\n  data: {{datastore: disk, path: \
            data}}\n",
        home.project().join("small").display()
    ));
    let path = write(&home, "data/sparse", &noise(64 << 10, 1));
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_len(1 << 30).unwrap();
    file.sync_all().unwrap();
    let lines =
        "$TOW up data/sparse && cmp data/sparse small/data/sparse && stat -c %s small/data/sparse";
    let Some(output) = on_a_small_disk(&home, lines) else {
        return;
    };
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.ends_with("1073741824\n"), "{output:?}");
}

#[test]
fn a_disk_that_fills_up_is_said_and_the_same_command_goes_on() {
    let home = azure_home("fulldisk");
    write(&home, "one/big", &noise(20 << 20, 1));
    (0..30).for_each(|number| {
        drop(write(
            &home,
            &format!("many/{number}"),
            &noise(400_000, number),
        ));
    });
    write(&home, "many/nested/old", &noise(2 << 20, 77));
    home.tow(["cp", "one", "az:one"]).ok();
    home.tow(["cp", "many", "az:many"]).ok();
    home.tow(["cp", "many", "nas:many"]).ok();
    // Of many files this one may have come first: then it is whole. Never is it torn.
    let whole_or_old = "cmp -s small/nested/old many/nested/old && printf old || cat";
    for (from, name, old, shown) in [
        ("az:one", "one", "big", "cat"),
        ("az:many", "many", "nested/old", whole_or_old),
        ("nas:many", "many", "nested/old", whole_or_old),
    ] {
        let lines = format!(
            "mkdir -p small/nested; printf old > small/{old}
             $TOW cp {from} small; echo \"code $?\"; {shown} small/{old}; echo
             cd small; find . -type f ! -name '.*.tow-part' ! -path ./{old} | while read -r file; \
                 do cmp \"$file\" ../{name}/\"$file\" || echo wrong; done; cd ..
             mount -o remount,size=64m small
             $TOW cp {from} small || exit 1
             rmdir small/nested 2>/dev/null; diff -r {name} small && echo equal"
        );
        let Some(output) = on_a_small_disk(&home, &lines) else {
            return;
        };
        assert_refused(&output, 0, &["no space", "small"]);
        assert_eq!(
            output.stdout, "code 123\nold\nequal\n",
            "{from}: {output:?}"
        );
    }
}

#[test]
fn a_folder_that_is_read_only_is_named_and_stays() {
    let home = azure_home("readonly");
    write(&home, "d/x", b"new");
    write(&home, "d/deep/y", &noise(9 << 20, 1));
    home.tow(["cp", "d", "az:d"]).ok();
    home.tow(["cp", "d", "nas:d"]).ok();
    for from in ["az:d", "nas:d", "az:d/deep"] {
        let lines = format!(
            "printf old > small/x; mount -o remount,ro small\n$TOW cp {from} small; echo \"code \
                $?\"; cat small/x; ls -A small"
        );
        let Some(output) = on_a_small_disk(&home, &lines) else {
            return;
        };
        assert_refused(&output, 0, &["small/", "Read-only file system"]);
        assert_eq!(output.stdout, "code 123\noldx\n", "{from}: {output:?}");
    }
}

#[test]
fn a_snapshot_that_does_not_fit_leaves_nothing() {
    let (home, _) = home();
    (0..30).for_each(|number| {
        drop(write(
            &home,
            &format!("src/{number}"),
            &noise(400_000, number),
        ));
    });
    let id = home.tow(["init", "--to", "nas"]).ok().id();
    let lines =
        format!("$TOW snapshot get {id} small/back --from nas; echo \"code $?\"; ls -A small");
    let Some(output) = on_a_small_disk(&home, &lines) else {
        return;
    };
    assert_eq!(output.stdout, "code 123\n", "{output:?}");
    assert!(
        output.stderr.contains("small/back") || output.stderr.contains("free"),
        "{output:?}"
    );
}
