//! A folder as the pages of ACT and qd lay it out, with every file and every key of theirs.

use crate::lab::Lab;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use towline_testkit::aml::Aml;
use towline_testkit::{Home, Output};

/// What stands in the page's example, but for the names in it that are the reader's own.
const PAGE: &str = r"azure_blob_config_file: null # no need to specify, legacy option
datastore_name: null # no need to specify. legacy option
# used to initialize the workspace
aml_config: aux_data/aml/config.json

config_param:
   code_path:
       azure_blob_config_file: ./aux_data/configs/STORE_account.yaml # the blob account information
       path: path/to/code.zip # where the zipped source code is
   data_folder:
       azure_blob_config_file: ./aux_data/configs/STORE_account.yaml # the blob account information
       # after the source code is unzipped, this folder will be as $ROOT/data
       path: path/to/data
   output_folder:
       azure_blob_config_file: ./aux_data/configs/STORE_account.yaml # the blob account information
       path: path/to/output # this folder will be as $ROOT/output
# if False, it will use AML's PyTorch estimator, which is not heavily tested here
use_custom_docker: true
compute_target: NC24RSV3
# if it is the ITP cluster, please set it as true
aks_compute: false
docker:
    # the custom docker. If use_custom_docker is False, this will be ignored
    image: amsword/setup:py36pt16
experiment_name: experiment_name
use_cli_auth: True
multi_process: True
gpu_per_node: 4
env:
   NCCL_IB_DISABLE: '0'
   PATH: 'PROGRAMS'
# optionally, you can specify the option for zip command, which is used by
# a init to compress the source folder and to upload it.
zip_options:
    - '-x'
    - '\*src/py-faster-rcnn/\*'
    - '-x'
    - '\*src/CMC/\*'
";

/// The page's folder, with clusters `aml`, `c1`, `c2`, `eu` and `we3v32`, and the service they lead
/// to.
pub(crate) struct Act {
    pub(crate) lab: Lab,
}

impl Act {
    pub(crate) fn new() -> Self {
        let mut lab = Lab::new();
        lab.aml.put_compute("NC24RSV3", "STANDARD_NC24RS_V3", 4);
        let account = lab.aml.azurite().first().clone();
        lab.home.set("TOW_AZURE_BLOB_ENDPOINT", &account.endpoint);
        for store in ["vigblob", "vigeastblob"] {
            lab.aml.azurite().make_container(store);
            let sas = account.container_sas(store, "rwdlac", 3_600);
            let text = format!(
                "account_name: {}\naccount_key: {}\nsas_token: ?{sas}\ncontainer_name: {store}\n",
                account.name, account.key
            );
            let path = lab
                .home
                .write(&format!("aux_data/configs/{store}_account.yaml"), &text);
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let scope = lab.aml.scope();
        let names = serde_json::json!({"subscription_id": scope.subscription, "resource_group": scope.group, "workspace_name": scope.workspace});
        lab.home
            .write("aux_data/aml/config.json", &names.to_string());
        let act = Self { lab };
        act.programs();
        for (cluster, store) in [
            ("aml", "vigeastblob"),
            ("c1", "vigeastblob"),
            ("c2", "vigeastblob"),
            ("eu", "vigeastblob"),
            ("we3v32", "vigblob"),
        ] {
            act.cluster(cluster, store, &[]);
        }
        // Where the real cloud is by itself.
        let own = format!(
            "{{kind: azureml, endpoint: '{}', credential: managed_identity}}",
            act.lab.aml.endpoint()
        );
        let clusters = ["aml", "c1", "c2", "eu", "we3v32"]
            .map(|name| format!("  {name}: {own}\n"))
            .concat();
        act.lab.home.configure(&format!("clusters:\n{clusters}"));
        act
    }

    /// Writes the file of a cluster: the page's, with some lines of it replaced.
    pub(crate) fn cluster(&self, name: &str, store: &str, others: &[(&str, &str)]) {
        let mut text = PAGE.replace("STORE", store).replace(
            "PROGRAMS",
            &format!("{}:/usr/bin:/bin", self.home().path("programs").display()),
        );
        for (line, other) in others {
            assert!(text.contains(line), "{line}");
            text = text.replace(line, other);
        }
        self.home()
            .write(&format!("aux_data/aml/{name}.yaml"), &text);
        self.home().trust();
    }

    /// What the image of the page has, and this machine may not.
    fn programs(&self) {
        let folder = self.home().path("programs");
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in [
            ("nvidia-smi", "#!/bin/sh\necho NVIDIA-SMI of rank $RANK\n"),
            ("python", "#!/bin/sh\nexec sh \"$@\"\n"),
        ] {
            towline_testkit::program(&folder.join(name), text);
        }
    }

    pub(crate) fn home(&self) -> &Home {
        &self.lab.home
    }
    pub(crate) fn aml(&self) -> &Aml {
        &self.lab.aml
    }

    /// A command as the page writes it, with `tow` for `a`.
    pub(crate) fn a(&self, line: &str) -> Output {
        self.lab.tow(line.split(' '))
    }

    /// Submits as the page does, waits for the end; the id and the record.
    #[track_caller]
    pub(crate) fn submitted(&self, line: &str) -> (String, Value) {
        let id = self.a(line).ok().id();
        let record = self.lab.ended(&id);
        (id, record)
    }

    /// What all ranks printed, sorted by lines.
    #[track_caller]
    pub(crate) fn lines(&self, run: &str, ranks: u32) -> Vec<String> {
        let rank = |rank: u32| {
            self.lab
                .tow(["logs", run, "--rank", &rank.to_string()])
                .ok()
                .stdout
        };
        (0..ranks)
            .flat_map(|number| {
                rank(number)
                    .lines()
                    .map(ToOwned::to_owned)
                    .collect::<Vec<_>>()
            })
            .collect()
    }
}
