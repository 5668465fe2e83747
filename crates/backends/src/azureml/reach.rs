//! Access to a running job of Azure ML: the address of an interactive job.

use super::cluster::AzureCluster;
use super::report::JobView;
use serde_json::Value;
use towline_core::cluster::{Purpose, Reach, ReachRequest, RunRef, SshAddress};
use towline_core::{Error, Result};

impl AzureCluster {
    pub(super) fn enter(&self, request: &ReachRequest<'_>) -> Result<Reach> {
        if matches!(request.purpose, Purpose::Port) {
            let error = Error::unsupported(format!(
                "{} is on Azure ML, where only ssh leads into a job",
                request.run.run
            ));
            return Err(error.hint(
                "`tow submit ssh`, then `tow ssh RUN`; its page in the portal has other services \
                    of an interactive job",
            ));
        }
        let address = self.ssh_endpoint(request.run, request.node)?;
        let place = address
            .strip_prefix("ssh://")
            .map(|rest| rest.trim_end_matches('/'));
        let (login, port) = match place.and_then(|place| place.rsplit_once(':')) {
            Some((login, port)) => (Some(login), port.parse().ok()),
            None => (place, Some(22)),
        };
        let login = login.filter(|login| !login.starts_with('-') && !login.is_empty());
        if let (Some(login), Some(port)) = (login, port) {
            return Ok(Reach::Ssh(SshAddress {
                login: login.to_owned(),
                port,
                ssh_config: self.config.ssh_config.clone(),
            }));
        }
        let native = request.state.native.as_ref();
        let url = native.and_then(|native| native.url.clone());
        let name = native.map_or(request.run.run.as_str(), |native| native.id.as_str());
        Err(Error::unsupported(format!(
            "{} can be entered only through a relay of Azure's own client",
            request.run.run
        ))
        .hint(format!("az ml job connect-ssh --name {name}"))
        .hint(format!(
            "its page has a terminal too: {}",
            url.unwrap_or_default()
        )))
    }

    /// The ssh address of a job: `user`, host and port.
    fn ssh_endpoint(&self, run: &RunRef, node: u32) -> Result<String> {
        let job: JobView = self
            .job(run)?
            .ok_or_else(|| Error::not_found(format!("the service has no job of {}", run.run)))?;
        if let Some(address) = job.ssh {
            return Ok(address);
        }
        let site = self.site()?;
        let services = self
            .history(&site, &job.name, &format!("/serviceinstances/{node}"))?
            .unwrap_or(Value::Null);
        let instances = services["instances"].as_object().into_iter().flatten();
        let endpoint = instances
            .filter(|(_, service)| {
                service["type"]
                    .as_str()
                    .is_some_and(|kind| kind.eq_ignore_ascii_case("ssh"))
            })
            .find_map(|(_, service)| {
                service["endpoint"]
                    .as_str()
                    .or_else(|| service["properties"]["ProxyEndpoint"].as_str())
                    .filter(|text| !text.is_empty())
                    .map(ToOwned::to_owned)
            });
        endpoint.ok_or_else(|| {
            if job.is_interactive {
                let error = Error::refused(format!(
                    "{} has no address yet; the service calls it {}",
                    run.run, job.word
                ));
                return error
                    .hint("it gets one soon after its nodes start: try again, or see `tow why`");
            }
            Error::unsupported(format!(
                "{} cannot be entered: only interactive jobs can",
                run.run
            ))
            .hint(
                "submit one with `tow submit ssh`, or with `resources.native: [ssh_public_key=…]`",
            )
        })
    }
}
