//! Access control, and the resources around a workspace.

use crate::ask::Asker;
use serde_json::json;

#[test]
fn tokens_are_looked_at() {
    let asker = Asker::start();
    let path = format!("{}{}", asker.aml.endpoint(), asker.of_workspace("jobs"));
    let code = |path: &str, token: Option<String>| {
        let header = token
            .map(|token| format!("Bearer {token}"))
            .unwrap_or_default();
        let headers = [("Authorization", header.as_str())];
        let said = asker
            .send(
                "GET",
                path,
                if header.is_empty() { &[] } else { &headers },
                None,
            )
            .unwrap();
        assert_eq!(
            said.headers.contains_key("www-authenticate"),
            said.status == 401
        );
        said.json["error"]["code"]
            .as_str()
            .unwrap_or("good")
            .to_owned()
    };
    let token = |audience: &str, seconds: i64| Some(asker.aml.token(audience, seconds));
    assert_eq!(code(&path, None), "AuthenticationFailed");
    assert_eq!(
        code(&path, token("https://management.azure.com", 60)),
        "good"
    );
    assert_eq!(
        code(&path, token("https://management.core.windows.net/", 60)),
        "good"
    );
    assert_eq!(
        code(&path, token("https://management.azure.com", -1)),
        "ExpiredAuthenticationToken"
    );
    assert_eq!(
        code(&path, token("https://storage.azure.com", 60)),
        "InvalidAuthenticationTokenAudience"
    );
    assert_eq!(
        code(&path, token("https://ml.azure.com", 60)),
        "InvalidAuthenticationTokenAudience"
    );
    assert_eq!(
        code(
            &path,
            token("https://management.azure.com", 60).map(|token| format!("{token}x"))
        ),
        "InvalidAuthenticationToken"
    );
    let history = format!("{}{}", asker.aml.endpoint(), asker.of_history("runs/none"));
    assert_eq!(
        code(&history, token("https://ml.azure.com", 60)),
        "UserError"
    );
    assert_eq!(
        code(&history, token("https://storage.azure.com", 60)),
        "InvalidAuthenticationTokenAudience"
    );
}

#[test]
fn versions_have_a_form() {
    let asker = Asker::start();
    let with = |version: &str| {
        asker
            .get(&format!("{}{version}", asker.aml.scope().id()))
            .status
    };
    assert_eq!(
        ["?api-version=2024-04-01", "?api-version=2031-12-01-preview"].map(with),
        [200, 200]
    );
    assert_eq!(
        [
            "",
            "?api-version=",
            "?api-version=latest",
            "?api-version=2024-4-1",
            "?api-version=2024-04-01-beta"
        ]
        .map(with),
        [400; 5]
    );
}

#[test]
fn identities_get_tokens() {
    let asker = Asker::start();
    let [(_, endpoint), (_, secret)] = asker.aml.identity();
    let ask = |path: &str, secret: &str| {
        asker
            .send(
                "GET",
                &format!("{endpoint}{path}"),
                &[("X-IDENTITY-HEADER", secret)],
                None,
            )
            .unwrap()
    };
    let asked = "?api-version=2019-08-01&resource=https://vault.azure.net";
    assert_eq!(
        (
            ask(asked, "wrong").status,
            ask("?api-version=2019-08-01", &secret).status
        ),
        (401, 400)
    );
    asker
        .aml
        .conditions(|conditions| conditions.token_lifetime = 1);
    let short = ask(asked, &secret).json;
    assert!(short["expires_on"].as_str().unwrap().parse::<i64>().is_ok());
    asker
        .aml
        .conditions(|conditions| conditions.token_lifetime = 3600);
    let token = ask(asked, &secret).json["access_token"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("{}/secrets/hf?api-version=7.4", asker.aml.endpoint());
    let bearer = format!("Bearer {token}");
    let authorized = [("Authorization", bearer.as_str())];
    assert_eq!(
        asker.send("GET", &path, &authorized, None).unwrap().json["error"]["code"],
        "SecretNotFound"
    );
    assert_eq!(
        asker
            .send("PUT", &path, &authorized, Some(&json!({"value": "hidden"})))
            .unwrap()
            .status,
        200
    );
    assert_eq!(
        asker.send("GET", &path, &authorized, None).unwrap().json["value"],
        "hidden"
    );
    assert_eq!(asker.get(&path).status, 401, "a token for another audience");
    let recorded = serde_json::to_string(
        &asker
            .aml
            .recorded()
            .into_iter()
            .map(|pair| pair.json)
            .collect::<Vec<_>>(),
    )
    .unwrap();
    assert!(
        !recorded.contains("hidden") && !recorded.contains(&token) && !recorded.contains(&secret)
    );
}

/// How a job reads a secret: a token of its identity, then the vault.
const SECRET_READER_SCRIPT: &str = r"
import json, os, ssl, urllib.request
def ask(address, name, value, **more):
    return json.load(urllib.request.urlopen(urllib.request.Request(address, headers={name: value}), **more))
address = os.environ['IDENTITY_ENDPOINT'] + '?api-version=2019-08-01&resource=https://vault.azure.net'
token = ask(address, 'X-IDENTITY-HEADER', os.environ['IDENTITY_HEADER'])['access_token']
print(ask(os.environ['VAULT'], 'Authorization', 'Bearer ' + token, context=ssl.create_default_context(cafile=os.environ['CA']))['value'])
";

#[test]
fn a_job_reads_a_secret_by_its_identity() {
    let asker = Asker::start();
    let vault = format!("{}/secrets/hf?api-version=7.4", asker.aml.endpoint());
    let bearer = format!("Bearer {}", asker.aml.token("https://vault.azure.net", 60));
    asker
        .send(
            "PUT",
            &vault,
            &[("Authorization", &bearer)],
            Some(&json!({"value": "from the vault"})),
        )
        .unwrap();
    let command = format!("python3 - <<'END'\n{SECRET_READER_SCRIPT}END");
    let variables = json!({"VAULT": vault, "CA": asker.aml.authority()});
    asker.made_job(
        "reads",
        &command,
        &json!({"environmentVariables": variables, "identity": {"identityType": "Managed"}}),
    );
    asker.await_status("reads", "Completed");
    assert_eq!(
        asker.log("reads", "user_logs/std_log.txt"),
        "from the vault\n"
    );
    // Without an identity there is no endpoint.
    asker.made_job("asks", "test -z \"$IDENTITY_ENDPOINT\"", &json!({}));
    asker.await_status("asks", "Completed");
}

#[test]
fn virtual_clusters_are_found() {
    let asker = Asker::start();
    let asked = json!({"query": "resources | where type == \
        'microsoft.machinelearningservices/virtualclusters'"});
    let found = asker
        .ask(
            "POST",
            "/providers/Microsoft.ResourceGraph/resources?api-version=2021-03-01",
            Some(&asked),
        )
        .json;
    assert_eq!(found["data"][0]["id"], asker.aml.cluster().as_str());
    for id in [
        asker.aml.cluster(),
        asker
            .aml
            .cluster()
            .replace("virtualclusters", "virtualClusters"),
    ] {
        let cluster = asker
            .get(&format!("{id}?api-version=2021-03-01-preview"))
            .json;
        let limits = cluster["properties"]["managed"]["quotas"]["westus3"]["limits"]
            .as_array()
            .unwrap()
            .clone();
        assert!(
            limits.iter().any(|limit| limit["slaTier"] == "Premium"
                && limit["limit"] == 64
                && limit["used"] == 48),
            "{limits:?}"
        );
    }
    asker.aml.conditions(|conditions| {
        conditions
            .quotas
            .iter_mut()
            .for_each(|quota| quota.region = "eastus".to_owned());
    });
    let quotas = asker
        .get(&format!(
            "{}?api-version=2021-03-01-preview",
            asker.aml.cluster()
        ))
        .json["properties"]["managed"]["quotas"]
        .clone();
    assert_eq!(
        quotas.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["eastus"]
    );
    let subscription = asker.aml.scope().subscription;
    let series = format!(
        "/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/locations/westus3/instancetypeseries?api-version=2021-03-01-preview"
    );
    assert!(
        asker.get(&series).json["value"]
            .as_array()
            .unwrap()
            .iter()
            .any(|series| series["id"] == "NDAMv4")
    );
    let images = format!(
        "/subscriptions/{subscription}/providers/Microsoft.Singularity/images?api-version=2020-12-01-preview"
    );
    assert!(
        !asker.get(&images).json["value"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn running_jobs_are_on_nodes() {
    let asker = Asker::start();
    let compute = format!("{}/computes/cpu", asker.aml.scope().id());
    asker.made_job(
        "on",
        "sleep 600",
        &json!({"computeId": compute, "resources": {"instanceCount": 2}}),
    );
    asker.await_status("on", "Running");
    let nodes = asker
        .ask("POST", &asker.of_workspace("computes/cpu/listNodes"), None)
        .json["nodes"]
        .clone();
    assert_eq!(
        nodes
            .as_array()
            .unwrap()
            .iter()
            .filter(|node| node["runId"] == "on")
            .count(),
        2,
        "{nodes}"
    );
    assert_eq!(
        asker.get(&asker.of_workspace("computes/cpu")).json["properties"]["properties"]["currentNodeCount"],
        2
    );
}

#[test]
fn the_blob_service_takes_the_same_tokens() {
    let asker = Asker::start();
    let azurite = asker.aml.azurite();
    let list = |token: &str| {
        azurite
            .client_with(azurite.first(), "--bearer", token)
            .run(["list", "azureml"])
    };
    assert!(list(&asker.aml.token("https://storage.azure.com", 600)).good);
    assert!(!list(&asker.aml.token("https://storage.azure.com", -600)).good);
    assert!(!list(&asker.aml.token("https://ml.azure.com", 600)).good);
}

#[test]
fn secrets_of_datastores_may_expire() {
    let asker = Asker::start();
    let path = asker.of_workspace("datastores/workspaceblobstore/listSecrets");
    let asked = json!({"expirableSecret": true, "expireAfterHours": 1});
    assert_eq!(
        asker.ask("POST", &path, Some(&asked)).json["secretsType"],
        "AccountKey"
    );
    asker
        .aml
        .conditions(|conditions| conditions.expirable_secrets = true);
    let signature = asker.ask("POST", &path, Some(&asked)).json["sasToken"]
        .as_str()
        .unwrap()
        .to_owned();
    let container = asker
        .get(&asker.of_workspace("datastores/workspaceblobstore"))
        .json["properties"]["containerName"]
        .as_str()
        .unwrap()
        .to_owned();
    let azurite = asker.aml.azurite();
    assert!(
        azurite
            .client_with(azurite.first(), "--sas", &signature)
            .run(["list", &container])
            .good
    );
    assert_eq!(
        asker.ask("POST", &path, None).json["secretsType"],
        "AccountKey"
    );
    // No other answer contains the key.
    let shown = [
        asker.get(&asker.of_workspace("datastores")),
        asker.get(&asker.of_workspace("datastores/workspaceblobstore")),
    ];
    assert!(
        !shown
            .iter()
            .any(|said| said.json.to_string().contains(azurite.key()))
    );
}
