//! Where a mapped folder of the configuration lies on a cluster.

use towline_core::config::Config;
use towline_core::{Error, Result};

/// Which store and path a folder has on a cluster: what the cluster says of the folder, else the
/// cluster's store with the folder's path, else the folder's own. A datastore's name is itself.
pub fn placing(config: &Config, cluster: Option<&str>, folder: &str) -> Result<(String, String)> {
    let own = config.folders.get(folder);
    let path = own.map(|own| own.path.clone()).unwrap_or_default();
    if let Some(cluster) = cluster {
        if let Some(there) = config.clusters.get(cluster) {
            if let Some(entry) = there.folders.get(folder) {
                return Ok((entry.datastore.clone(), entry.path.clone()));
            }
            if there.lacks_folder(folder) {
                let error =
                    Error::not_found(format!("cluster `{cluster}` has no folder `{folder}`"));
                return Err(error.hint(format!(
                    "write `{folder}` under `clusters.{cluster}.folders`, or use STORE:PATH"
                )));
            }
            if let Some(store) = &there.datastore {
                return Ok((store.clone(), path));
            }
        } else if config.datastores.contains_key(cluster) {
            return Ok((cluster.to_owned(), path));
        }
    }
    own.map(|own| (own.datastore.clone(), path))
        .ok_or_else(|| Error::config(format!("folder `{folder}` has no datastore here")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        let text = "
datastores: {us: {kind: folder, path: /us}, eu: {kind: folder, path: /eu}, nas: {kind: folder, \
    path: /nas}}
folders: {data: {datastore: us, path: alice/data}, data/raw: {datastore: nas, path: \
    raw}, out: {datastore: us}}
clusters: {europe: {kind: slurm, datastore: eu}, odd: {kind: slurm, folders: {data: {datastore: \
    nas, path: d}}}, plain: {kind: slurm}, act: {kind: azureml, without_folders: [out, data], \
        folders: {data: {datastore: eu, path: d}}}}";
        towline_core::yaml::decode(&towline_core::yaml::parse("t", text).expect("YAML"))
            .expect("decodes")
    }

    #[test]
    fn a_cluster_chooses_the_store() {
        let config = config();
        let place = |cluster, folder| placing(&config, cluster, folder).expect("placed");
        assert_eq!(place(None, "data"), ("us".into(), "alice/data".into()));
        assert_eq!(
            place(Some("europe"), "data"),
            ("eu".into(), "alice/data".into())
        );
        assert_eq!(place(Some("odd"), "data"), ("nas".into(), "d".into()));
        assert_eq!(place(Some("odd"), "out"), ("us".into(), String::new()));
        assert_eq!(
            place(Some("plain"), "data"),
            ("us".into(), "alice/data".into())
        );
        assert_eq!(
            place(Some("nas"), "data"),
            ("nas".into(), "alice/data".into())
        );
        assert_eq!(place(Some("act"), "data"), ("eu".into(), "d".into()));
        let error = placing(&config, Some("act"), "out").expect_err("it has no such folder");
        assert!(
            error
                .to_string()
                .contains("cluster `act` has no folder `out`"),
            "{error}"
        );
    }
}
