//! Credentials appear nowhere: not in messages, not in the state folder.

use super::{azure_home, configure, noise, tree, write};
use towline_testkit::real::Azurite;

#[test]
fn no_credential_is_printed_or_kept() {
    let azurite = Azurite::shared();
    let mut home = azure_home("secretly");
    let sas = azurite.sas("rwdlac", 600);
    home.set("AZ_SAS", &sas);
    let account = azurite.first();
    configure(
        &home,
        &format!(
            "  az: {{kind: azure_blob, account: {}, container: secretly, endpoint: '{}', \
                credential: {{sas: env:AZ_SAS}}}}\n",
            account.name, account.endpoint
        ),
    );
    write(&home, "d/x", &noise(9 << 20, 1));
    let signature = sas.split("sig=").nth(1).unwrap().to_owned();
    let mut said = String::new();
    for (words, code) in [
        (vec!["cp", "d", "az:d"], 0),
        (vec!["ls", "az:d"], 0),
        (vec!["ls", "az:none"], 122),
        (vec!["cp", "az:d", "back"], 0),
        (vec!["doctor"], 0),
        (vec!["config", "show"], 0),
        (vec!["rm", "az:d", "--yes"], 0),
        (vec!["run", "echo", "so that something is kept"], 0),
    ] {
        let output = home.tow(&words);
        assert!(
            output.code == code && !format!("{}{}", output.stdout, output.stderr).is_empty(),
            "{words:?}: {output:?}"
        );
        said += &output.stdout;
        said += &output.stderr;
    }
    assert!(!said.contains(&signature[..20]), "{said}");
    let kept = tree(&home.path("state"));
    assert!(
        kept.values()
            .any(|bytes| String::from_utf8_lossy(bytes).contains("so that something is kept")),
        "{:?}",
        kept.keys()
    );
    for (name, bytes) in kept {
        assert!(
            !bytes
                .windows(20)
                .any(|window| window == &signature.as_bytes()[..20]),
            "{name} holds the signature"
        );
    }
}

#[test]
fn a_keyring_that_is_not_there_is_said_with_what_works_instead() {
    let (mut home, _) = super::home();
    configure(
        &home,
        "  far: {kind: azure_blob, account: a, container: c, credential: {sas: \"keyring:far-store\"}}\n",
    );
    home.set("PATH", "/nowhere");
    let refused = home.tow(["ls", "far:x"]);
    assert_eq!(refused.code, 121, "{refused:?}");
    for part in [
        "`secret-tool`, is not installed",
        "libsecret-tools",
        "sas: env:FAR_STORE",
        "sas: file:PATH",
    ] {
        assert!(refused.stderr.contains(part), "`{part}`: {refused:?}");
    }
    let programs = home.path("programs");
    std::fs::create_dir_all(&programs).unwrap();
    towline_testkit::program(&programs.join("secret-tool"), "#!/bin/sh\nexit 1\n");
    home.set("PATH", &format!("{}:/usr/bin:/bin", programs.display()));
    let empty = home.tow(["ls", "far:x"]);
    assert!(
        empty.code == 121
            && empty.stderr.contains("secret-tool store --label=far-store")
            && !empty.stderr.contains("not installed"),
        "{empty:?}"
    );
    // What is imported fits the machine.
    home.write("one.json", r#"{"cluster": {"virtual_cluster": "vc"}, "storage": {"datastore_name": "research", "account_name": "acct", "container_name": "box", "sas_token": "?sv=1"}, "experiment": {"job_name": "a", "script": ["true"]}}"#);
    let imported = |home: &towline_testkit::Home| {
        home.tow(["import", "toolkit", "one.json", "--dry-run"])
            .ok()
            .stdout
    };
    assert!(
        imported(&home).contains("keyring:research"),
        "{}",
        imported(&home)
    );
    home.set("PATH", "/nowhere");
    assert!(
        imported(&home).contains("env:RESEARCH_SAS")
            && imported(&home).contains("export RESEARCH_SAS=…"),
        "{}",
        imported(&home)
    );
}
