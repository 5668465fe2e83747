//! Blobs by the token of the signed-in user.

use crate::stage::{Stage, shown};
use bytes::Bytes;
use std::sync::Arc;
use towline_core::ErrorKind;
use towline_io::azure::{Access, Azure, Place};
use towline_io::credential::AzureCredential;
use towline_io::data::{Data, Key, Marks};

fn store(stage: &Stage, access: Access, container: &str) -> Azure {
    let account = stage.aml.azurite().account().to_owned();
    // The account's own host name, as the service has it.
    let endpoint = Some(format!(
        "https://{account}.blob.{}",
        stage.aml.storage_suffix()
    ));
    let place = Place {
        name: "lab".to_owned(),
        account,
        container: container.to_owned(),
        root: "runs/".to_owned(),
        endpoint,
        access,
    };
    let web =
        towline_io::web::Web::trusting(&std::fs::read(stage.aml.authority()).unwrap()).unwrap();
    Azure::new(place, web).unwrap()
}

#[test]
fn parts_of_blobs_end_where_the_blob_does() {
    let stage = Stage::start();
    stage.aml.azurite().make_container("parts");
    let key = AzureCredential::Key(towline_core::redact::Secret::new(stage.aml.azurite().key()));
    for access in [
        Access::SignedIn(Arc::new(stage.default_cloud())),
        Access::Credential(key),
    ] {
        let store = store(&stage, access, "parts");
        let key = Key::new("a b/c#1").unwrap();
        let part = |range| {
            stage
                .wait(store.part(&key, range))
                .unwrap()
                .map(|bytes| bytes.to_vec())
        };
        assert_eq!(
            (part(None), part(Some(0..4)), part(Some(2..2))),
            (None, None, None)
        );
        assert!(
            stage
                .wait(store.write(
                    &key,
                    Bytes::from_static(b"0123456789"),
                    &Marks::default(),
                    true
                ))
                .unwrap()
        );
        assert!(
            !stage
                .wait(store.write(&key, Bytes::from_static(b"other"), &Marks::default(), true))
                .unwrap()
        );
        for (range, wanted) in [
            (0..4, "0123"),
            (8..20, "89"),
            (4..u64::MAX, "456789"),
            (10..12, ""),
            (11..u64::MAX, ""),
            (3..3, ""),
        ] {
            assert_eq!(
                part(Some(range.clone())),
                Some(wanted.as_bytes().to_vec()),
                "{range:?}"
            );
        }
        assert_eq!(part(None), Some(b"0123456789".to_vec()));
        stage
            .wait(store.delete(&[key.clone(), key.clone()]))
            .unwrap();
    }
}

#[test]
fn an_error_of_signing_in_is_shown_unchanged() {
    let stage = Stage::start();
    let store = store(
        &stage,
        Access::SignedIn(Arc::new(stage.cloud("device_code", None))),
        "parts",
    );
    let error = stage
        .wait(store.part(&Key::new("k").unwrap(), None))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{}", shown(&error));
    assert!(error.hints()[0].contains(crate::stage::SIGN_IN_COMMAND));
}
