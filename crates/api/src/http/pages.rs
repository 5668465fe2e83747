//! The files of the page.

use super::{Body, answer, whole};
use flate2::read::GzDecoder;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use std::io::Read;
use towline_core::Error;

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub struct File {
    pub name: &'static str,
    /// Its content, compressed by gzip.
    pub gzip: &'static [u8],
    /// Changes with its content; in quotes, as the header wants it.
    pub tag: &'static str,
}

/// A file by the path of a request. Places within the page are behind the `#`, so no other path is
/// one of the page.
pub(super) fn file(files: &[File], path: &str, headers: &HeaderMap) -> Response<Body> {
    let name = path.trim_start_matches('/');
    let name = if name.is_empty() { "index.html" } else { name };
    let Some(file) = files.iter().find(|file| file.name == name) else {
        let error = Error::not_found(format!("there is no {path}"));
        return answer::failure(StatusCode::NOT_FOUND, &error);
    };
    let tag = HeaderValue::from_static(file.tag);
    let is_known = headers.get(IF_NONE_MATCH) == Some(&tag);
    let takes_gzip = headers
        .get(ACCEPT_ENCODING)
        .and_then(|encodings| encodings.to_str().ok())
        .is_some_and(|encodings| encodings.contains("gzip"));
    let mut response = if is_known {
        let mut response = Response::new(whole(""));
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else if takes_gzip {
        let mut response = Response::new(whole(file.gzip));
        let gzip = HeaderValue::from_static("gzip");
        response.headers_mut().insert(CONTENT_ENCODING, gzip);
        response
    } else {
        Response::new(whole(unpacked(file)))
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind(name)));
    headers.insert(ETAG, tag);
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    // It is asked for again each time: the next version of the program has another page.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// The content, for a client that cannot unpack it.
fn unpacked(file: &File) -> Vec<u8> {
    let mut bytes = Vec::new();
    // It is our own content: it was packed when the program was built.
    let _ = GzDecoder::new(file.gzip).read_to_end(&mut bytes);
    bytes
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, end)| end) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}
