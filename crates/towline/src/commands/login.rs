//! `tow login`: signs in to the services of a cluster, and stores the sign-in.

use super::Report;
use crate::context::Context;
use crate::output::local_time;
use crate::output::table::Table;
use crate::output::{self, Paint};
use crate::wiring::sign_in;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use towline_core::{Error, ErrorKind, Result};
use towline_io::azure::identity::{DevicePrompt, LoginRequest, SignInState, Watcher};
use towline_io::azure::seam::AzureCloud;
use towline_wire::report::login::{ClusterSignIn, LoginCode, SignIns};

/// Sign in to a cluster's services; it is stored until `tow logout`.
///
/// For Azure ML, without the Azure CLI. A code is shown that you enter in a browser on any machine;
/// or the certificate of a service principal signs in. The refresh token is stored in the keyring
/// where there is one, else in a file that only you can read. The daemon uses it too. A `credential`
/// in the configuration of the cluster wins over it; without one it wins over the Azure CLI.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow login                by a code, to the default cluster, or the only one with a sign-in
  tow login aml --tenant contoso.com
  tow login aml --certificate app.pem --client-id ID --tenant ID
  tow login --status       who I am on each cluster, and until when
  tow login --json | jq -r .code")]
pub(crate) struct Args {
    /// The cluster [default: the configured one, or the only one with a sign-in].
    #[arg(value_name = "CLUSTER")]
    cluster: Option<String>,
    /// Sign in to this tenant [default: your own].
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// The application that signs in [default: the Azure CLI's].
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// A PEM file of mode 0600 with the private key and the certificate of a service principal.
    #[arg(long, value_name = "FILE", requires_all = ["tenant", "client_id"])]
    certificate: Option<PathBuf>,
    /// The service that wants more proof, as an error names it.
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// Show who is signed in, with which tenant and until when; sign nobody in.
    #[arg(long, conflicts_with_all = ["tenant", "client_id", "certificate", "scope"])]
    status: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    if args.status {
        return status(context, args.cluster.as_deref());
    }
    let name = sign_in::choose(context, args.cluster.as_deref())?;
    let cloud = sign_in::open(context, &name)?;
    let certificate = args.certificate.as_ref().map(|file| {
        let folder = context.folder()?;
        Ok::<_, Error>(folder.join(file))
    });
    let request = LoginRequest {
        tenant: args.tenant.clone(),
        client: args.client_id.clone(),
        certificate: certificate.transpose()?,
        scope: args.scope.clone(),
    };
    let stop = Stop::new()?;
    let json = context.json;
    let show = |prompt: &DevicePrompt| show_code(&name, prompt, json);
    let watcher = Watcher {
        show: &show,
        is_stopped: &|| stop.is_asked(),
    };
    let Some(state) = cloud.login(&request, &watcher)? else {
        return Ok(Report {
            last_words: Some("\nnot signed in; nothing was stored".to_owned()),
            ..Report::default().code(130)
        });
    };
    let answer = describe(context, &name, &cloud, state);
    let mut report = Report::of(&answer, text).done("the sign-in is stored all the same");
    if !answer.also_for.is_empty() {
        report = report.hint(format!("it serves {} too", answer.also_for.join(", ")));
    }
    Ok(report)
}

/// Ctrl-C, while somebody is at the browser.
struct Stop {
    interrupts: UnixStream,
    is_asked: AtomicBool,
}

impl Stop {
    fn new() -> Result<Self> {
        let interrupts = crate::runs::follow::interrupts()?;
        interrupts
            .set_nonblocking(true)
            .map_err(|error| Error::bug("signals cannot be watched").source_error(error))?;
        Ok(Self {
            interrupts,
            is_asked: AtomicBool::new(false),
        })
    }

    fn is_asked(&self) -> bool {
        if (&self.interrupts)
            .read(&mut [0])
            .is_ok_and(|count| count > 0)
        {
            self.is_asked.store(true, Ordering::Relaxed);
        }
        self.is_asked.load(Ordering::Relaxed)
    }
}

fn show_code(cluster: &str, prompt: &DevicePrompt, json: bool) {
    if !json {
        output::status(&prompt.message);
        return;
    }
    let millis = u64::try_from(prompt.good_for.as_millis()).unwrap_or(u64::MAX);
    let code = LoginCode {
        cluster: cluster.to_owned(),
        address: prompt.address.clone(),
        code: prompt.code.clone(),
        message: prompt.message.clone(),
        expires: towline_host::clock::now().plus_millis(millis).into(),
    };
    // Nobody reads it any more: then nobody enters it either, and it ends by itself.
    let _ = output::json(&serde_json::to_value(code).unwrap_or_default());
}

fn describe(
    context: &Context,
    name: &str,
    cloud: &AzureCloud,
    state: SignInState,
) -> ClusterSignIn {
    let is_stored = state.since.is_some();
    ClusterSignIn {
        cluster: name.to_owned(),
        signed_in: Some(true),
        method: Some(state.method.to_owned()),
        configured: Some(state.is_configured),
        signed_in_as: state.who,
        token_until: state.until.map(Into::into),
        since: state.since.map(Into::into),
        stored_in: state.place.map(str::to_owned),
        also_for: if is_stored {
            sign_in::sharing(context, name, cloud)
        } else {
            Vec::new()
        },
        problem: None,
    }
}

fn text(answer: &ClusterSignIn) -> String {
    let who = answer.signed_in_as.as_ref();
    let who = who.map_or_else(
        || "signed in".to_owned(),
        |who| format!("signed in as {} (tenant {})", who.name, who.tenant),
    );
    let place = match answer.stored_in.as_deref() {
        Some("keyring") => "; the sign-in is stored in the keyring",
        Some(_) => "; the sign-in is stored in a file that only you can read",
        None => "",
    };
    format!("{}: {who}{place}\n", answer.cluster)
}

/// The signed-in users: there, or everywhere.
fn status(context: &Context, named: Option<&str>) -> Result<Report> {
    let names = match named {
        Some(name) => vec![name.to_owned()],
        None => sign_in::clusters(context)?,
    };
    if names.is_empty() {
        // Says what the default cluster uses instead.
        sign_in::open(context, &sign_in::choose(context, None)?)?;
    }
    let mut answer = SignIns {
        sign_ins: Vec::new(),
    };
    let mut code = 0;
    for name in names {
        let cloud = sign_in::open(context, &name)?;
        answer.sign_ins.push(match cloud.sign_in_state() {
            Ok(state) => describe(context, &name, &cloud, state),
            Err(error) => {
                if named.is_some() {
                    code = error.kind().exit_code();
                }
                unknown(&name, &error)
            }
        });
    }
    let report = Report::of(&answer, table).code(code);
    let next = answer
        .sign_ins
        .iter()
        .find(|one| one.signed_in == Some(false));
    Ok(match next {
        Some(one) => report.hint(format!("sign in: tow login {}", one.cluster)),
        None => report,
    })
}

fn unknown(name: &str, error: &Error) -> ClusterSignIn {
    let is_known = error.kind() != ErrorKind::Unreachable;
    ClusterSignIn {
        cluster: name.to_owned(),
        signed_in: is_known.then_some(false),
        method: None,
        configured: None,
        signed_in_as: None,
        token_until: None,
        since: None,
        stored_in: None,
        also_for: Vec::new(),
        problem: Some(error.to_string()),
    }
}

fn table(answer: &SignIns) -> String {
    let mut table = Table::new(&[
        "CLUSTER",
        "SIGNED IN AS",
        "TENANT",
        "BY",
        "TOKEN UNTIL",
        "STORED IN",
    ]);
    for one in &answer.sign_ins {
        let plain = |text: Option<String>| (text.unwrap_or_default(), Paint::Plain);
        let who = match (&one.signed_in_as, &one.problem) {
            (Some(who), _) => (who.name.clone(), Paint::Good),
            (None, Some(problem)) => (problem.clone(), Paint::Bad),
            (None, None) => plain(None),
        };
        let until = one.token_until.map(|until| local_time::shown(until.0));
        table.row(vec![
            (one.cluster.clone(), Paint::Bold),
            who,
            plain(one.signed_in_as.as_ref().map(|who| who.tenant.clone())),
            plain(one.method.clone()),
            plain(until),
            plain(one.stored_in.clone()),
        ]);
    }
    table.render()
}
