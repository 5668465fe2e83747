//! A program around the flow: one project, one cluster in memory, and notes of what it was asked.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use towline_core::Result;
use towline_core::cluster::Cluster;
use towline_core::config::{self, Datastore};
use towline_core::redact::Secret;
use towline_engine::flow::outside::ClusterOpener;
use towline_engine::flow::{OpenCluster, Outside, Terminal};
use towline_engine::layers::{self, Layers, Sources};
use towline_host::surroundings::Environment;
use towline_snapshot::progress::Progress;
use towline_testkit::toy::ToyCluster;
use towline_wire::cluster::NamedCluster;
use towline_wire::layout::StateFolder;
use towline_wire::runner::Variables;

pub(crate) struct TestProgram {
    folder: TempDir,
    layers: Layers,
    state: StateFolder,
    variables: Environment,
    pub(crate) toy: Arc<ToyCluster>,
    /// Datastores whose definition was checked.
    pub(crate) checked: RefCell<Vec<String>>,
    /// What the user was shown the progress of.
    pub(crate) watched: RefCell<Vec<&'static str>>,
}

impl TestProgram {
    /// With this text as the user's configuration.
    pub(crate) fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        fs::create_dir(&project).unwrap();
        fs::write(project.join("towline.yaml"), "").unwrap();
        let user_file = folder.path().join("config.yaml");
        fs::write(&user_file, config).unwrap();
        let sources = Sources {
            user_file: Some(user_file),
            ..Sources::default()
        };
        Self {
            layers: layers::load(&sources).unwrap(),
            state: StateFolder::new(folder.path().join("state/towline/host")),
            variables: Environment::default(),
            toy: Arc::default(),
            checked: RefCell::default(),
            watched: RefCell::default(),
            folder,
        }
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().join("project").canonicalize().unwrap()
    }
}

impl Outside for TestProgram {
    fn layers(&self) -> Result<&Layers> {
        Ok(&self.layers)
    }
    fn state(&self) -> Result<&StateFolder> {
        Ok(&self.state)
    }
    fn variables(&self) -> &Environment {
        &self.variables
    }
    fn terminal(&self) -> Terminal {
        Terminal {
            can_ask: false,
            tell: |line| panic!("nothing is to be told: {line}"),
        }
    }
    fn cluster(&self, name: &str) -> Result<OpenCluster> {
        Ok(OpenCluster {
            cluster: self.toy.clone(),
            named: NamedCluster {
                name: name.to_owned(),
                cluster: config::Cluster::local(),
                variables: Variables::default(),
            },
            terminal: self.terminal(),
        })
    }
    fn opener(&self, _: &NamedCluster) -> Result<ClusterOpener> {
        let toy: Arc<dyn Cluster> = self.toy.clone();
        Ok(Box::new(move || Ok(toy)))
    }
    fn check_datastore(&self, name: &str, _: &Datastore) -> Result<()> {
        self.checked.borrow_mut().push(name.to_owned());
        Ok(())
    }
    fn secret(&self, at: &str, key: &str, reference: &str) -> Result<Secret> {
        Ok(Secret::new(format!("{at} {key} {reference}")))
    }
    fn limits_memory(&self) -> bool {
        true
    }
    fn watch(&self, what: &'static str, _: &Progress, work: &mut dyn FnMut()) {
        self.watched.borrow_mut().push(what);
        work();
    }
    fn write_aliases(&self) {}
}
