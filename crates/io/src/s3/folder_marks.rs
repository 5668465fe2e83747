//! Empty objects that stand for folders: their names end in `/`.

use super::S3;
use crate::data::{Data, FolderMark, Key, Object};
use crate::web::AskError;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::aws::AwsAuthorizer;
use object_store::client::{HttpRequest, HttpRequestBody};
use object_store::signer::Signer;
use std::time::Duration;
use towline_core::{Error, ErrorKind, Result};

impl S3 {
    /// Takes the marks of folders out of a listing. Their names end in `/`, but `object_store`
    /// drops that slash. So an empty object that does not exist under its listed name is a mark.
    pub(super) async fn marks_among(&self, objects: &mut Vec<Object>) -> Result<Vec<FolderMark>> {
        let empty: Vec<Key> = objects
            .iter()
            .filter(|object| object.size == 0)
            .map(|object| object.key.clone())
            .collect();
        let is_mark = |key: Key| async move {
            Ok::<_, Error>(self.head(&key).await?.is_none().then_some(key))
        };
        let folders: Vec<Key> = stream::iter(empty)
            .map(is_mark)
            .buffered(16)
            .try_filter_map(|key| async move { Ok(key) })
            .try_collect()
            .await?;
        objects.retain(|object| object.size > 0 || !folders.contains(&object.key));
        Ok(folders
            .into_iter()
            .map(|folder| FolderMark {
                folder,
                has_slash: true,
            })
            .collect())
    }

    /// Deletes `FOLDER/`, a name that no path of `object_store` can have.
    pub(super) async fn delete_mark(&self, folder: Key) -> Result<()> {
        let address = self
            .store
            .signed_url(
                http::Method::DELETE,
                &self.path(&folder)?,
                Duration::from_secs(60),
            )
            .await
            .map_err(|error| self.explain(error))?;
        let address = format!(
            "{}/",
            address.as_str().split('?').next().unwrap_or_default()
        );
        let credential = self
            .store
            .credentials()
            .get_credential()
            .await
            .map_err(|error| self.explain(error))?;
        let make = || -> Result<http::Request<Bytes>> {
            let wrong = |error: &dyn std::fmt::Display| {
                Error::bug(format!(
                    "a request to {} cannot be made: {error}",
                    self.place
                ))
            };
            let mut request: HttpRequest = http::Request::new(HttpRequestBody::empty());
            *request.method_mut() = http::Method::DELETE;
            *request.uri_mut() = address
                .parse()
                .map_err(|error: http::uri::InvalidUri| wrong(&error))?;
            AwsAuthorizer::new(&credential, "s3", &self.region)
                .try_authorize(&mut request, None)
                .map_err(|error| wrong(&error))?;
            Ok(http::Request::from_parts(
                request.into_parts().0,
                Bytes::new(),
            ))
        };
        let answer = self.web.ask(make).await.map_err(|error| match error {
            AskError::Unmade(error) => error,
            AskError::Unanswered(problem) => problem.explain(&self.place, &self.host),
        })?;
        if answer.status.is_success() || answer.status == http::StatusCode::NOT_FOUND {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::refusal_of_status(answer.status.as_u16()),
            format!(
                "{folder}/ in {}: the service answers {}",
                self.place,
                answer.message()
            ),
        ))
    }
}
