//! `tow url`: an address for one file, and no more than that.

use super::{azure_home, configure, write};
use towline_testkit::Home;
use towline_testkit::real::{Azurite, http};

/// The container by key, by a SAS, and by both.
fn stores(container: &str) -> Home {
    let mut home = azure_home(container);
    let account = Azurite::shared().first();
    home.set(
        "ALL_SAS",
        &account.container_sas(container, "racwdl", 3_600),
    );
    let store = |name: &str, credential: &str| {
        format!(
            "  {name}: {{kind: azure_blob, account: {}, container: {container}, endpoint: '{}', \
                credential: {{{credential}}}}}\n",
            account.name, account.endpoint
        )
    };
    configure(
        &home,
        &(store("key", "account_key: env:AZ_KEY")
            + &store("sas", "sas: env:ALL_SAS")
            + &store("both", "sas: env:ALL_SAS, account_key: env:AZ_KEY")),
    );
    write(&home, "x", b"content");
    home.tow(["cp", "x", "key:x"]).ok();
    home.tow(["cp", "x", "key:other"]).ok();
    home
}

#[test]
fn an_address_reads_one_file_for_the_time_that_was_asked() {
    let home = stores("oneurl");
    for store in ["key", "both"] {
        let url = home.tow(["url", &format!("{store}:x"), "--for", "2h"]).ok();
        assert!(
            url.stdout.contains("sp=r&") && url.stdout.contains("sr=b&"),
            "{store}: {url:?}"
        );
        let address = url.stdout.trim();
        assert_eq!(
            http::request("GET", address, &[], b"").unwrap().body,
            b"content",
            "{store}"
        );
        assert_eq!(
            http::request("DELETE", address, &[], b"").unwrap().status,
            403,
            "{store}"
        );
        assert_eq!(
            http::request(
                "GET",
                &address.replace("/oneurl/x?", "/oneurl/other?"),
                &[],
                b""
            )
            .unwrap()
            .status,
            403,
            "{store}"
        );
    }
}

#[test]
fn a_sas_is_handed_out_only_when_that_is_what_was_asked() {
    let home = stores("sasurl");
    let refused = home.tow(["url", "sas:x"]);
    assert_eq!(
        (refused.code, refused.stdout.as_str()),
        (123, ""),
        "{refused:?}"
    );
    for part in [
        "account_key",
        "--with-sas",
        "delete",
        "whole container `sasurl`",
    ] {
        assert!(refused.stderr.contains(part), "`{part}`: {refused:?}");
    }
    assert!(!refused.stderr.contains("sig="), "{refused:?}");
    let given = home.tow(["url", "sas:x", "--with-sas"]).ok();
    assert!(
        given.stdout.contains("sp=racwdl")
            && given
                .stderr
                .contains("can read, add, create, write, delete, list in the whole container"),
        "{given:?}"
    );
    assert_eq!(
        http::request("GET", given.stdout.trim(), &[], b"")
            .unwrap()
            .body,
        b"content"
    );
    assert_eq!(
        home.tow(["url", "sas:x", "--with-sas", "--for", "2h"]).code,
        120
    );
    assert_eq!(home.tow(["url", "key:x", "--with-sas"]).code, 123);
}

#[test]
fn copies_between_stores_go_by_the_sas() {
    let home = stores("sascopy");
    home.tow(["cp", "sas:x", "sas:again"]).ok();
    home.tow(["cp", "both:x", "key:again2"]).ok();
    assert_eq!(Azurite::shared().client().list("sascopy", "again").len(), 2);
}
