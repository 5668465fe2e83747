//! A node of Azure ML is taken whole, so an agent's job counts with all of its GPUs, whatever it
//! asks for.

use super::lab::Lab;

#[test]
fn gpus_that_a_job_takes_without_asking_count_too() {
    let mut lab = Lab::new();
    lab.aml.put_compute("gpus", "Standard_NC24rs_v3", 2);
    let agents = "agents: {clusters: [aml, sing, whole], gpu_hours: 100}\n";
    let configuration = lab.aml.configuration();
    let (_, compute) = configuration.split_once("compute: ").unwrap();
    let compute = compute.split([',', '}', '\n']).next().unwrap();
    let line = configuration
        .lines()
        .find(|line| line.contains("compute: "))
        .unwrap();
    let whole = line
        .replace(&format!("compute: {compute}"), "compute: gpus")
        .replacen("aml:", "whole:", 1);
    lab.home
        .configure(&(configuration.replacen(line, &format!("{line}\n{whole}"), 1) + agents));
    lab.home.set("TOW_AGENT", "thrifty");
    let reserves = |words: &[&str]| {
        let words = [&["submit", "--dry-run", "--time", "1h"], words, &["true"]].concat();
        let planned = lab.tow(&words).ok().stdout;
        let note = planned
            .lines()
            .find(|line| line.contains("it reserves"))
            .unwrap();
        note.split("reserves ")
            .nth(1)
            .unwrap()
            .split(';')
            .next()
            .unwrap()
            .to_owned()
    };
    // Four GPUs a node.
    assert_eq!(reserves(&["-c", "whole"]), "4 GPU-hours");
    assert_eq!(reserves(&["-c", "whole", "-n", "1"]), "4 GPU-hours");
    assert_eq!(reserves(&["-c", "whole", "-n", "8"]), "8 GPU-hours");
    // A project's file may say what it likes of the size of nodes.
    lab.home
        .write("towline.yaml", "clusters: {whole: {gpus_per_node: 0}}\n");
    assert_eq!(reserves(&["-c", "whole", "--nodes", "2"]), "8 GPU-hours");
}
