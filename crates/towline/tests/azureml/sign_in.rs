//! Signing in as most people do: by the login of the Azure CLI, here the real one.

use crate::lab::Lab;

/// Nothing is said of how to sign in; the daemon, too, has only what the shell has.
#[test]
fn the_login_of_the_azure_cli_is_used_when_nothing_else_is_said() {
    let mut lab = Lab::new();
    let bin = lab.home.path("az bin");
    let (az, mine, theirs) = (lab.aml.install_az(&bin), lab.home.path("mine"), lab.home.path("the lab's"));
    lab.home.unset("IDENTITY_ENDPOINT");
    lab.home.unset("IDENTITY_HEADER");
    let scope = lab.aml.scope();
    let place = format!(
        "kind: azureml, endpoint: '{}', subscription: {}, resource_group: {}, workspace: {}, compute: cpu",
        lab.aml.endpoint(),
        scope.subscription,
        scope.group,
        scope.workspace
    );
    lab.home.configure(&format!("default_cluster: own\nclusters:\n  own: {{{place}}}\n  lab: {{{place}, profile: \"{}\"}}\n", theirs.display()));
    lab.home.set("AZURE_CONFIG_DIR", mine.to_str().unwrap());
    let missing = lab.home.command(["run", "echo", "hello"]).env("PATH", "/nowhere").output().unwrap();
    assert!(missing.status.code() == Some(123) && String::from_utf8_lossy(&missing.stderr).contains("Azure CLI not installed."), "{missing:?}");
    lab.home.set("PATH", &format!("{}:/usr/bin:/bin", bin.display()));
    let nobody = lab.tow(["run", "echo", "hello"]);
    assert!(nobody.code == 123 && nobody.stderr.contains("az login"), "{nobody:?}");
    lab.aml.az_login(&az, &mine);
    let said = lab.tow(["run", "echo", "hello"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "hello\n"), "{said:?}");
    // Another profile beside it is another login.
    let nobody = lab.tow(["-c", "lab", "submit", "true"]);
    assert!(nobody.code == 123 && nobody.stderr.contains("the lab's"), "{nobody:?}");
    lab.aml.az_login(&az, &theirs);
    lab.tow(["-c", "lab", "run", "true"]).ok();
    // A daemon that begins anew from what is written down signs in the same way.
    let id = lab.tow(["submit", "sh", "-c", "sleep 3; echo late"]).ok().id();
    lab.home.kill_daemon();
    assert_eq!(lab.ended(&id)["state"], "succeeded");
    assert_eq!(lab.tow(["logs", &id]).stdout, "late\n");
}
