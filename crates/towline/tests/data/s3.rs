//! Against an S3 server that nobody here wrote, judged by Amazon's client.

use super::{noise, noted, only, tree, write};
use std::fs;
use towline_testkit::real::{Fault, FaultProxy, Rule, S3Server};
use towline_testkit::{Home, until};

fn s3_home(server: &S3Server, endpoint: &str) -> Home {
    let home = Home::new(env!("CARGO_BIN_EXE_tow"))
        .with("S3_ID", server.access_key())
        .with("S3_SECRET", server.secret_key());
    fs::create_dir(home.path("nas")).unwrap();
    super::configure(
        &home,
        &format!(
            "  s3: {{kind: s3, bucket: {}, endpoint: '{endpoint}', credential: {{access_key_id: \
                env:S3_ID, secret_access_key: env:S3_SECRET}}}}\n",
            server.bucket()
        ),
    );
    home
}

#[test]
fn a_tree_goes_there_and_back() {
    let server = S3Server::start();
    let home = s3_home(&server, &server.endpoint());
    for name in ["a b/x y", "100%", "a#b", "q?b=c", "p+q", "ü日本🚀", "empty"] {
        write(
            &home,
            &format!("d/{name}"),
            if name == "empty" {
                b""
            } else {
                name.as_bytes()
            },
        );
    }
    write(&home, "d/big", &noise(21 << 20, 4));
    home.tow(["cp", "d", "s3:x"]).ok();
    let here = tree(&home.project().join("d"));
    let mut listed: Vec<String> = server
        .client()
        .list(server.bucket(), "x/")
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    listed.sort();
    assert_eq!(
        listed,
        here.keys()
            .map(|name| format!("x/{name}"))
            .collect::<Vec<_>>()
    );
    home.tow(["cp", "s3:x", "back"]).ok();
    assert!(here == tree(&home.project().join("back")));
    let again = home.tow(["cp", "d", "s3:x", "--json"]).ok().json();
    assert_eq!(
        (&only(&again)["sent"], &only(&again)["equal_by_time"]),
        (&0.into(), &here.len().into()),
        "{again}"
    );
    home.tow(["rm", "s3:x/a b", "--yes"]).ok();
    assert_eq!(server.client().list(server.bucket(), "x/a b/").len(), 0);
    assert_eq!(
        server.client().list(server.bucket(), "x/").len(),
        here.len() - 1
    );
}

#[test]
fn an_upload_is_resumed_from_its_journal() {
    let server = S3Server::start();
    let proxy = FaultProxy::before(&server.endpoint());
    let home = s3_home(&server, &proxy.endpoint(&server.endpoint()));
    let path = write(&home, "big", &noise(60 << 20, 5));
    (4..=60).for_each(|n| proxy.inject(Rule::new(Fault::Silence).to("PUT", "partNumber").nth(n)));
    let mut child = home.spawn(["cp", "big", "s3:big"]);
    until("three parts in the journal", || {
        noted(&home, 5).then_some(())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    proxy.heal();
    proxy.forget();
    let resumed = home.tow(["cp", "big", "s3:big", "--json"]).ok().json();
    assert!(
        only(&resumed)["resumed_bytes"].as_u64().unwrap() >= 12 << 20,
        "{resumed}"
    );
    assert!(
        proxy.count("PUT", "partNumber") <= 12,
        "{:?}",
        proxy.counts()
    );
    let back = home.project().join("back");
    server
        .client()
        .run([
            "get".as_ref(),
            server.bucket().as_ref(),
            "big".as_ref(),
            back.as_os_str(),
        ])
        .json();
    assert!(fs::read(back).unwrap() == fs::read(path).unwrap());
}
