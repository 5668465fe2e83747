//! `tow __crew`, on the nodes of a service: its arguments, and access to the secrets of its run.
//! The secrets are in a vault that the job's identity may read. No error message contains a secret.

use crate::data::stores::runtime;
use bytes::Bytes;
use http::Request;
use serde_json::Value;
use std::ffi::OsString;
use std::io;
use towline_core::redact::{Secret, SecretSet};
use towline_core::{Error, ErrorKind, Result, RunId};
use towline_host::surroundings;
use towline_io::web::{Answer, AskError, Web};
use towline_runner::crew::{CrewTask, Pace, crew_main, local_disk};
use towline_wire::crew::SecretPlace;

/// The audience of a token for a vault, as a query writes it. Other clouds have their own.
fn resource(vault: &str) -> String {
    let host = vault
        .split("://")
        .nth(1)
        .unwrap_or(vault)
        .split(['/', ':'])
        .next()
        .unwrap_or_default();
    let service = host
        .split_once(".vault.")
        .map_or("azure.net", |(_, rest)| rest);
    format!("https%3A%2F%2Fvault.{service}")
}

/// The URL where a machine of the cloud gets tokens for its identity.
const METADATA_ADDRESS: &str = "http://169.254.169.254/metadata/identity/oauth2/token";

pub(crate) fn main(words: &[OsString]) -> io::Result<i32> {
    crew_main(&task(words)?, &find)
}

/// Parses the arguments, which come in pairs in any order.
fn task(words: &[OsString]) -> io::Result<CrewTask> {
    let words: Vec<&str> = words
        .iter()
        .map(|word| {
            word.to_str()
                .ok_or_else(|| io::Error::other("an argument is not UTF-8"))
        })
        .collect::<io::Result<_>>()?;
    let of = |name: &str| {
        words
            .chunks(2)
            .find(|pair| pair[0] == name)
            .and_then(|pair| pair.get(1))
            .copied()
    };
    let needed =
        |name: &str| of(name).ok_or_else(|| io::Error::other(format!("{name} is missing")));
    let at = words
        .chunks(2)
        .filter(|pair| pair[0] == "--at")
        .map(|pair| {
            let (name, place) = pair
                .get(1)
                .and_then(|text| text.split_once('='))
                .ok_or_else(|| io::Error::other("--at takes NAME=PATH"))?;
            Ok((name.to_owned(), place.to_owned()))
        });
    Ok(CrewTask {
        order: needed("--order")?.into(),
        run: RunId::try_from(needed("--run")?.to_owned()).map_err(io::Error::other)?,
        folder: needed("--folder")?.into(),
        status: needed("--news")?.into(),
        store: of("--store").map(Into::into),
        at: at.collect::<io::Result<_>>()?,
        local: local_disk(),
        pace: Pace::default(),
    })
}

/// Reads all secrets of a run.
fn find(place: &SecretPlace) -> Result<SecretSet> {
    let variable = |name: &str| surroundings::variable(name).filter(|value| !value.is_empty());
    let asked = token_question(
        &variable,
        place.client_id.as_deref(),
        &resource(&place.vault),
    );
    runtime()?.block_on(async {
        let web = Web::new()?;
        let answer = ask(&web, &asked, "the job's identity").await?;
        let token = field(&answer, "access_token")
            .ok_or_else(|| Error::refused("the job's identity has no token for its vault"))?;
        let mut found = SecretSet::default();
        for (name, key) in &place.names {
            let question = Question {
                address: format!(
                    "{}/secrets/{key}?api-version=7.4",
                    place.vault.trim_end_matches('/')
                ),
                header: Some(("authorization", format!("Bearer {token}"))),
            };
            let answer = ask(&web, &question, &format!("`{key}` in {}", place.vault)).await?;
            let value = field(&answer, "value").ok_or_else(|| {
                Error::refused(format!("`{key}` in {} has no value", place.vault))
            })?;
            found.0.insert(name.clone(), Secret::new(value));
        }
        Ok(found)
    })
}

/// A URL and its authorisation. It contains secrets, so it has no `Debug`.
#[derive(PartialEq, Eq)]
struct Question {
    address: String,
    header: Option<(&'static str, String)>,
}

/// The request for a token on this node: to the job's own service, to an older one, or to the
/// machine.
fn token_question(
    variable: &dyn Fn(&str) -> Option<String>,
    client: Option<&str>,
    resource: &str,
) -> Question {
    let client = client
        .map(str::to_owned)
        .or_else(|| variable("DEFAULT_IDENTITY_CLIENT_ID"));
    let with = |start: String, word: &str| {
        client.as_ref().map_or_else(
            || start.clone(),
            |client| format!("{start}&{word}={client}"),
        )
    };
    if let (Some(endpoint), Some(header)) =
        (variable("IDENTITY_ENDPOINT"), variable("IDENTITY_HEADER"))
    {
        let address = with(
            format!("{endpoint}?resource={resource}&api-version=2019-08-01"),
            "client_id",
        );
        return Question {
            address,
            header: Some(("x-identity-header", header)),
        };
    }
    if let Some(endpoint) = variable("MSI_ENDPOINT") {
        let address = with(
            format!("{endpoint}?resource={resource}&api-version=2017-09-01"),
            "clientid",
        );
        return Question {
            address,
            header: variable("MSI_SECRET").map(|secret| ("secret", secret)),
        };
    }
    let address = with(
        format!("{METADATA_ADDRESS}?api-version=2018-02-01&resource={resource}"),
        "client_id",
    );
    Question {
        address,
        header: Some(("metadata", "true".to_owned())),
    }
}

async fn ask(web: &Web, question: &Question, what: &str) -> Result<Answer> {
    let make = || {
        let start = Request::get(&question.address).header("accept", "application/json");
        let whole = question
            .header
            .iter()
            .fold(start, |request, (name, value)| request.header(*name, value));
        // The library's own message would quote the secret.
        whole.body(Bytes::new()).map_err(|_| {
            Error::refused(format!(
                "{what} cannot be requested: its URL or its credential has characters that cannot \
                    be sent"
            ))
        })
    };
    match web.ask(make).await {
        Ok(answer) if answer.status.is_success() => Ok(answer),
        Ok(answer) => Err(Error::new(
            ErrorKind::refusal_of_status(answer.status.as_u16()),
            format!("{what} was refused: {}", answer.message()),
        )),
        Err(AskError::Unmade(error)) => Err(error),
        Err(AskError::Unanswered(problem)) => Err(Error::unreachable(format!(
            "{what} was refused: {}",
            problem.message
        ))),
    }
}

fn field(answer: &Answer, name: &str) -> Option<String> {
    let value: Value = serde_json::from_slice(&answer.body).ok()?;
    value.get(name)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(
        variables: &[(&str, &str)],
        client: Option<&str>,
    ) -> (String, Option<(&'static str, String)>) {
        let variable = |name: &str| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        };
        let Question { address, header } =
            token_question(&variable, client, &resource("https://x.vault.azure.net"));
        (address, header)
    }

    #[test]
    fn a_token_is_for_the_cloud_that_the_vault_is_in() {
        for (vault, asked) in [
            (
                "https://kv.vault.azure.net",
                "https%3A%2F%2Fvault.azure.net",
            ),
            ("https://kv.vault.azure.cn/", "https%3A%2F%2Fvault.azure.cn"),
            (
                "https://kv.vault.usgovcloudapi.net:443",
                "https%3A%2F%2Fvault.usgovcloudapi.net",
            ),
            ("https://127.0.0.1:1234", "https%3A%2F%2Fvault.azure.net"),
        ] {
            assert_eq!(resource(vault), asked);
        }
    }

    #[test]
    fn a_token_is_asked_for_where_the_node_gives_them() {
        let job = [
            ("IDENTITY_ENDPOINT", "http://127.0.0.1:1/token"),
            ("IDENTITY_HEADER", "h"),
            ("MSI_ENDPOINT", "http://x"),
        ];
        let (address, header) = asked(&job, Some("me"));
        assert_eq!(
            address,
            "http://127.0.0.1:1/token?resource=https%3A%2F%2Fvault.azure.net&api-version=2019-08-01&client_id=me"
        );
        assert_eq!(header, Some(("x-identity-header", "h".to_owned())));
        let (address, header) = asked(
            &[
                ("MSI_ENDPOINT", "http://x"),
                ("MSI_SECRET", "s"),
                ("DEFAULT_IDENTITY_CLIENT_ID", "d"),
            ],
            None,
        );
        assert!(
            address.ends_with("api-version=2017-09-01&clientid=d"),
            "{address}"
        );
        assert_eq!(header, Some(("secret", "s".to_owned())));
        assert!(asked(&[], None).0.starts_with(METADATA_ADDRESS));
    }

    #[test]
    fn words_are_pairs() {
        let run = RunId::new("x", 1, 2).to_string();
        let words = |text: &str| {
            text.replace("RUN", &run)
                .split(' ')
                .map(OsString::from)
                .collect::<Vec<_>>()
        };
        let task = task(&words(
            "--order o --run RUN --at data=/a=b --folder f --news n --at copy/=/c",
        ))
        .expect("whole");
        assert_eq!(
            task.at,
            [
                ("data".to_owned(), "/a=b".to_owned()),
                ("copy/".to_owned(), "/c".to_owned())
            ]
        );
        assert!(super::task(&words("--order o --run RUN --folder f")).is_err());
    }
}
