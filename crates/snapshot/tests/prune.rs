//! Deleting snapshots while others use the store: packs on a list of pending deletions are not
//! used.

mod support;

use std::fs;
use support::{Bench, noise};
use towline_snapshot::check::check;
use towline_snapshot::digest::Digest;
use towline_snapshot::progress::Progress;
use towline_snapshot::prune::{Policy, carry_out, plan};
use towline_snapshot::store::{Blob, BlobKind, BlobStore};

const DAY_MILLIS: i64 = 86_400_000;

/// Makes everything in the store a month old.
fn age(bench: &Bench) {
    let mut folders = vec![bench.store.root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("read").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                fs::File::open(entry.path())
                    .expect("open")
                    .set_modified(std::time::UNIX_EPOCH)
                    .expect("set");
            }
        }
    }
}

fn prune(bench: &Bench, now: i64, keep: &dyn Fn(&Digest) -> bool) -> (usize, usize, usize) {
    let keep = |root: &Blob, _: Option<i64>| keep(&root.digest());
    let policy = Policy {
        keep: &keep,
        grace: Some(DAY_MILLIS),
        now,
    };
    let plan = plan(&bench.store, &policy).expect("planned");
    carry_out(&bench.store, &plan, &policy).expect("carried out");
    (
        plan.snapshots.len(),
        plan.packs.len(),
        plan.newly_listed.len(),
    )
}

#[test]
fn content_is_deleted_a_day_after_it_was_listed_unless_it_is_needed() {
    let bench = Bench::new();
    bench.write("a", noise(1, 4000));
    let first = bench.take();
    let now = bench.options().now / 1_000_000;
    age(&bench);
    assert_eq!(
        prune(&bench, now, &|_| false),
        (1, 0, 1),
        "marked, not deleted"
    );
    assert_eq!(bench.store.list(BlobKind::Pack).expect("listed").len(), 1);
    assert_eq!(
        prune(&bench, now + DAY_MILLIS / 2, &|_| true),
        (0, 0, 0),
        "too early"
    );
    // The same content is taken again meanwhile; it does not use the listed packs.
    let again = bench.take();
    assert_eq!(again.id, first.id);
    assert_eq!(bench.store.list(BlobKind::Pack).expect("listed").len(), 2);
    assert_eq!(prune(&bench, now + 2 * DAY_MILLIS, &|_| true), (0, 1, 0));
    assert!(
        check(&bench.store, None, &Progress::default())
            .expect("checked")
            .damage
            .is_empty()
    );
    bench.round_trip(&again.id, "out");
}

#[test]
fn a_machine_without_an_index_ignores_listed_packs() {
    let bench = Bench::new();
    bench.write("a", noise(2, 4000));
    let first = bench.take();
    let root = bench
        .store
        .get(&Blob::Root(first.id))
        .expect("read")
        .expect("there");
    let now = bench.options().now / 1_000_000;
    age(&bench);
    prune(&bench, now, &|_| false);
    // A slow process names the pack after all, and a machine without an index reads that root.
    bench.store.put(&Blob::Root(first.id), &root).expect("put");
    let mut options = bench.options();
    options.index = bench.folder.path().join("fresh-index");
    bench.write("b", "more");
    let second = bench.take_with(&options).expect("taken");
    bench
        .store
        .delete(&[Blob::Root(first.id)])
        .expect("deleted");
    age(&bench);
    // The same packs are listed a second time, and that list counts as well.
    prune(&bench, now + 2 * DAY_MILLIS, &|id| *id == second.id);
    bench.round_trip(&second.id, "out");
    bench.write("c", "still more");
    let third = bench.take_with(&options).expect("taken");
    bench.round_trip(&third.id, "out-3");
}
