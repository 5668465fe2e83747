//! The configuration of a Slurm cluster.

use towline_core::config::SlurmConfig;
use towline_core::job::Tier;
use towline_core::{Error, Result, suggest};

/// The default stage folder.
pub(super) const DEFAULT_STAGE: &str = "~/.towline";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlurmSettings {
    pub name: String,
    /// The host that has its commands; none for this machine.
    pub host: Option<String>,
    pub ssh_config: Option<String>,
    /// A folder that all its hosts share. A relative path is below the home there.
    pub stage: String,
    pub partition: Option<String>,
    pub account: Option<String>,
    /// The folder of Slurm's commands there, if the user names it.
    pub bin: Option<String>,
    tiers: Vec<(String, TierWords)>,
}

/// The meaning of a tier on the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TierWords {
    pub qos: Option<String>,
    pub partition: Option<String>,
}

impl SlurmSettings {
    pub fn new(name: &str, cluster: &SlurmConfig) -> Result<Self> {
        let stage = cluster.stage.as_deref().unwrap_or(DEFAULT_STAGE);
        if stage.is_empty()
            || stage.contains(['\n', '\0', '"', '\'', '\\', '$', '%', '`'])
            || stage.split('/').any(|part| part == "..")
        {
            return Err(Error::config(format!(
                "cluster `{name}`: `stage: {stage}` cannot be the path of a folder there"
            ))
            .hint("write an absolute path, or one that begins with ~/"));
        }
        if cluster
            .host
            .as_deref()
            .is_some_and(|host| host.is_empty() || host.starts_with('-'))
        {
            return Err(Error::config(format!(
                "cluster `{name}`: `host` is the name of a host, as ssh knows it"
            )));
        }
        if let Some(bin) = cluster
            .slurm_bin
            .as_deref()
            .filter(|bin| !bin.starts_with('/') || bin.contains([':', '\n', '\0']))
        {
            return Err(Error::config(format!(
                "cluster `{name}`: `slurm_bin: {bin}` cannot be the path of a folder there"
            ))
            .hint("write an absolute path, such as /opt/slurm/bin"));
        }
        let tiers = cluster
            .tiers
            .iter()
            .map(|(tier, words)| Ok((tier.clone(), tier_words(name, tier, words)?)))
            .collect::<Result<_>>()?;
        Ok(Self {
            name: name.to_owned(),
            host: cluster.host.clone(),
            ssh_config: cluster.ssh_config.clone(),
            // The remote shell starts in the home, and so do all our paths.
            stage: stage
                .strip_prefix("~/")
                .unwrap_or(stage)
                .trim_end_matches('/')
                .to_owned(),
            partition: cluster.partition.clone(),
            account: cluster.account.clone(),
            bin: cluster.slurm_bin.clone(),
            tiers,
        })
    }

    /// Identifies this configuration: facts that were fetched with another one are not used.
    pub(crate) fn mark(&self) -> String {
        format!(
            "{:?} {:?} {} {:?}",
            self.host, self.ssh_config, self.stage, self.bin
        )
    }

    pub fn tier(&self, tier: Tier) -> TierWords {
        self.tiers
            .iter()
            .find(|(name, _)| name == tier.word())
            .map(|(_, words)| words.clone())
            .unwrap_or_default()
    }
}

fn tier_words(
    cluster: &str,
    tier: &str,
    words: &std::collections::BTreeMap<String, String>,
) -> Result<TierWords> {
    let tiers = Tier::ALL.map(Tier::word);
    if !tiers.contains(&tier) {
        return Err(
            Error::config(format!("cluster `{cluster}`: there is no tier `{tier}`"))
                .maybe_hint(suggest::did_you_mean(tier, tiers)),
        );
    }
    let mut found = TierWords::default();
    for (key, value) in words {
        match key.as_str() {
            "qos" => found.qos = Some(value.clone()),
            "partition" => found.partition = Some(value.clone()),
            _ => {
                return Err(Error::config(format!(
                    "cluster `{cluster}`: `tiers.{tier}` has an unknown key `{key}`"
                ))
                .hint("known: qos, partition"));
            }
        }
    }
    Ok(found)
}
