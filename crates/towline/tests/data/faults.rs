//! A service and a network that fail: what arrives is right, or it is said that it did not.

use super::{azure_home, azure_home_at, noise, tree, write};
use std::fs;
use towline_testkit::real::{Azurite, Fault, FaultProxy, Rule};

#[test]
fn faults_that_pass_do_no_harm() {
    let azurite = Azurite::shared();
    azurite.make_container("faults");
    for (index, fault) in [
        Fault::ResetBefore,
        Fault::ResetWithin,
        Fault::ResetAfter,
        Fault::LostAnswer,
        Fault::Answer {
            status: 500,
            retry_after_seconds: None,
        },
        Fault::Answer {
            status: 503,
            retry_after_seconds: Some(0),
        },
        Fault::Answer {
            status: 429,
            retry_after_seconds: Some(0),
        },
        Fault::Truncated,
        Fault::Shortened,
        Fault::Flipped,
    ]
    .into_iter()
    .enumerate()
    {
        let proxy = FaultProxy::before(azurite.endpoint());
        let home = azure_home_at(&proxy.account(azurite.first()), "faults");
        write(&home, "d/big", &noise(9 << 20, index as u64));
        (0..5).for_each(|number| drop(write(&home, &format!("d/{number}"), &noise(900, number))));
        let target = format!("az:{index}");
        for method in ["PUT", "GET"] {
            proxy.inject(Rule::new(fault).to(method, &format!("/{index}/")).nth(2));
        }
        home.tow(["cp", "d", &target]).ok();
        let back = home.tow(["cp", &target, "back"]);
        assert_eq!(back.code, 0, "{fault:?}: {back:?}");
        assert!(
            tree(&home.project().join("d")) == tree(&home.project().join("back")),
            "{fault:?}"
        );
        assert!(proxy.faults() > 0, "{fault:?} never happened");
    }
}

#[test]
fn a_refusal_is_not_asked_for_again() {
    let azurite = Azurite::shared();
    azurite.make_container("final");
    let proxy = FaultProxy::before(azurite.endpoint());
    let home = azure_home_at(&proxy.account(azurite.first()), "final");
    write(&home, "x", b"x");
    proxy.inject(
        Rule::new(Fault::Answer {
            status: 403,
            retry_after_seconds: None,
        })
        .to("PUT", "/x"),
    );
    assert_eq!(home.tow(["cp", "x", "az:x"]).code, 123);
    assert_eq!(proxy.count("PUT", "/x"), 1);
}

/// A service, or something before it, that says yes and does nothing: what is there is looked at
/// before it is called done.
#[test]
fn an_upload_that_was_only_said_to_be_there_is_not_called_done() {
    let azurite = Azurite::shared();
    azurite.make_container("hollow");
    let proxy = FaultProxy::before(azurite.endpoint());
    let home = azure_home_at(&proxy.account(azurite.first()), "hollow");
    let path = write(&home, "big", &noise(9 << 20, 1));
    proxy.inject(
        Rule::new(Fault::Answer {
            status: 201,
            retry_after_seconds: None,
        })
        .to("PUT", "comp=blocklist"),
    );
    let output = home.tow(["cp", "big", "az:big"]);
    assert!(
        output.code == 125 && output.stderr.contains("does not hold what was sent"),
        "{output:?}"
    );
    assert!(proxy.faults() > 0 && azurite.client().list("hollow", "").is_empty());
    proxy.heal();
    home.tow(["cp", "big", "az:big"]).ok();
    home.tow(["cp", "az:big", "back"]).ok();
    assert!(fs::read(home.project().join("back")).unwrap() == fs::read(path).unwrap());
}

#[test]
fn a_file_that_grows_while_it_is_read_is_not_called_done() {
    let azurite = Azurite::shared();
    azurite.make_container("growing");
    let proxy = FaultProxy::before(azurite.endpoint());
    let home = azure_home_at(&proxy.account(azurite.first()), "growing");
    let path = write(&home, "big", &noise(80 << 20, 1));
    // The first blocks hang until the source has changed; then all may pass.
    (1..=8).for_each(|n| {
        proxy.inject(
            Rule::new(Fault::Answer {
                status: 503,
                retry_after_seconds: Some(1),
            })
            .to("PUT", "comp=block&")
            .nth(n),
        );
    });
    let child = home.spawn(["cp", "big", "az:big"]);
    towline_testkit::until("the transfer to begin", || {
        (proxy.count("PUT", "comp=block&") > 0).then_some(())
    });
    let mut file = fs::File::options().append(true).open(&path).unwrap();
    std::io::Write::write_all(&mut file, b"more").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(123), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("changed while it was read"),
        "{output:?}"
    );
    assert!(
        Azurite::shared().client().list("growing", "").is_empty(),
        "no blob was made of it"
    );
}

#[test]
fn an_object_that_rotted_in_the_store_is_named_and_the_others_come() {
    let home = azure_home("rotten");
    (0..400).for_each(|number| {
        drop(write(
            &home,
            &format!("d/{number:02}"),
            &noise(9_000, number),
        ));
    });
    home.tow(["cp", "d", "az:d"]).ok();
    let azurite = Azurite::shared();
    let facts = azurite
        .client()
        .run(["properties", "rotten", "d/00"])
        .json();
    let marks: Vec<(String, String)> = facts["metadata"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| {
            (
                format!("x-ms-meta-{name}"),
                value.as_str().unwrap().to_owned(),
            )
        })
        .collect();
    assert!(!marks.is_empty(), "{facts}");
    let mut headers = vec![
        ("x-ms-version", "2022-11-02"),
        ("x-ms-blob-type", "BlockBlob"),
    ];
    headers.extend(
        marks
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    );
    let url = format!(
        "{}/rotten/d/00?{}",
        azurite.endpoint(),
        azurite.sas("rwdlac", 600)
    );
    assert_eq!(
        towline_testkit::real::http::request("PUT", &url, &headers, &noise(9_000, 1000))
            .unwrap()
            .status,
        201
    );
    write(&home, "back/00", b"what was here");
    let output = home.tow(["cp", "az:d", "back"]);
    assert!([123, 125].contains(&output.code), "{output:?}");
    assert!(
        output.stderr.contains("d/00") || output.stderr.contains("00:"),
        "{output:?}"
    );
    let mut expected = tree(&home.project().join("d"));
    expected.insert("00".to_owned(), b"what was here".to_vec());
    let (names, wanted) = (tree(&home.project().join("back")), expected);
    assert!(
        names == wanted,
        "{} of {} came: {output:?}",
        names.len(),
        wanted.len()
    );
}
