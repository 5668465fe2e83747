//! The emulator as a program, for measurements: prints its address to standard output, as a line of
//! JSON, and ends with its standard input. `asleep` and `awake` on standard input decide whether
//! jobs that are put from then on run.

#![expect(clippy::print_stdout, reason = "what it says is what it is for")]

use serde_json::json;
use std::io::BufRead;
use towline_testkit::aml::Aml;

fn main() {
    let aml = Aml::start();
    aml.conditions(|conditions| conditions.poll_after = None);
    let scope = aml.scope();
    let [(endpoint, place), (header, word)] = aml.identity();
    let known = json!({
        "endpoint": aml.endpoint(), "authority": aml.authority(), "storage": aml.storage_suffix(),
        "subscription": scope.subscription, "group": scope.group, "workspace": scope.workspace,
        "identity": {endpoint: place, header: word},
    });
    println!("{known}");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        aml.conditions(|conditions| conditions.asleep = line.trim() == "asleep");
        println!("{}", line.trim());
    }
}
