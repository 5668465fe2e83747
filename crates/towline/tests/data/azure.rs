//! Against Microsoft's blob service, judged by Microsoft's client.

use super::{azure_home, azure_home_at, noise, only, tree, write};
use std::fs;
use towline_testkit::real::{Azurite, FaultProxy};

/// Names that every part of an address treats differently.
const ODD: [&str; 9] = [
    "a b/x y",
    "100%",
    "a#b",
    "q?b=c",
    "p+q",
    "enc%2Fb",
    "ü日本🚀",
    "quo'te\"",
    "a&b;c=d",
];

#[test]
fn odd_names_and_sizes_survive_both_ways() {
    let home = azure_home("odd");
    for (index, name) in ODD.iter().enumerate() {
        write(
            &home,
            &format!("d/{name}"),
            &noise(index * 1000, index as u64),
        );
    }
    for size in [(4 << 20) - 1, 4 << 20, (4 << 20) + 1, 9 << 20] {
        write(&home, &format!("d/size-{size}"), &noise(size, size as u64));
    }
    home.tow(["cp", "d", "az:odd"]).ok();
    let client = Azurite::shared().client();
    let listed = client.list("odd", "odd/");
    let here = tree(&home.project().join("d"));
    assert_eq!(listed.len(), here.len());
    for (name, bytes) in &here {
        assert!(
            listed.contains(&(format!("odd/{name}"), bytes.len() as u64)),
            "{name} is not in {listed:?}"
        );
    }
    let back = home.project().join("by-microsoft");
    client
        .run([
            "get".as_ref(),
            "odd".as_ref(),
            "odd/size-9437184".as_ref(),
            back.as_os_str(),
        ])
        .json();
    assert!(fs::read(&back).unwrap() == here["size-9437184"]);
    home.tow(["cp", "az:odd", "back"]).ok();
    assert!(tree(&home.project().join("back")) == here);
    let again = home.tow(["cp", "d", "az:odd", "--json"]).ok().json();
    assert_eq!(only(&again)["sent"], 0, "{again}");
    let checked = home
        .tow(["cp", "d", "az:odd", "--checksum", "--json"])
        .ok()
        .json();
    assert_eq!(
        (&only(&checked)["sent"], &only(&checked)["equal_by_hash"]),
        (&0.into(), &here.len().into()),
        "{checked}"
    );
}

#[test]
fn what_microsofts_client_wrote_is_fetched_and_verified() {
    let home = azure_home("theirs");
    let file = write(&home, "theirs", &noise(10 << 20, 3));
    Azurite::shared()
        .client()
        .run([
            "put".as_ref(),
            "theirs".as_ref(),
            "x/theirs".as_ref(),
            file.as_os_str(),
        ])
        .json();
    home.tow(["cp", "az:x", "back"]).ok();
    assert!(fs::read(home.project().join("back/theirs")).unwrap() == fs::read(&file).unwrap());
    let again = home.tow(["cp", "az:x", "back", "--json"]).ok().json();
    assert_eq!(only(&again)["equal_by_time"], 1, "{again}");
}

#[test]
fn small_files_cost_one_request_each() {
    let azurite = Azurite::shared();
    azurite.make_container("requests");
    let proxy = FaultProxy::before(azurite.endpoint());
    let home = azure_home_at(&proxy.account(azurite.first()), "requests");
    for index in 0..30 {
        write(&home, &format!("d/{index}"), &noise(500, index));
    }
    home.tow(["cp", "d", "az:d"]).ok();
    let counts = proxy.counts();
    assert_eq!(counts.get("PUT blob"), Some(&30), "{counts:?}");
    assert_eq!(
        counts.values().sum::<usize>(),
        31,
        "one listing besides: {counts:?}"
    );
}

#[test]
fn refusals_say_why() {
    let azurite = Azurite::shared();
    azurite.make_container("refusals");
    let account = azurite.first();
    let mut home = azure_home("refusals2");
    let store = |name: &str, container: &str, credential: &str, endpoint: &str| {
        format!(
            "  {name}: {{kind: azure_blob, account: {}, container: {container}, endpoint: \
                '{endpoint}', credential: {{{credential}}}}}\n",
            account.name
        )
    };
    let lines = [
        store("expired", "refusals", "sas: env:EXPIRED", &account.endpoint),
        store("reader", "refusals", "sas: env:READER", &account.endpoint),
        store(
            "wrong",
            "refusals",
            "account_key: env:WRONG",
            &account.endpoint,
        ),
        store(
            "nowhere",
            "nosuchcontainer",
            "account_key: env:AZ_KEY",
            &account.endpoint,
        ),
        store(
            "closed",
            "refusals",
            "account_key: env:AZ_KEY",
            "http://127.0.0.1:1",
        ),
        store(
            "literal",
            "refusals",
            "sas: sv=1&sig=canary",
            &account.endpoint,
        ),
    ];
    super::configure(&home, &lines.concat());
    home.set("EXPIRED", &azurite.sas("rwdlac", -100));
    home.set(
        "READER",
        &format!("?{} ", account.container_sas("refusals", "rl", 600)),
    );
    home.set("WRONG", "d3Jvbmcga2V5");
    write(&home, "x", b"x");
    for (target, code, part) in [
        ("expired:x", 123, "its SAS expired at 20"),
        ("reader:x", 123, "lacks the permission `w` (write)"),
        ("wrong:x", 123, "account key is not accepted"),
        ("nowhere:x", 122, "no container `nosuchcontainer`"),
        ("closed:x", 125, "nothing listens at 127.0.0.1:1"),
        ("literal:x", 121, "must be a reference"),
    ] {
        let output = home.tow(["cp", "x", target]);
        assert_eq!(output.code, code, "{target}: {output:?}");
        assert!(output.stderr.contains(part), "{target}: {output:?}");
        assert!(
            !output.stderr.contains("sig=") && !output.stderr.contains("canary"),
            "{output:?}"
        );
    }
    home.tow(["ls", "reader:"]).ok();
}

#[test]
fn copies_between_accounts_stay_inside_the_service() {
    let azurite = Azurite::shared();
    azurite.make_container_of(azurite.second(), "across2");
    let mut home = azure_home("across");
    let (one, two) = (azurite.first(), azurite.second());
    home.set("AZ2_KEY", &two.key);
    super::configure(
        &home,
        &format!(
            "  az: {{kind: azure_blob, account: {}, container: across, endpoint: '{}', credential: \
                {{account_key: env:AZ_KEY}}}}\n  az2: {{kind: azure_blob, account: {}, container: \
                    across2, endpoint: '{}', credential: {{account_key: env:AZ2_KEY}}}}\n",
            one.name, one.endpoint, two.name, two.endpoint
        ),
    );
    write(&home, "d/big", &noise(9 << 20, 1));
    write(&home, "d/a b#c", b"odd");
    home.tow(["cp", "d", "az:d"]).ok();
    let copied = home.tow(["cp", "az:d", "az2:copy", "--json"]).ok().json();
    assert_eq!(
        (&only(&copied)["sent"], &only(&copied)["copied_inside"]),
        (&2.into(), &2.into()),
        "{copied}"
    );
    home.tow(["cp", "az2:copy", "back"]).ok();
    assert!(tree(&home.project().join("d")) == tree(&home.project().join("back")));
    assert_eq!(
        only(&home.tow(["cp", "az:d", "az2:copy", "--json"]).ok().json())["sent"],
        0
    );
}

#[test]
fn an_address_lets_anybody_read() {
    let home = azure_home("address");
    write(&home, "a b?c", b"to be read");
    home.tow(["cp", "a b?c", "az:d/a b?c"]).ok();
    let url = home.tow(["url", "az:d/a b?c", "--for", "1h"]).ok().stdout;
    let answer = towline_testkit::real::http::request("GET", url.trim(), &[], b"").unwrap();
    assert_eq!(
        (answer.status, answer.body.as_slice()),
        (200, b"to be read".as_slice())
    );
}
