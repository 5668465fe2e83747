//! The sessions of the page on tunnels are run, and print what the page shows.

use crate::lab::{home, hosts};
use std::fs;
use towline_testkit::console::{Reader, Setting, read_page};
use towline_testkit::real::Slurm;

#[test]
fn the_page_on_tunnels() {
    let slurm = hosts();
    read_page("docs/guide/tunnels.md", Setting::Hosts, || laptop(&slurm));
}

/// A laptop whose ssh knows the hosts. `lab` acts on them from outside.
fn laptop(slurm: &Slurm) -> Reader {
    let home = home();
    fs::create_dir(home.path("home/.ssh")).unwrap();
    let known = format!("Include {}\n", slurm.ssh_config().display());
    fs::write(home.path("home/.ssh/config"), known).unwrap();
    let reader = Reader::new(home).with_own_ssh_config();
    reader.act_on(slurm);
    reader
}
