//! Signing in as most people do: by the login of the Azure CLI, here the real one.

use crate::lab::Lab;
use std::process::{Command, Stdio};
use towline_testkit::Output;

/// Nothing is said of how to sign in; the daemon, too, has only what the shell has.
#[test]
fn the_login_of_the_azure_cli_is_used_when_nothing_else_is_said() {
    let mut lab = Lab::new();
    let bin = lab.home.path("az bin");
    let (az, mine, theirs) = (
        lab.aml.install_az(&bin),
        lab.home.path("mine"),
        lab.home.path("the lab's"),
    );
    lab.home.unset("IDENTITY_ENDPOINT");
    lab.home.unset("IDENTITY_HEADER");
    let scope = lab.aml.scope();
    let place = format!(
        "kind: azureml, endpoint: '{}', subscription: {}, resource_group: {}, workspace: {}, \
            compute: cpu",
        lab.aml.endpoint(),
        scope.subscription,
        scope.group,
        scope.workspace
    );
    lab.home.configure(&format!(
        "default_cluster: own\nclusters:\n  own: {{{place}}}\n  lab: \
        {{{place}, profile: \"{}\"}}\n",
        theirs.display()
    ));
    lab.home.set("AZURE_CONFIG_DIR", mine.to_str().unwrap());
    let missing = lab
        .home
        .command(["run", "echo", "hello"])
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    assert!(
        missing.status.code() == Some(123)
            && String::from_utf8_lossy(&missing.stderr).contains("Azure CLI not installed."),
        "{missing:?}"
    );
    lab.home
        .set("PATH", &format!("{}:/usr/bin:/bin", bin.display()));
    let nobody = lab.tow(["run", "echo", "hello"]);
    assert!(
        nobody.code == 123 && nobody.stderr.contains("az login"),
        "{nobody:?}"
    );
    lab.aml.az_login(&az, &mine);
    let said = lab.tow(["run", "echo", "hello"]);
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (0, "hello\n"),
        "{said:?}"
    );
    // Another profile beside it is another login.
    let nobody = lab.tow(["-c", "lab", "submit", "true"]);
    assert!(
        nobody.code == 123 && nobody.stderr.contains("the lab's"),
        "{nobody:?}"
    );
    lab.aml.az_login(&az, &theirs);
    lab.tow(["-c", "lab", "run", "true"]).ok();
    // A daemon that begins anew from what is written down signs in the same way.
    let id = lab
        .tow(["submit", "sh", "-c", "sleep 3; echo late"])
        .ok()
        .id();
    lab.home.kill_daemon();
    assert_eq!(lab.ended(&id)["state"], "succeeded");
    assert_eq!(lab.tow(["logs", &id]).stdout, "late\n");
}

/// Without the Azure CLI: a code that is entered in a browser on any machine, once.
#[test]
fn a_code_in_a_browser_needs_no_azure_cli() {
    let mut lab = Lab::new();
    lab.home.unset("IDENTITY_ENDPOINT");
    lab.home.unset("IDENTITY_HEADER");
    lab.home.set("PATH", "/usr/bin:/bin");
    let scope = lab.aml.scope();
    lab.home.configure(&format!(
        "default_cluster: own\nclusters:\n  own: {{kind: azureml, endpoint: '{}', subscription: \
            {}, resource_group: {}, workspace: {}, compute: cpu, credential: device_code}}\n",
        lab.aml.endpoint(),
        scope.subscription,
        scope.group,
        scope.workspace
    ));
    lab.aml.conditions(|conditions| {
        conditions.device.interval = 0;
        conditions.device.pending = 2;
    });
    // Nobody is asked where nobody can answer.
    let asked = || {
        lab.aml
            .asked()
            .iter()
            .filter(|(_, target)| target.contains("/devicecode"))
            .count()
    };
    let nobody = lab.tow(["submit", "true"]);
    assert!(
        nobody.code == 123 && nobody.stderr.contains("sign in: tow login own"),
        "{nobody:?}"
    );
    assert_eq!(asked(), 0);
    let tow = lab.home.command(["nodes", "--cluster", "own"]);
    let words: Vec<&str> = std::iter::once(tow.get_program())
        .chain(tow.get_args())
        .map(|word| word.to_str().unwrap())
        .collect();
    let mut terminal = Command::new("script");
    terminal
        .args(["-qefc", &words.join(" "), "/dev/null"])
        .current_dir(lab.home.project())
        .env_clear()
        .stdin(Stdio::null());
    let shown = Output::from(
        terminal
            .envs(
                tow.get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .output()
            .unwrap(),
    )
    .ok();
    assert!(
        shown
            .stdout
            .contains("https://microsoft.com/devicelogin and enter the code"),
        "{shown:?}"
    );
    assert_eq!(asked(), 1);
    // From then on neither a command nor the daemon asks again.
    let said = lab.tow(["run", "echo", "hello"]);
    assert_eq!(
        (said.code, said.stdout.as_str(), asked()),
        (0, "hello\n", 1),
        "{said:?}"
    );
}
