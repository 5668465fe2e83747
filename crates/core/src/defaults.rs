//! A job over the defaults of its cluster: the job's own values count, the cluster's fill the rest.

use crate::job::{Code, Environment, Job, OneOrMany, Resources};
use std::collections::BTreeMap;

impl Job {
    /// This job, with the cluster's values for keys that it leaves out. Variables and `io` are
    /// joined name by name; lists are replaced whole.
    #[must_use]
    pub fn over(self, defaults: &Self) -> Self {
        let has_program = !self.command.is_empty() || self.script.is_some();
        Self {
            name: self.name.or_else(|| defaults.name.clone()),
            experiment: self.experiment.or_else(|| defaults.experiment.clone()),
            cluster: one_or_many(self.cluster, &defaults.cluster),
            resources: resources(self.resources, &defaults.resources),
            launch: self.launch.or(defaults.launch),
            io: joined(self.io, &defaults.io),
            environment: environment(self.environment, &defaults.environment),
            identity: self.identity.or_else(|| defaults.identity.clone()),
            code: code(self.code, &defaults.code),
            copy: self.copy.or_else(|| defaults.copy.clone()),
            retry: self.retry.or_else(|| defaults.retry.clone()),
            hold_on_failure: self.hold_on_failure.or(defaults.hold_on_failure),
            sweep: if self.sweep.is_empty() {
                defaults.sweep.clone()
            } else {
                self.sweep
            },
            tags: list(self.tags, &defaults.tags),
            command: if has_program {
                self.command
            } else {
                defaults.command.clone()
            },
            script: if has_program {
                self.script
            } else {
                defaults.script.clone()
            },
        }
    }
}

fn one_or_many(own: OneOrMany, defaults: &OneOrMany) -> OneOrMany {
    if own.is_empty() {
        defaults.clone()
    } else {
        own
    }
}

fn list(own: Vec<String>, defaults: &[String]) -> Vec<String> {
    if own.is_empty() {
        defaults.to_vec()
    } else {
        own
    }
}

fn joined<T: Clone>(
    own: BTreeMap<String, T>,
    defaults: &BTreeMap<String, T>,
) -> BTreeMap<String, T> {
    let mut all = defaults.clone();
    all.extend(own);
    all
}

fn resources(own: Resources, defaults: &Resources) -> Resources {
    Resources {
        nodes: own.nodes.or(defaults.nodes),
        gpus_per_node: own.gpus_per_node.or(defaults.gpus_per_node),
        cpus_per_node: own.cpus_per_node.or(defaults.cpus_per_node),
        memory: own.memory.or(defaults.memory),
        instance_type: own.instance_type.or_else(|| defaults.instance_type.clone()),
        tier: own.tier.or(defaults.tier),
        location: one_or_many(own.location, &defaults.location),
        time: own.time.or(defaults.time),
        account: own.account.or_else(|| defaults.account.clone()),
        native: list(own.native, &defaults.native),
    }
}

fn environment(own: Environment, defaults: &Environment) -> Environment {
    Environment {
        image: own.image.or_else(|| defaults.image.clone()),
        setup: list(own.setup, &defaults.setup),
        env: joined(own.env, &defaults.env),
        secrets: list(own.secrets, &defaults.secrets),
    }
}

fn code(own: Code, defaults: &Code) -> Code {
    Code {
        root: own.root.or_else(|| defaults.root.clone()),
        ignore: list(own.ignore, &defaults.ignore),
        workdir: own.workdir.or_else(|| defaults.workdir.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Launch;

    #[test]
    fn the_job_counts_and_the_rest_is_the_clusters() {
        let read = |text: &str| -> Job {
            crate::yaml::decode(&crate::yaml::parse("x", text).expect("parses")).expect("a job")
        };
        let defaults = read(
            "launch: per_gpu\nexperiment: lab\nresources: \
                {gpus_per_node: 4, tier: basic}\nenvironment: {image: a/b, env: {A: x, B: y}}\n",
        );
        let own = read("resources: {tier: premium}\nenvironment: {env: {B: z}}\ncommand: [echo]\n")
            .over(&defaults);
        assert_eq!(
            (own.launch, own.experiment.as_deref()),
            (Some(Launch::PerGpu), Some("lab"))
        );
        assert_eq!(
            (own.resources.gpus_per_node, own.resources.tier),
            (Some(4), Some(crate::job::Tier::Premium))
        );
        assert_eq!(own.environment.env.values().collect::<Vec<_>>(), ["x", "z"]);
        assert_eq!(own.command.as_slice(), ["echo"]);
    }
}
