//! What the interface gets from the program: the verbs, which are this program again, and the facts
//! about it.

mod child;
pub(crate) mod description;
mod words;

use crate::context::Context;
use serde_json::Value;
use towline_api::replies::Caller;
use towline_api::session::{Args, Opened, Session, Verbs};
use towline_core::Result;
use towline_engine::project;
use towline_host::surroundings;
use towline_wire::api::API_VERSION;
use towline_wire::api::about::{About, KnownCluster};
use towline_wire::api::files::{Download, FilesAsk};
use towline_wire::report::Time;

/// A session for whoever calls this process.
pub(crate) fn session(context: &Context) -> Result<Session> {
    session_of(context, None)
}

/// The same for an agent, or for the user.
pub(crate) fn session_of(context: &Context, agent: Option<&str>) -> Result<Session> {
    let verbs = OwnVerbs {
        agent: agent.map(str::to_owned),
    };
    Ok(Session::new(context.state()?.clone(), Box::new(verbs)))
}

struct OwnVerbs {
    agent: Option<String>,
}

impl Verbs for OwnVerbs {
    fn call(&self, verb: &str, args: &Args, caller: &mut dyn Caller) -> Result<Value> {
        let words = match verb {
            "job.check" => words::of_check(args)?,
            "files.list" => words::of_files(&FilesAsk::List(words::read(args)?))?,
            "files.read" => words::of_files(&FilesAsk::Read(words::read(args)?))?,
            verb => words::of_call(verb, args)?,
        };
        child::run(&words, self.agent.as_deref(), caller)
    }

    fn open(&self, what: &Download) -> Result<Opened> {
        let words = words::of_files(&FilesAsk::Send(what.clone()))?;
        child::open(&words, self.agent.as_deref())
    }

    fn about(&self) -> Result<About> {
        // A context of its own: the configuration may have changed since the last call.
        let context = Context::new(true, true);
        let layers = context.layers()?;
        let folder = context.folder()?;
        let clusters = layers.config.clusters.iter();
        let named = clusters.map(|(name, cluster)| KnownCluster {
            name: name.clone(),
            kind: cluster.kind.word().to_owned(),
        });
        let mut clusters = vec![KnownCluster {
            name: "local".to_owned(),
            kind: "local".to_owned(),
        }];
        clusters.extend(named.filter(|cluster| cluster.name != "local"));
        Ok(About {
            version: towline_wire::version::version().to_owned(),
            api: API_VERSION,
            user: surroundings::user(),
            host: surroundings::host_name(),
            folder: folder.to_string_lossy().into_owned(),
            project: project::code_root(folder).to_string_lossy().into_owned(),
            clusters,
            default_cluster: layers.default_cluster().to_owned(),
            now: Time(towline_host::clock::now()),
        })
    }
}
