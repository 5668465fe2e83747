//! A test cloud, and the environment of a process that signs in to it.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use towline_core::cloud::{Call, Method};
use towline_core::config::Credential;
use towline_core::{Error, Result};
use towline_io::azure::cloud::Cloud;
use towline_io::azure::identity::{SignIn, Surroundings};
use towline_io::web::{Answer, Web};
use towline_testkit::aml::Aml;

pub(crate) const SIGN_IN_COMMAND: &str = "tow sign-in-please";

pub(crate) struct Stage {
    pub aml: Aml,
    pub folder: TempDir,
    pub variables: Arc<Mutex<BTreeMap<String, String>>>,
    pub messages: Arc<Mutex<Vec<String>>>,
    runtime: Runtime,
}

impl Stage {
    pub(crate) fn start() -> Self {
        let aml = Aml::start();
        let variables = aml.identity().into_iter().collect();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        Self {
            aml,
            folder: tempfile::tempdir().unwrap(),
            variables: Arc::new(Mutex::new(variables)),
            messages: Arc::default(),
            runtime,
        }
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.folder.path().join("azure")
    }
    pub(crate) fn set(&self, name: &str, value: &str) {
        self.variables
            .lock()
            .unwrap()
            .insert(name.to_owned(), value.to_owned());
    }
    pub(crate) fn messages(&self) -> Vec<String> {
        self.messages.lock().unwrap().clone()
    }

    fn surroundings(&self) -> Surroundings {
        let (variables, messages) = (Arc::clone(&self.variables), Arc::clone(&self.messages));
        Surroundings {
            network: towline_io::network::Network::default(),
            variable: Arc::new(move |name| variables.lock().unwrap().get(name).cloned()),
            keyring: Arc::new(|_| None),
            home: None,
            tell: Arc::new(move |line| messages.lock().unwrap().push(line.to_owned())),
            command: SIGN_IN_COMMAND.to_owned(),
        }
    }

    /// The cloud of a new process, which knows only the files of another.
    pub(crate) fn cloud(&self, credential: &str, profile: Option<&str>) -> Cloud {
        let yaml = towline_core::yaml::parse("test", credential).unwrap();
        let credential: Credential = towline_core::yaml::decode(&yaml).unwrap();
        self.cloud_of(Some(&credential), profile)
    }
    /// The cloud of a cluster whose configuration names no credential.
    pub(crate) fn unset(&self) -> Cloud {
        self.cloud_of(None, None)
    }

    fn cloud_of(&self, credential: Option<&Credential>, profile: Option<&str>) -> Cloud {
        let sign_in = SignIn::new(
            "cluster `lab`",
            credential,
            profile,
            self.surroundings(),
            &self.cache(),
        )
        .unwrap();
        let web = Web::trusting(&std::fs::read(self.aml.authority()).unwrap()).unwrap();
        Cloud::new(
            "cluster `lab`",
            Some(self.aml.endpoint()),
            sign_in,
            &self.cache(),
        )
        .unwrap()
        .with_web(web)
    }
    /// A cloud with the managed identity, which needs no set-up.
    pub(crate) fn default_cloud(&self) -> Cloud {
        self.cloud("managed_identity", None)
    }

    pub(crate) fn wait<T>(&self, act: impl Future<Output = T>) -> T {
        self.runtime.block_on(act)
    }
    /// A call of this method to the workspace.
    pub(crate) fn question(&self, method: Method, below: &str) -> Call {
        let url = format!(
            "{}{}{below}?api-version=2024-04-01",
            self.aml.endpoint(),
            self.aml.scope().id()
        );
        Call {
            method,
            repeatable: method != Method::Post,
            ..Call::get(url)
        }
    }
    pub(crate) fn get(&self, cloud: &Cloud) -> Result<Answer> {
        self.wait(cloud.call(&self.question(Method::Get, "")))
    }
    #[track_caller]
    pub(crate) fn works(&self, cloud: &Cloud) {
        let answer = self.get(cloud).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// The number of requests with this part in their path or query.
    pub(crate) fn asked(&self, part: &str) -> usize {
        self.aml
            .recorded()
            .iter()
            .filter(|pair| pair.target.contains(part))
            .count()
    }
}

/// All that a user could see of an error.
pub(crate) fn shown(error: &Error) -> String {
    format!("{error} {error:?} {:?}", error.hints())
}
