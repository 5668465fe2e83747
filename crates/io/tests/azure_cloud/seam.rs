//! The cloud of the Azure ML backend, against the emulator and a real blob service.

use crate::stage::Stage as Signed;
use serde_json::json;
use std::sync::OnceLock;
use tokio::runtime::Runtime;
use towline_core::cloud::{Audience, BlobAccess, BlobPlace, Call, Cloud};
use towline_core::redact::Secret;
use towline_core::{ErrorKind, Result};
use towline_io::azure::seam::AzureCloud;
use towline_testkit::aml::{Trouble, When};

struct Stage {
    signed: Signed,
    cloud: AzureCloud,
}

#[expect(clippy::unnecessary_wraps, reason = "the form that is asked for")]
fn threads() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    Ok(RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap()
    }))
}

impl Stage {
    fn start() -> Self {
        let signed = Signed::start();
        let cloud = AzureCloud::new("lab", signed.cloud("managed_identity", None), threads);
        Self { signed, cloud }
    }

    fn url(&self, below: &str) -> String {
        format!(
            "{}{}{below}?api-version=2024-04-01",
            self.signed.aml.endpoint(),
            self.signed.aml.scope().id()
        )
    }

    fn place(&self, access: BlobAccess, root: &str) -> BlobPlace {
        let account = self.signed.aml.azurite().account().to_owned();
        let endpoint = format!(
            "https://{account}.blob.{}",
            self.signed.aml.storage_suffix()
        );
        BlobPlace {
            account,
            container: "objects".to_owned(),
            endpoint,
            root: root.to_owned(),
            access,
        }
    }
}

#[test]
fn calls_reach_the_services() {
    let stage = Stage::start();
    let cloud: &dyn Cloud = &stage.cloud;
    assert_eq!(cloud.endpoint(), stage.signed.aml.endpoint());
    assert!(
        stage.signed.aml.recorded().is_empty(),
        "nothing is asked before the first call"
    );
    cloud.sign_in(false).unwrap();
    let body = json!({"properties": {"jobType": "Command", "command": "true", "environmentId": "azureml:e:1"}});
    let token = cloud.token(Audience::Workspace).unwrap();
    let made = cloud
        .call(&Call::put(stage.url("/jobs/one"), body).header("x-azureml-token", token))
        .unwrap();
    assert_eq!(
        (made.status, made.tries, made.header("content-type")),
        (201, 1, Some("application/json; charset=utf-8"))
    );
    assert_eq!(made.json().unwrap()["name"], "one");
    stage
        .signed
        .aml
        .trouble(1, "POST", "/cancel", Trouble::Cut, When::Before);
    let cancel = || Call::post(stage.url("/jobs/one/cancel"), json!({}));
    assert_eq!(
        cloud.call(&cancel()).unwrap_err().kind(),
        ErrorKind::Unreachable
    );
    stage
        .signed
        .aml
        .trouble(1, "POST", "/cancel", Trouble::Cut, When::Before);
    assert_eq!(cloud.call(&cancel().repeatable()).unwrap().tries, 2);
    let calls: Vec<Call> = ["/jobs/one", "/jobs/none", ""]
        .into_iter()
        .map(|below| Call::get(stage.url(below)))
        .collect();
    let statuses: Vec<u16> = cloud
        .call_all(&calls)
        .into_iter()
        .map(|reply| reply.unwrap().status)
        .collect();
    assert_eq!(statuses, [200, 404, 200]);
    assert!(
        cloud
            .call(&Call::delete(stage.url("/jobs/none")))
            .unwrap()
            .is_good()
    );
    let anybody = cloud
        .call(
            &Call::get(format!("{}/discovery", stage.signed.aml.endpoint()))
                .audience(Audience::Nobody),
        )
        .unwrap();
    assert!(anybody.is_good());
}

#[test]
fn objects_are_stored_with_every_credential() {
    let stage = Stage::start();
    let azurite = stage.signed.aml.azurite();
    azurite.make_container("objects");
    let sas = Secret::new(azurite.sas("rwdlac", 600));
    for access in [
        BlobAccess::Key(Secret::new(azurite.key())),
        BlobAccess::Sas(sas),
        BlobAccess::Token,
    ] {
        let objects = stage
            .cloud
            .objects(&stage.place(access, "towline/runs"))
            .unwrap();
        let names: Vec<String> = (0..20)
            .map(|number| format!("r1/part {number:02}#"))
            .collect();
        assert!(
            names
                .iter()
                .all(|name| objects.put(name, name.as_bytes(), true).unwrap())
        );
        assert!(!objects.put(&names[0], b"other", true).unwrap());
        assert!(objects.put(&names[0], b"other", false).unwrap());
        assert_eq!(
            objects.get(&names[0], None).unwrap(),
            Some(b"other".to_vec())
        );
        assert_eq!(
            objects.get(&names[0], Some(3..100)).unwrap(),
            Some(b"er".to_vec())
        );
        assert_eq!(
            objects.get(&names[0], Some(5..100)).unwrap(),
            Some(Vec::new())
        );
        assert_eq!(
            objects.get(&names[0], Some(6..100)).unwrap(),
            Some(Vec::new())
        );
        assert_eq!(objects.get("none", Some(0..1)).unwrap(), None);
        let wanted = [names[1].clone(), "none".to_owned(), names[19].clone()];
        assert_eq!(
            objects.get_all(&wanted).unwrap(),
            [
                Some(names[1].clone().into_bytes()),
                None,
                Some(names[19].clone().into_bytes())
            ]
        );
        assert_eq!(objects.sizes(&wanted).unwrap(), [Some(11), None, Some(11)]);
        let listed = objects.list("r1/part 1").unwrap();
        assert_eq!(
            listed
                .iter()
                .map(|item| item.key.as_str())
                .collect::<Vec<_>>(),
            names[10..].iter().map(String::as_str).collect::<Vec<_>>()
        );
        assert!(
            listed
                .iter()
                .all(|item| item.size == 11 && !item.version.is_empty())
        );
        let version = objects.list(&names[10]).unwrap()[0].version.clone();
        objects.put(&names[10], b"changed", false).unwrap();
        assert_ne!(objects.list(&names[10]).unwrap()[0].version, version);
        objects.delete(&names).unwrap();
        objects.delete(&names).unwrap();
        assert!(objects.list("").unwrap().is_empty());
        assert_eq!(
            objects.put("a/../b", b"", true).unwrap_err().kind(),
            ErrorKind::Refused
        );
    }
    let nowhere = BlobPlace {
        container: "nowhere".to_owned(),
        ..stage.place(BlobAccess::Token, "")
    };
    assert_eq!(
        stage
            .cloud
            .objects(&nowhere)
            .unwrap()
            .list("")
            .unwrap_err()
            .kind(),
        ErrorKind::NotFound
    );
}
