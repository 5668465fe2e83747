//! The upload of code: a container of its own, and a signature for it.

use super::answer::{Outcome, good, refusal};
use super::call::Call;
use super::ids::{Scope, uuid_of};
use super::world::World;
use serde_json::json;

/// How long a signature for an upload is valid.
const UPLOAD_SECONDS: i64 = 24 * 3600;

pub(super) fn start_upload(
    world: &World,
    call: &Call,
    scope: &Scope,
    name: &str,
    version: &str,
) -> Outcome {
    if call.method != "POST" {
        return Err(super::routes::not_allowed());
    }
    let id = call.json_or_empty()["pendingUploadId"]
        .as_str()
        .map_or_else(
            || uuid_of(&format!("{} {name} {version}", scope.key())),
            ToOwned::to_owned,
        );
    // The same upload gets the same container again.
    let container = uuid_of(&format!("{} {name} {version} {id}", scope.key()));
    let broken = |error: String| refusal(500, "InternalServerError", &error);
    world.blobs.make_container(&container).map_err(broken)?;
    let address = world.blobs.address(&container, "");
    let signature = world
        .blobs
        .account
        .container_sas(&container, "rcwl", UPLOAD_SECONDS);
    good(json!({
        "pendingUploadId": id,
        "pendingUploadType": "TemporaryBlobReference",
        "blobReferenceForConsumption": {
            "blobUri": address,
            "storageAccountArmId": format!("{}/providers/Microsoft.Storage/storageAccounts/{}", scope.group_id(), world.blobs.account.name),
            "credential": {"credentialType": "SAS", "sasUri": format!("{address}?{signature}")},
        },
    }))
}
