//! The real parts do what tests rely on, checked by clients of others and by plain sockets.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use towline_testkit::real::http::{Connection, request};
use towline_testkit::real::{Azurite, Fault, FaultProxy, Rule, S3Server};

const VERSION_HEADER: (&str, &str) = ("x-ms-version", "2022-11-02");
const BLOCK_BLOB_HEADER: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

/// A blob's URL with a signature for everything.
fn signed(endpoint: &str, azurite: &Azurite, path: &str) -> String {
    let mark = if path.contains('?') { '&' } else { '?' };
    format!("{endpoint}/{path}{mark}{}", azurite.sas("rwdlac", 600))
}

#[track_caller]
fn put(endpoint: &str, azurite: &Azurite, path: &str, body: &[u8]) {
    let answer = request(
        "PUT",
        &signed(endpoint, azurite, path),
        &[VERSION_HEADER, BLOCK_BLOB_HEADER],
        body,
    )
    .unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
}

#[test]
fn azurite_answers_microsofts_client() {
    let azurite = Azurite::shared();
    let client = azurite.client();
    let folder = tempfile::tempdir().unwrap();
    let (file, back) = (folder.path().join("file"), folder.path().join("back"));
    fs::write(&file, b"five hundred twelve".repeat(512)).unwrap();
    azurite.make_container("answers");
    let odd = "dir/it's a \"näme\"\nof 100% odd?&=#+ letters";
    client
        .run([
            "put".as_ref(),
            "answers".as_ref(),
            odd.as_ref(),
            file.as_os_str(),
        ])
        .json();
    client
        .run([
            "put".as_ref(),
            "answers".as_ref(),
            "other".as_ref(),
            file.as_os_str(),
        ])
        .json();
    client
        .run([
            "get".as_ref(),
            "answers".as_ref(),
            odd.as_ref(),
            back.as_os_str(),
        ])
        .json();
    assert_eq!(fs::read(&file).unwrap(), fs::read(&back).unwrap());
    assert_eq!(
        client.sha256("answers", odd),
        client.sha256("answers", "other")
    );
    assert_eq!(client.list("answers", "dir/"), [(odd.to_owned(), 19 * 512)]);
    let before = client.run(["properties", "answers", "other"]).json();
    assert_eq!(before["size"], 19 * 512);
    client.run(["touch", "answers", "other"]).json();
    assert_ne!(
        client.run(["properties", "answers", "other"]).json()["etag"],
        before["etag"]
    );
    client.run(["delete", "answers", "other"]).json();
    let gone = client.run(["sha256", "answers", "other"]);
    assert!(!gone.good && gone.stderr.starts_with("404"), "{gone:?}");
}

#[test]
fn signatures_let_in_until_they_expire() {
    let azurite = Azurite::shared();
    azurite.make_container("signatures");
    let list = |sas: &str| {
        azurite
            .client_with(azurite.first(), "--sas", sas)
            .run(["list", "signatures"])
    };
    assert!(list(&azurite.sas("rl", 600)).good);
    assert!(list(&azurite.first().container_sas("signatures", "rl", 600)).good);
    for bad in [
        azurite.sas("rl", -5),
        azurite.sas("w", 600),
        azurite.first().container_sas("signatures", "rl", -5),
        azurite.first().container_sas("others", "rl", 600),
        azurite.sas("rl", 600).replace("sig=", "sig=AAAA"),
    ] {
        let said = list(&bad);
        assert!(
            !said.good && said.stderr.starts_with("403"),
            "{bad}: {said:?}"
        );
    }
    let wrong = azurite
        .client_with(azurite.first(), "--key", &azurite.second().key)
        .run(["list", "signatures"]);
    assert!(!wrong.good && wrong.stderr.starts_with("403"), "{wrong:?}");
}

#[test]
fn a_second_account_is_a_source_of_copies() {
    let azurite = Azurite::shared();
    let (from, to) = (azurite.second(), azurite.first());
    azurite.make_container_of(from, "source");
    azurite.make_container_of(to, "target");
    let source = format!("{}/source/b?{}", from.endpoint, from.sas("rwc", 600));
    assert_eq!(
        request(
            "PUT",
            &source,
            &[VERSION_HEADER, BLOCK_BLOB_HEADER],
            b"copied"
        )
        .unwrap()
        .status,
        201
    );
    let target = signed(azurite.endpoint(), azurite, "target/b");
    let answer = request(
        "PUT",
        &target,
        &[
            VERSION_HEADER,
            ("x-ms-copy-source", &source),
            ("x-ms-requires-sync", "true"),
        ],
        b"",
    )
    .unwrap();
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(
        request("GET", &target, &[VERSION_HEADER], b"")
            .unwrap()
            .body,
        b"copied"
    );

    let proxy = FaultProxy::before(azurite.endpoint());
    let (source, target) = (proxy.endpoint(&source), proxy.endpoint(&target));
    let answer = request(
        "PUT",
        &target,
        &[
            VERSION_HEADER,
            ("x-ms-copy-source", &source),
            ("x-ms-requires-sync", "true"),
        ],
        b"",
    )
    .unwrap();
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(proxy.counts().get("PUT copy"), Some(&1));
}

#[test]
fn a_killed_service_keeps_what_it_has_answered() {
    let folder = tempfile::tempdir().unwrap();
    let mut azurite = Azurite::start_in(folder.path());
    azurite.make_container("kept");
    let client = azurite.client();
    let (endpoint, url) = (
        azurite.endpoint().to_owned(),
        signed(azurite.endpoint(), &azurite, "kept/blob"),
    );
    put(&endpoint, &azurite, "kept/blob", b"before the end");
    azurite.kill();
    assert_eq!(azurite.pid(), None);
    assert_eq!(
        request("GET", &url, &[VERSION_HEADER], b"")
            .unwrap_err()
            .kind(),
        ErrorKind::ConnectionRefused
    );
    azurite.restart();
    assert_eq!(azurite.endpoint(), endpoint);
    assert_eq!(
        request("GET", &url, &[VERSION_HEADER], b"").unwrap().body,
        b"before the end"
    );
    assert_eq!(client.list("kept", ""), [("blob".to_owned(), 14)]);
}

#[test]
fn a_service_killed_at_work_keeps_what_it_has_answered() {
    let folder = tempfile::tempdir().unwrap();
    let mut azurite = Azurite::start_in(folder.path());
    azurite.make_container("busy");
    let (endpoint, sas) = (azurite.endpoint().to_owned(), azurite.sas("rwdlac", 600));
    let answered = Arc::new(Mutex::new(Vec::new()));
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let (endpoint, sas, answered) = (endpoint.clone(), sas.clone(), Arc::clone(&answered));
            std::thread::spawn(move || {
                let mut connection = Connection::open(&endpoint).unwrap();
                for number in 0.. {
                    let url = format!("{endpoint}/busy/{worker}-{number}?{sas}");
                    let Ok(answer) = connection.request(
                        "PUT",
                        &url,
                        &[VERSION_HEADER, BLOCK_BLOB_HEADER],
                        url.as_bytes(),
                    ) else {
                        return;
                    };
                    assert_eq!(answer.status, 201, "{answer:?}");
                    answered.lock().unwrap().push(url);
                }
            })
        })
        .collect();
    towline_testkit::until("work to be under way", || {
        (answered.lock().unwrap().len() > 40).then_some(())
    });
    azurite.kill();
    for worker in workers {
        worker.join().unwrap();
    }
    azurite.restart();
    for url in answered.lock().unwrap().iter() {
        let answer = request("GET", url, &[VERSION_HEADER], b"").unwrap();
        assert_eq!(
            (answer.status, answer.body),
            (200, url.as_bytes().to_vec()),
            "{url}"
        );
    }
}

#[test]
fn nothing_is_left_of_a_dropped_service() {
    let azurite = Azurite::start();
    let (pid, url) = (azurite.pid().unwrap(), azurite.endpoint().to_owned());
    drop(azurite);
    assert!(!fs::exists(format!("/proc/{pid}")).unwrap());
    assert_eq!(
        request("GET", &url, &[], b"").unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
}

#[test]
fn tls_takes_bearer_tokens_until_they_expire() {
    let azurite = Azurite::start_tls();
    assert!(azurite.endpoint().starts_with("https://127.0.0.1:"));
    azurite.make_container("borne");
    let list = |token: &str| {
        azurite
            .client_with(azurite.first(), "--bearer", token)
            .run(["list", "borne"])
    };
    assert!(list(&azurite.bearer_token(600)).good);
    let expired = list(&azurite.bearer_token(-5));
    assert!(
        !expired.good && (expired.stderr.starts_with("401") || expired.stderr.starts_with("403")),
        "{expired:?}"
    );
}

#[test]
fn moto_answers_amazons_client() {
    let server = S3Server::start();
    let (client, bucket) = (server.client(), server.bucket());
    let folder = tempfile::tempdir().unwrap();
    let (file, back) = (folder.path().join("file"), folder.path().join("back"));
    fs::write(&file, b"x".repeat(9 << 20)).unwrap();
    client
        .run([
            "put".as_ref(),
            bucket.as_ref(),
            "a b/ü".as_ref(),
            file.as_os_str(),
        ])
        .json();
    client
        .run([
            "get".as_ref(),
            bucket.as_ref(),
            "a b/ü".as_ref(),
            back.as_os_str(),
        ])
        .json();
    assert_eq!(fs::read(&back).unwrap().len(), 9 << 20);
    assert_eq!(client.list(bucket, "a b/"), [("a b/ü".to_owned(), 9 << 20)]);
    assert_eq!(
        client.run(["uploads", bucket]).json(),
        serde_json::json!([])
    );
    client.run(["delete", bucket, "a b/ü"]).json();
    assert!(client.list(bucket, "").is_empty());
}

/// A container with a blob of a hundred bytes, behind a proxy.
struct Broken {
    azurite: &'static Azurite,
    proxy: FaultProxy,
    endpoint: String,
    container: String,
}

impl Broken {
    fn new(container: &str) -> Self {
        let azurite = Azurite::shared();
        azurite.make_container(container);
        let proxy = FaultProxy::before(azurite.endpoint());
        let endpoint = proxy.endpoint(azurite.endpoint());
        put(&endpoint, azurite, &format!("{container}/blob"), &body());
        proxy.forget();
        Self {
            azurite,
            proxy,
            endpoint,
            container: container.to_owned(),
        }
    }
    fn url(&self, name: &str) -> String {
        signed(
            &self.endpoint,
            self.azurite,
            &format!("{}/{name}", self.container),
        )
    }
    fn get(&self, connection: &mut Connection) -> std::io::Result<Vec<u8>> {
        connection
            .request("GET", &self.url("blob"), &[VERSION_HEADER], b"")
            .map(|answer| answer.body)
    }
    fn connect(&self) -> Connection {
        Connection::open(&self.endpoint).unwrap()
    }
    /// The stored bytes, read without the proxy.
    fn stored(&self, name: &str) -> Option<Vec<u8>> {
        let answer = request(
            "GET",
            &signed(
                self.azurite.endpoint(),
                self.azurite,
                &format!("{}/{name}", self.container),
            ),
            &[VERSION_HEADER],
            b"",
        )
        .unwrap();
        (answer.status == 200).then_some(answer.body)
    }
}

fn body() -> Vec<u8> {
    (0..100).collect()
}

#[test]
fn what_is_not_hurt_passes_on_one_connection_and_is_counted() {
    let broken = Broken::new("passes");
    let mut connection = broken.connect();
    for _ in 0..20 {
        assert_eq!(broken.get(&mut connection).unwrap(), body());
    }
    let head = connection
        .request("HEAD", &broken.url("blob"), &[VERSION_HEADER], b"")
        .unwrap();
    assert_eq!(
        (head.status, head.header("content-length"), head.body.len()),
        (200, Some("100"), 0)
    );
    let range = connection
        .request(
            "GET",
            &broken.url("blob"),
            &[VERSION_HEADER, ("x-ms-range", "bytes=10-19")],
            b"",
        )
        .unwrap();
    assert_eq!((range.status, range.body), (206, body()[10..20].to_vec()));
    // An address names the second when it was made.
    let block = |id: &str| broken.url(&format!("blocks?comp=block&blockid={id}"));
    let (first, second) = (block("QQ=="), block("Qg=="));
    for url in [&first, &second, &first] {
        assert_eq!(
            connection
                .request("PUT", url, &[VERSION_HEADER], b"block")
                .unwrap()
                .status,
            201
        );
    }
    let list = "<?xml version=\"1.0\" \
        encoding=\"utf-8\"?><BlockList><Latest>QQ==</Latest><Latest>Qg==</Latest></BlockList>";
    assert_eq!(
        connection
            .request(
                "PUT",
                &broken.url("blocks?comp=blocklist"),
                &[VERSION_HEADER],
                list.as_bytes()
            )
            .unwrap()
            .status,
        201
    );
    let counts = broken.proxy.counts();
    let expected = [
        ("GET blob", 21),
        ("HEAD blob", 1),
        ("PUT block", 3),
        ("PUT blocklist", 1),
    ];
    assert_eq!(
        counts.into_iter().collect::<Vec<_>>(),
        expected.map(|(name, count)| (name.to_owned(), count))
    );
    let times: Vec<usize> = broken
        .proxy
        .times("PUT", "comp=block&")
        .into_values()
        .collect();
    assert_eq!(times, [2, 1]);
    let seen = broken.proxy.seen();
    assert!(seen.iter().all(|seen| !seen.path.contains("sig=")
        && seen.path.contains("sv=")
        && seen.fault.is_none()));
    assert!(
        seen.iter()
            .filter(|seen| seen.kind == "block")
            .all(|seen| seen.body == 5 && seen.status == Some(201))
    );
    assert_eq!(seen[21].range.as_deref(), Some("bytes=10-19"));
    assert_eq!(broken.stored("blocks").unwrap(), b"blockblock");
}

#[test]
fn account_keys_hold_through_the_proxy() {
    let azurite = Azurite::shared();
    azurite.make_container("keyed");
    let proxy = FaultProxy::before(azurite.endpoint());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, body()).unwrap();
    let client = azurite.client_of(&proxy.account(azurite.first()));
    client
        .run([
            "put".as_ref(),
            "keyed".as_ref(),
            "a b".as_ref(),
            file.as_os_str(),
        ])
        .json();
    assert_eq!(client.list("keyed", ""), [("a b".to_owned(), 100)]);
    assert_eq!(
        client.sha256("keyed", "a b"),
        azurite.client().sha256("keyed", "a b")
    );
    assert!(
        proxy.count("PUT", "/keyed/a%20b") == 1 && proxy.count("GET", "/keyed/a%20b") >= 1,
        "{:?}",
        proxy.seen()
    );
}

#[test]
fn resets_come_before_within_and_after_the_request() {
    let broken = Broken::new("resets");
    for (fault, read) in [
        (Fault::ResetBefore, 0),
        (Fault::ResetWithin, 50_000),
        (Fault::ResetAfter, 100_000),
    ] {
        broken.proxy.forget();
        broken
            .proxy
            .inject(Rule::new(fault).to("PUT", "/resets/").nth(1));
        let name = format!("{fault:?}");
        let error = request(
            "PUT",
            &broken.url(&name),
            &[VERSION_HEADER, BLOCK_BLOB_HEADER],
            &vec![7; 100_000],
        )
        .unwrap_err();
        assert!(
            matches!(
                error.kind(),
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
            ),
            "{fault:?}: {error:?}"
        );
        assert_eq!(broken.proxy.seen()[0].fault, Some(fault));
        if fault == Fault::ResetAfter {
            towline_testkit::until("the service to act on what it got", || broken.stored(&name));
            assert_eq!(broken.proxy.seen()[0].body, read);
        } else {
            assert_eq!(
                (
                    broken.stored(&name),
                    broken.proxy.seen()[0].body,
                    broken.proxy.seen()[0].status
                ),
                (None, read, None)
            );
        }
        // The next one passes.
        put(
            &broken.endpoint,
            broken.azurite,
            &format!("resets/{name}"),
            b"again",
        );
        broken.proxy.heal();
    }
}

#[test]
fn a_lost_answer_is_lost_after_the_deed() {
    let broken = Broken::new("lost");
    broken
        .proxy
        .inject(Rule::new(Fault::LostAnswer).to("PUT", "/lost/").nth(1));
    let error = request(
        "PUT",
        &broken.url("new"),
        &[VERSION_HEADER, BLOCK_BLOB_HEADER],
        b"done",
    )
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    assert_eq!(broken.stored("new").unwrap(), b"done");
    assert_eq!(broken.proxy.seen()[0].status, Some(201));
}

#[test]
fn refusals_are_answers_on_a_connection_that_stays() {
    let broken = Broken::new("refusals");
    broken.proxy.inject(
        Rule::one_of(&[Fault::BUSY, Fault::TOO_MANY])
            .to("PUT", "/refusals/")
            .first(2),
    );
    let mut connection = broken.connect();
    let mut answers = Vec::new();
    for _ in 0..3 {
        let answer = connection
            .request(
                "PUT",
                &broken.url("new"),
                &[VERSION_HEADER, BLOCK_BLOB_HEADER],
                &[1; 1000],
            )
            .unwrap();
        answers.push((
            answer.status,
            answer.header("retry-after").map(str::to_owned),
        ));
        assert_eq!(broken.stored("new").is_some(), answer.status == 201);
    }
    answers.sort();
    assert_eq!(
        answers,
        [
            (201, None),
            (429, Some("1".to_owned())),
            (503, Some("1".to_owned()))
        ]
    );
    assert_eq!(
        (
            broken.proxy.faults(),
            broken.proxy.count("PUT", "/refusals/new")
        ),
        (2, 3)
    );
}

#[test]
fn bodies_are_hurt_as_said() {
    let broken = Broken::new("bodies");
    let mut connection = broken.connect();
    let inject = |fault: Fault| {
        broken.proxy.heal();
        broken
            .proxy
            .inject(Rule::new(fault).to("GET", "/bodies/blob").nth(1));
    };
    inject(Fault::Flipped);
    let flipped = broken.get(&mut connection).unwrap();
    let different: Vec<usize> = (0..100).filter(|at| flipped[*at] != body()[*at]).collect();
    assert_eq!(different, [50]);
    assert_eq!(broken.get(&mut connection).unwrap(), body());

    inject(Fault::Shortened);
    assert_eq!(broken.get(&mut connection).unwrap(), body()[..50]);
    assert_eq!(broken.get(&mut connection).unwrap(), body());

    inject(Fault::Trickle {
        piece: 10,
        pause: Duration::from_millis(5),
    });
    let begun = Instant::now();
    assert_eq!(broken.get(&mut connection).unwrap(), body());
    assert!(begun.elapsed() >= Duration::from_millis(50));

    inject(Fault::Truncated);
    assert_eq!(
        broken.get(&mut connection).unwrap_err().kind(),
        ErrorKind::UnexpectedEof
    );
    assert_eq!(broken.get(&mut broken.connect()).unwrap(), body());
    assert_eq!(broken.proxy.faults(), 4);

    // A HEAD can have a wrong length too, but it has no byte to flip.
    broken.proxy.heal();
    broken
        .proxy
        .inject(Rule::one_of(&[Fault::Shortened, Fault::Flipped]).to("HEAD", ""));
    let mut lengths: Vec<String> = (0..2)
        .map(|_| {
            request("HEAD", &broken.url("blob"), &[VERSION_HEADER], b"")
                .unwrap()
                .header("content-length")
                .unwrap()
                .to_owned()
        })
        .collect();
    lengths.sort();
    assert_eq!(lengths, ["100", "50"]);
    assert_eq!(broken.proxy.faults(), 5);
}

#[test]
fn silence_lasts_until_somebody_gives_up() {
    let broken = Broken::new("silence");
    broken.proxy.inject(Rule::new(Fault::Silence));
    let url = broken.url("new");
    let client = std::thread::spawn(move || {
        request("PUT", &url, &[VERSION_HEADER, BLOCK_BLOB_HEADER], b"heard")
    });
    towline_testkit::until("the service to act", || broken.stored("new"));
    towline_testkit::until("its answer to be swallowed", || {
        broken.proxy.seen()[0].status
    });
    assert!(!client.is_finished());
    drop(broken);
    assert!(client.join().unwrap().is_err());
}

#[test]
fn a_share_of_requests_is_hurt_and_who_tries_again_gets_through() {
    let broken = Broken::new("share");
    let faults = [
        Fault::ResetBefore,
        Fault::ResetAfter,
        Fault::LostAnswer,
        Fault::Answer {
            status: 503,
            retry_after_seconds: None,
        },
    ];
    broken
        .proxy
        .inject(Rule::one_of(&faults).share(30, 11).at_most_per_request(2));
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let broken = &broken;
            scope.spawn(move || {
                for number in 0..25 {
                    let url = broken.url(&format!("{worker}-{number}"));
                    let good = (0..3).any(|_| {
                        request(
                            "PUT",
                            &url,
                            &[VERSION_HEADER, BLOCK_BLOB_HEADER],
                            b"through",
                        )
                        .is_ok_and(|answer| answer.status == 201)
                    });
                    assert!(good, "{url}");
                }
            });
        }
    });
    let hurt = broken.proxy.faults();
    assert!((20..70).contains(&hurt), "{hurt}");
    assert_eq!(broken.proxy.seen().len(), 100 + hurt);
}

#[test]
fn a_service_that_is_gone_is_a_broken_connection() {
    let folder = tempfile::tempdir().unwrap();
    let mut azurite = Azurite::start_in(folder.path());
    let proxy = FaultProxy::before(azurite.endpoint());
    let endpoint = proxy.endpoint(azurite.endpoint());
    let url = format!("{endpoint}?comp=list&{}", azurite.sas("rl", 600));
    let mut connection = Connection::open(&endpoint).unwrap();
    assert_eq!(
        connection
            .request("GET", &url, &[VERSION_HEADER], b"")
            .unwrap()
            .status,
        200
    );
    azurite.kill();
    assert!(
        connection
            .request("GET", &url, &[VERSION_HEADER], b"")
            .is_err()
    );
    azurite.restart();
    assert_eq!(
        Connection::open(&endpoint)
            .unwrap()
            .request("GET", &url, &[VERSION_HEADER], b"")
            .unwrap()
            .status,
        200
    );
}
