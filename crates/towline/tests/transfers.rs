//! Transfers through kills and a network that fails: `tow` and the service are killed at random
//! moments and requests are hurt by a seeded draw. What is said to be done is right in every byte,
//! a copy goes on inside the file, and nothing half-written is ever seen under its name.
//!
//! A seeded tenth runs here; `TOW_SOAK=1` runs all. `TOW_SEED` draws another campaign.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;
use towline_testkit::campaign::{Seeded, is_soak, noise, seed};
use towline_testkit::real::{Azurite, Fault, FaultProxy, Rule, S3Server, Seen, http, python};
use towline_testkit::{Home, until};

const BLOCK: u64 = 4 << 20;
/// What a download asks for at once.
const RANGE: u64 = 8 << 20;
/// Blocks of 32 MiB in memory: no more can be on their way when a process dies.
const IN_FLIGHT: usize = 8;
const OLDER: &[u8] = b"an older file, whole";

/// So many kills, on a file of so many blocks.
fn scale() -> (usize, usize) {
    if is_soak() { (20, 256) } else { (2, 32) }
}

/// A file of so many blocks, the last one short, no two alike.
fn write_large(path: &Path, blocks: usize, seed: u64) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = File::create(path).unwrap();
    let mut block = noise(usize::try_from(BLOCK).unwrap(), seed);
    for number in 0..blocks {
        block[..8].copy_from_slice(&(number as u64).to_le_bytes());
        file.write_all(&block[..block.len() - if number + 1 == blocks { 1000 } else { 0 }])
            .unwrap();
    }
}

/// By a program that nobody here wrote.
fn sha256(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout)[..64].to_owned()
}

/// One service with its data on disk, a proxy before it, and a home whose folder `data` lies there.
struct Place {
    azurite: Azurite,
    proxy: FaultProxy,
    home: Home,
    _folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("tow-azurite-")
            .tempdir()
            .unwrap();
        let azurite = Azurite::start_in(folder.path());
        azurite.make_container("campaign");
        let proxy = FaultProxy::before(azurite.endpoint());
        let account = proxy.account(azurite.first());
        let home = Home::new(env!("CARGO_BIN_EXE_tow")).with("AZ_KEY", &account.key);
        home.configure(&format!(
            "datastores:\n  az: {{kind: azure_blob, account: {}, container: campaign, endpoint: \
                '{}', credential: {{account_key: env:AZ_KEY}}}}\nfolders:\n  data: {{datastore: \
                    az, path: alice/data}}\n",
            account.name, account.endpoint
        ));
        Self {
            azurite,
            proxy,
            home,
            _folder: folder,
        }
    }

    /// What anybody reads of the large blob now; small only.
    fn visible(&self) -> Vec<u8> {
        let url = format!(
            "{}/campaign/alice/data/big?{}",
            self.azurite.endpoint(),
            self.azurite.sas("r", 600)
        );
        let answer = http::request("GET", &url, &[("x-ms-version", "2022-11-02")], b"").unwrap();
        assert_eq!(answer.status, 200);
        answer.body
    }

    /// Blocks that came whole to the service, and whether it has said that it has them.
    fn blocks_sent(&self) -> Vec<(String, bool)> {
        let is_block = |seen: &Seen| seen.kind == "block" && seen.body > 0;
        self.proxy
            .seen()
            .into_iter()
            .filter(is_block)
            .map(|seen| (seen.path, seen.status == Some(201)))
            .collect()
    }

    /// Blocks of the large file that the service began to give.
    fn blocks_fetched(&self) -> Vec<u64> {
        let start = |range: String| {
            range
                .strip_prefix("bytes=")?
                .split('-')
                .next()?
                .parse::<u64>()
                .ok()
        };
        let given = self
            .proxy
            .seen()
            .into_iter()
            .filter(|seen| seen.method == "GET" && seen.status == Some(206));
        given
            .filter_map(|seen| seen.range.and_then(start))
            .map(|start| start / RANGE)
            .collect()
    }

    /// Blocks that the journal of the transfer says are safe.
    fn blocks_noted(&self) -> BTreeSet<u64> {
        let journals = fs::read_dir(self.home.state().root().join("transfers"))
            .into_iter()
            .flatten()
            .flatten();
        let text: String = journals
            .map(|entry| fs::read_to_string(entry.path()).unwrap_or_default())
            .collect();
        let number = |line: &str| {
            serde_json::from_str::<serde_json::Value>(line).ok()?["block"]["index"].as_u64()
        };
        text.split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .filter_map(number)
            .collect()
    }

    /// Runs `tow` until `count` has grown by `more`, then kills it; on the way there the service
    /// too, if told so. Whether it was still there to be killed.
    fn kill(
        &mut self,
        words: &[&str],
        the_service_too: bool,
        more: usize,
        count: impl Fn(&Self) -> usize,
    ) -> bool {
        let begin = count(self);
        let mut child = self.home.spawn(words);
        let reaches = |place: &Self, child: &mut Child, many: usize| {
            until("the transfer to be half-way", || {
                match child.try_wait().unwrap() {
                    Some(_) => Some(false),
                    None => (count(place) >= begin + many).then_some(true),
                }
            })
        };
        let mut alive = true;
        if the_service_too {
            alive = reaches(self, &mut child, more.div_ceil(2));
            self.azurite.restart();
        }
        // It bears that the service dies, and goes on by itself.
        alive = alive && reaches(self, &mut child, more);
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(
            alive || output.status.success(),
            "it failed by itself: {output:?}"
        );
        alive
    }
}

#[test]
fn an_upload_killed_at_random_moments_goes_on_inside_the_file() {
    let (kills, blocks) = scale();
    let seed = seed();
    let mut random = Seeded(seed);
    let mut place = Place::new();
    let path = place.home.project().join("data/big");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, OLDER).unwrap();
    place.home.tow(["up", "data/big"]).ok();
    write_large(&path, blocks, seed);
    place.proxy.forget();

    let (mut killed, mut restarts) = (0, 0);
    // Those that the service had when somebody was killed, and how much had come by then.
    let mut kept: Vec<(BTreeSet<String>, usize)> = Vec::new();
    for round in 0..kills {
        let more = 1 + random.next(blocks / (kills + 1));
        let the_service_too = round % 4 == 1;
        let count = |place: &Place| {
            place
                .blocks_sent()
                .iter()
                .filter(|(_, answered)| *answered)
                .count()
        };
        if !place.kill(&["up", "data/big"], the_service_too, more, count) {
            break;
        }
        killed += 1;
        restarts += usize::from(the_service_too);
        let sent = place.blocks_sent();
        kept.push((
            sent.iter()
                .filter(|(_, answered)| *answered)
                .map(|(path, _)| path.clone())
                .collect(),
            sent.len(),
        ));
        assert!(
            place.visible() == OLDER,
            "seed {seed}, kill {round}: the older blob is there until the new one is whole"
        );
    }
    assert!(
        killed * 10 >= kills * 9,
        "seed {seed}: only {killed} of {kills} kills happened"
    );
    let last = place.home.tow(["up", "data/big", "--json"]).ok().json();
    let resumed = last["transfers"][0]["resumed_bytes"].as_u64().unwrap();
    assert!(resumed > 0, "seed {seed}: {last}");
    assert_eq!(
        place.azurite.client().sha256("campaign", "alice/data/big"),
        sha256(&path),
        "seed {seed}"
    );

    let sent = place.blocks_sent();
    for (round, (had, by_then)) in kept.iter().enumerate() {
        let again = sent[*by_then..].iter().find(|(path, _)| had.contains(path));
        assert!(
            again.is_none(),
            "seed {seed}: the service had {again:?} at kill {round}, and it was sent again"
        );
    }
    let distinct: BTreeSet<&String> = sent.iter().map(|(path, _)| path).collect();
    assert_eq!(distinct.len(), blocks, "seed {seed}");
    let twice = sent.len() - blocks;
    assert!(
        twice <= (killed + restarts) * IN_FLIGHT,
        "seed {seed}: {twice} blocks were sent twice in {killed} kills and {restarts} restarts"
    );
    println!(
        "up: {killed} kills of tow and {restarts} of the service, {blocks} blocks, {twice} sent \
            twice, resumed inside the file, every byte right"
    );
}

#[test]
fn a_download_killed_at_random_moments_goes_on_inside_the_file() {
    let (kills, blocks) = scale();
    let seed = seed();
    let ranges = usize::try_from((blocks as u64 * BLOCK).div_ceil(RANGE)).unwrap();
    let mut random = Seeded(seed ^ 0xd0);
    let mut place = Place::new();
    let path = place.home.project().join("data/big");
    write_large(&path, blocks, seed);
    let expected = sha256(&path);
    place.home.tow(["up", "data/big"]).ok();
    fs::write(&path, OLDER).unwrap();
    place.proxy.forget();
    // Slow enough to be met half-way on any machine.
    let trickle = Fault::Trickle {
        piece: 512 << 10,
        pause: Duration::from_millis(10),
    };
    place.proxy.inject(Rule::new(trickle).to("GET", "/big"));

    let (mut killed, mut restarts) = (0, 0);
    let mut kept: Vec<(BTreeSet<u64>, usize)> = Vec::new();
    for round in 0..kills {
        let more = 1 + random.next(ranges / (kills + 1));
        let the_service_too = round % 4 == 1;
        if !place.kill(&["down", "data/big"], the_service_too, more, |place| {
            place.blocks_noted().len()
        }) {
            break;
        }
        killed += 1;
        restarts += usize::from(the_service_too);
        kept.push((place.blocks_noted(), place.blocks_fetched().len()));
        assert!(
            fs::read(&path).unwrap() == OLDER,
            "seed {seed}, kill {round}: the older file is there until the new one is whole"
        );
    }
    assert!(
        killed * 10 >= kills * 9,
        "seed {seed}: only {killed} of {kills} kills happened"
    );
    place.proxy.heal();
    let last = place.home.tow(["down", "data/big", "--json"]).ok().json();
    assert!(
        last["transfers"][0]["resumed_bytes"].as_u64().unwrap() > 0,
        "seed {seed}: {last}"
    );
    assert_eq!(sha256(&path), expected, "seed {seed}");
    assert!(
        !path.with_file_name(".big.tow-part").exists(),
        "nothing is left beside it"
    );

    let fetched = place.blocks_fetched();
    for (round, (had, by_then)) in kept.iter().enumerate() {
        let again = fetched[*by_then..]
            .iter()
            .find(|number| had.contains(number));
        assert!(
            again.is_none(),
            "seed {seed}: block {again:?} was safe at kill {round}, and was fetched again"
        );
    }
    let twice = fetched.len() - ranges;
    assert!(
        twice <= (killed + restarts) * IN_FLIGHT,
        "seed {seed}: {twice} blocks were fetched twice in {killed} kills and {restarts} restarts"
    );
    println!(
        "down: {killed} kills of tow and {restarts} of the service, {ranges} ranges, {twice} \
            fetched twice, the older file untouched, every byte right"
    );
}

/// Every blob of a container or object of a bucket with its SHA-256, by Microsoft's or Amazon's
/// client.
const HASHES: &str = r#"
import hashlib, json, sys
kind, url, who, secret, place = sys.argv[1:]
if kind == "azure":
    from azure.core.credentials import AzureNamedKeyCredential
    from azure.storage.blob import ContainerClient
    client = ContainerClient(url, place, credential=AzureNamedKeyCredential(who, secret))
    found = {blob.name: client.download_blob(blob.name).readall() for blob in client.list_blobs()}
else:
    import boto3
    from botocore.config import Config
    # This server tells the checksum of the parts' checksums as if it were that of the whole (moto 5), which Amazon's does not.
    config = Config(response_checksum_validation="when_required")
    client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id=who, aws_secret_access_key=secret, config=config)
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=place)
    names = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
    found = {name: client.get_object(Bucket=place, Key=name)["Body"].read() for name in names}
json.dump({name: hashlib.sha256(data).hexdigest() for name, data in found.items()}, sys.stdout)
"#;

/// Files below a folder by their hashes, as [`HASHES`] tells them; parts of unfinished files are
/// none.
fn hashes(root: &Path) -> BTreeMap<String, String> {
    let find = [
        "-type",
        "f",
        "!",
        "-name",
        ".*.tow-part",
        "-exec",
        "sha256sum",
        "--zero",
        "{}",
        "+",
    ];
    let output = Command::new("find")
        .arg(".")
        .args(find)
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines
        .split_terminator('\0')
        .map(|line| (line[68..].to_owned(), line[..64].to_owned()))
        .collect()
}

/// Small ones, empty ones, and some of several blocks; names as people have them.
fn mixed_tree(root: &Path, seed: u64) {
    let mut random = Seeded(seed ^ 0x7ee);
    for number in 0..60u64 {
        let size = match number % 10 {
            0 => usize::try_from(BLOCK).unwrap() + random.next(5 << 20),
            1 => 0,
            2 => usize::try_from(BLOCK).unwrap(),
            _ => random.next(200_000),
        };
        let path = root.join(format!(
            "d{}/sub {}/file-{number} ü#%.bin",
            number % 3,
            number % 4
        ));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, noise(size, seed ^ number)).unwrap();
    }
}

/// All that passes by itself, and soon.
fn faults() -> Vec<Fault> {
    let mut faults = vec![
        Fault::ResetBefore,
        Fault::ResetWithin,
        Fault::ResetAfter,
        Fault::LostAnswer,
        Fault::Answer {
            status: 503,
            retry_after_seconds: Some(0),
        },
        Fault::Answer {
            status: 429,
            retry_after_seconds: Some(0),
        },
        Fault::Answer {
            status: 500,
            retry_after_seconds: None,
        },
        Fault::Trickle {
            piece: 64 << 10,
            pause: Duration::from_millis(1),
        },
        Fault::Truncated,
        Fault::Shortened,
        Fault::Flipped,
    ];
    if is_soak() {
        faults.extend([Fault::BUSY, Fault::TOO_MANY]);
    }
    faults
}

/// One way into a store through a proxy, and what came of it.
struct Network<'a> {
    home: &'a Home,
    proxy: &'a FaultProxy,
    store: &'static str,
    rounds: usize,
    done: usize,
    failed: usize,
}

impl Network<'_> {
    /// A copy through faults, and if it failed once more without them. `arrived` reads what is
    /// there, past the proxy.
    fn copy(
        &mut self,
        [from, to]: [&str; 2],
        seed: u64,
        percent: u64,
        here: &BTreeMap<String, String>,
        arrived: impl Fn() -> BTreeMap<String, String>,
    ) {
        let what = format!("{from} to {to}, seed {seed}, {percent} % of requests hurt");
        // Each silence lasts the minute after which it is given up: a few, in the soak.
        if is_soak() && self.rounds < 2 {
            self.proxy.inject(Rule::new(Fault::Silence).nth(9));
        }
        let before = self.proxy.faults();
        self.proxy
            .inject(Rule::one_of(&faults()).share(percent, seed));
        let output = self.home.tow(["cp", from, to]);
        self.proxy.heal();
        assert!(self.proxy.faults() > before, "{what}: nothing was hurt");
        let found = arrived();
        if output.code == 0 {
            self.done += 1;
            assert_eq!(found, *here, "{what}: said to be done");
            return;
        }
        self.failed += 1;
        assert!(
            [123, 125].contains(&output.code) && output.stderr.lines().any(|line| line.len() > 20),
            "{what}: {output:?}"
        );
        assert!(
            found
                .iter()
                .all(|(name, hash)| here.get(name) == Some(hash)),
            "{what}: a wrong one is there after {output:?}"
        );
        self.home.tow(["cp", from, to]).ok();
        assert_eq!(arrived(), *here, "{what}: done at last");
    }

    /// Trees up and down; `there` reads the whole store.
    fn round_trips(mut self, there: impl Fn() -> BTreeMap<String, String>) {
        for (seed, percent) in draws() {
            let (from, to, out) = (
                format!("in-{seed}"),
                format!("{}:t{seed}", self.store),
                format!("out-{seed}"),
            );
            let (source, back) = (
                self.home.project().join(&from),
                self.home.project().join(&out),
            );
            mixed_tree(&source, seed);
            let here = hashes(&source);
            assert_eq!(here.len(), 60, "seed {seed}");
            let below = format!("t{seed}/");
            let stored = || {
                there()
                    .into_iter()
                    .filter_map(|(name, hash)| Some((name.strip_prefix(&below)?.to_owned(), hash)))
                    .collect()
            };
            self.copy([&from, &to], seed, percent, &here, stored);
            self.copy([&to, &out], seed, percent, &here, || {
                if back.exists() {
                    hashes(&back)
                } else {
                    BTreeMap::new()
                }
            });
            let left = Command::new("find")
                .arg(&back)
                .args(["-name", ".*.tow-part"])
                .output()
                .unwrap()
                .stdout;
            assert!(
                left.is_empty(),
                "seed {seed}: {}",
                String::from_utf8_lossy(&left)
            );
            self.rounds += 1;
        }
        let Self {
            proxy,
            store,
            rounds,
            done,
            failed,
            ..
        } = self;
        println!(
            "{store}: {rounds} trees both ways, {} faults, {done} done, {failed} said to have \
                failed, every byte right",
            proxy.faults()
        );
    }
}

/// Seeds, and how many of a hundred requests are hurt: few, as in life, and so many that some must
/// fail.
fn draws() -> Vec<(u64, u64)> {
    let shares = if is_soak() {
        [5, 10, 20, 35, 60, 90].repeat(2)
    } else {
        vec![10, 60]
    };
    shares
        .into_iter()
        .enumerate()
        .map(|(number, percent)| (seed() + number as u64, percent))
        .collect()
}

#[test]
fn a_tree_through_a_failing_network_is_right_on_azure_or_said_not_to_be() {
    let azurite = Azurite::start();
    azurite.make_container("faults");
    let proxy = FaultProxy::before(azurite.endpoint());
    let account = proxy.account(azurite.first());
    let home = Home::new(env!("CARGO_BIN_EXE_tow")).with("AZ_KEY", &account.key);
    home.configure(&format!(
        "datastores:\n  az: {{kind: azure_blob, account: {}, container: faults, endpoint: '{}', \
            credential: {{account_key: env:AZ_KEY}}}}\n",
        account.name, account.endpoint
    ));
    let there = || {
        serde_json::from_value(
            python(
                HASHES,
                [
                    "azure",
                    azurite.endpoint(),
                    azurite.account(),
                    azurite.key(),
                    "faults",
                ],
            )
            .json(),
        )
        .unwrap()
    };
    Network {
        home: &home,
        proxy: &proxy,
        store: "az",
        rounds: 0,
        done: 0,
        failed: 0,
    }
    .round_trips(there);
}

#[test]
fn a_tree_through_a_failing_network_is_right_on_s3_or_said_not_to_be() {
    let server = S3Server::start();
    let proxy = FaultProxy::before(&server.endpoint());
    let home = Home::new(env!("CARGO_BIN_EXE_tow"))
        .with("S3_ID", server.access_key())
        .with("S3_SECRET", server.secret_key());
    home.configure(&format!(
        "datastores:\n  s3: {{kind: s3, bucket: {}, endpoint: '{}', credential: {{access_key_id: \
            env:S3_ID, secret_access_key: env:S3_SECRET}}}}\n",
        server.bucket(),
        proxy.endpoint(&server.endpoint())
    ));
    let there = || {
        serde_json::from_value(
            python(
                HASHES,
                [
                    "s3",
                    &server.endpoint(),
                    server.access_key(),
                    server.secret_key(),
                    server.bucket(),
                ],
            )
            .json(),
        )
        .unwrap()
    };
    Network {
        home: &home,
        proxy: &proxy,
        store: "s3",
        rounds: 0,
        done: 0,
        failed: 0,
    }
    .round_trips(there);
}
