//! The sessions of the page on Slurm are run, and print what the page shows.

use towline_testkit::Home;
use towline_testkit::console::{Reader, Setting, read_page};
use towline_testkit::real::Slurm;
use towline_testkit::real::slurm::Options;

/// The cluster is its own: the page shows an idle one, and one that cannot be reached.
#[test]
fn the_page_on_slurm() {
    let slurm = Slurm::start(&Options::default());
    read_page("docs/guide/slurm.md", Setting::Slurm, || laptop(&slurm));
}

/// A laptop of the cluster's user. `lab` acts on the cluster from outside.
fn laptop(slurm: &Slurm) -> Reader {
    let home = Home::new(env!("CARGO_BIN_EXE_tow"));
    home.configure(&format!(
        "default_cluster: lab\nclusters:\n  local: {{kind: local, cpus: 2, gpus: 0}}\n  lab: \
            {{kind: slurm, host: login, ssh_config: {}}}\n",
        slurm.ssh_config().display()
    ));
    let reader = Reader::new(home);
    reader.act_on(slurm);
    reader.with_own_ssh_config()
}
