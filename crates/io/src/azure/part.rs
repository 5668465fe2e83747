//! Parts of blobs that may have grown or may end earlier than the range: logs, and records of
//! others.

use super::Azure;
use super::call::Call;
use crate::data::{Data, Key};
use bytes::Bytes;
use http::{Method, StatusCode};
use std::ops::Range;
use towline_core::Result;

impl Azure {
    /// The bytes of a range, fewer where the blob ends before it; without a range all of them.
    /// `None` if there is no such blob.
    pub async fn part(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Bytes>> {
        let mut call = Call::new(Method::GET, Some(&self.full(key)), 'r');
        if let Some(range) = range {
            if range.is_empty() {
                return Ok(self.head(key).await?.map(|_| Bytes::new()));
            }
            let end = if range.end == u64::MAX {
                String::new()
            } else {
                (range.end - 1).to_string()
            };
            call = call.header("x-ms-range", format!("bytes={}-{end}", range.start));
        }
        let answer = self.service.ask(&call).await?;
        match answer.status {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => Ok(Some(answer.body)),
            // The range begins at the end of the blob, or after it.
            StatusCode::RANGE_NOT_SATISFIABLE => Ok(Some(Bytes::new())),
            StatusCode::NOT_FOUND
                if answer.header("x-ms-error-code") != Some("ContainerNotFound") =>
            {
                Ok(None)
            }
            _ => Err(self.service.explain(&call, &answer)),
        }
    }
}
