//! Blobs through the emulator, for reads that end early: half of the requested bytes come, without
//! an error.

use super::answer::{Answer, Outcome, refusal};
use super::call::Call;
use super::world::World;

pub(super) fn route(world: &World, call: &Call, words: &[&str]) -> Outcome {
    let [container, name @ ..] = words else {
        return Err(refusal(
            404,
            "ResourceNotFound",
            "The specified resource does not exist.",
        ));
    };
    let name = name.join("/");
    let expected = world.blobs.account.blob_sas(container, &name, "r", 0);
    let key = |text: &str| {
        text.split('&')
            .find(|word| word.starts_with("sv="))
            .map(ToOwned::to_owned)
    };
    // The blob service checks the signature itself; here it must only be present.
    if call.query("sig").is_none()
        || call.query("sv").map(|version| format!("sv={version}")) != key(&expected)
    {
        return Err(refusal(
            403,
            "AuthenticationFailed",
            "Server failed to authenticate the request.",
        ));
    }
    let bytes = world
        .blobs
        .get(container, &name)
        .map_err(|error| refusal(500, "InternalError", &error))?;
    let bytes =
        bytes.ok_or_else(|| refusal(404, "BlobNotFound", "The specified blob does not exist."))?;
    let start = call
        .header("range")
        .or_else(|| call.header("x-ms-range"))
        .and_then(|text| text.strip_prefix("bytes=")?.split('-').next()?.parse().ok());
    let total = bytes.len();
    let from: usize = start.unwrap_or(0);
    if from > 0 && from >= total {
        return Err(refusal(
            416,
            "InvalidRange",
            "The range specified is invalid for the current size of the resource.",
        ));
    }
    let rest = &bytes[from..];
    let half = rest[..rest.len().div_ceil(2)].to_vec();
    let end = from + half.len();
    let answer = Answer::bytes(if start.is_some() { 206 } else { 200 }, half)
        .with("x-ms-blob-type", "AppendBlob");
    Ok(if start.is_some() {
        answer.with(
            "Content-Range",
            format!("bytes {from}-{}/{end}", end.saturating_sub(1)),
        )
    } else {
        answer
    })
}
