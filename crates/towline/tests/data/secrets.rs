//! Credentials appear nowhere: not in messages, not in the state folder.

use super::{azure_home, noise, tree, write};
use towline_testkit::real::Azurite;

#[test]
fn no_credential_is_printed_or_kept() {
    let azurite = Azurite::shared();
    let mut home = azure_home("secretly");
    let sas = azurite.sas("rwdlac", 600);
    home.set("AZ_SAS", &sas);
    let account = azurite.first();
    super::configure(
        &home,
        &format!(
            "  az: {{kind: azure_blob, account: {}, container: secretly, endpoint: '{}', credential: {{sas: env:AZ_SAS}}}}\n",
            account.name, account.endpoint
        ),
    );
    write(&home, "d/x", &noise(9 << 20, 1));
    let signature = sas.split("sig=").nth(1).unwrap().to_owned();
    let mut said = String::new();
    for words in [
        vec!["cp", "d", "az:d"],
        vec!["ls", "az:d"],
        vec!["ls", "az:none"],
        vec!["cp", "az:d", "back"],
        vec!["doctor"],
        vec!["config", "show"],
        vec!["rm", "az:d", "--yes"],
    ] {
        let output = home.tow(words);
        said += &output.stdout;
        said += &output.stderr;
    }
    assert!(!said.contains(&signature[..20]), "{said}");
    for (name, bytes) in tree(&home.path("state")) {
        assert!(!bytes.windows(20).any(|window| window == &signature.as_bytes()[..20]), "{name} holds the signature");
    }
}
