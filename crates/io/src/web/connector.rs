//! Our client for the calls that `object_store` makes.

use super::{AskError, NoAnswer, Web};
use async_trait::async_trait;
use bytes::Bytes;
use http::Request;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};

/// Gives `object_store` our client, with its retries and whole answers.
#[derive(Debug)]
pub(crate) struct Connector(pub(crate) Web);

impl HttpConnector for Connector {
    fn connect(&self, _: &object_store::ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.0.clone()))
    }
}

#[async_trait]
impl HttpService for Web {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let body = collect(body).await?;
        let make = || Ok::<_, NoAnswer>(Request::from_parts(parts.clone(), body.clone()));
        let answer = self.ask(make).await.map_err(|error| match error {
            AskError::Unmade(problem) | AskError::Unanswered(problem) => {
                HttpError::new(HttpErrorKind::Unknown, problem)
            }
        })?;
        let mut response = http::Response::new(HttpResponseBody::from(answer.body));
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}

async fn collect(body: HttpRequestBody) -> Result<Bytes, HttpError> {
    if let Some(bytes) = body.as_bytes() {
        return Ok(bytes.clone());
    }
    let collected = http_body_util::BodyExt::collect(body).await?;
    Ok(collected.to_bytes())
}
