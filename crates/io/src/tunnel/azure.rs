//! Explains errors of the Azure CLI and says what to do about them.

use towline_core::Error;

/// The error that the output of `az` describes, if it is a known one.
pub(super) fn explain_failure(program: &str, output: &str) -> Option<Error> {
    let has = |sign: &str| output.contains(sign);
    if !program
        .rsplit('/')
        .next()
        .is_some_and(|name| name == "az" || name == "az.cmd")
    {
        return None;
    }
    if has("az login") || has("AADSTS") {
        let error = Error::denied(format!(
            "the Azure CLI is not signed in: {}",
            main_line(output)
        ));
        return Some(
            error
                .hint("az login")
                .hint("with several tenants: az login --tenant TENANT"),
        );
    }
    if let Some((_, rest)) = output.split_once("requires the extension ") {
        let name: String = rest
            .chars()
            .take_while(|sign| sign.is_ascii_alphanumeric() || "-_".contains(*sign))
            .collect();
        return Some(extension(&name));
    }
    if let Some((_, rest)) = output.split_once("The extension ")
        && let Some((name, _)) = rest.split_once(" is not installed")
    {
        return Some(extension(name));
    }
    if has("misspelled or not recognized") {
        return Some(extension("bastion").hint("an old Azure CLI has no such command: az upgrade"));
    }
    if has("ResourceNotFound") || has("ResourceGroupNotFound") || has("was not found") {
        let error = Error::config(format!(
            "Azure knows no such bastion or machine: {}",
            main_line(output)
        ));
        return Some(error.hint(
            "check --az-bastion, --resource-group, --target and --subscription: \
            az network bastion list -o table",
        ));
    }
    if has("AuthorizationFailed") {
        return Some(
            Error::denied(format!("Azure does not allow it: {}", main_line(output)))
                .hint("your account needs to read the bastion, the machine and its network card"),
        );
    }
    if has("Tunneling is disabled") || has("Native Client") || has("tunneling") {
        let error = Error::unsupported(format!(
            "this bastion gives no tunnels: {}",
            main_line(output)
        ));
        return Some(error.hint(
            "its administrators have to allow native clients: SKU Standard, --enable-tunneling",
        ));
    }
    None
}

fn extension(name: &str) -> Error {
    Error::config(format!("the Azure CLI lacks its extension `{name}`"))
        .hint(format!("az extension add --name {name}"))
}

/// The most telling line of a program's output: the last that names an error, else the last.
pub(super) fn main_line(output: &str) -> String {
    let lines = || {
        output
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    let found = lines()
        .rev()
        .find(|line| line.starts_with("ERROR") || line.contains("rror:"))
        .or_else(|| lines().next_back());
    let words = found
        .unwrap_or("it said nothing")
        .trim_start_matches("ERROR: ");
    words.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::ErrorKind;

    #[test]
    fn errors_of_the_azure_cli_are_explained() {
        let cases = [
            (
                "ERROR: Please run 'az login' to setup account.\n",
                ErrorKind::Denied,
                "az login",
            ),
            (
                "ERROR: AADSTS70043: The refresh token has expired\nInteractive authentication is \
                    needed. Please run:\naz login\n",
                ErrorKind::Denied,
                "AADSTS70043",
            ),
            (
                "ERROR: The command requires the extension bastion. Unable to prompt for extension \
                    install confirmation as no tty available. Run 'az config set \
                 extension.use_dynamic_install=yes_without_prompt' to allow installing extensions \
                     without prompt.\n",
                ErrorKind::Config,
                "az extension add --name bastion",
            ),
            (
                "The command failed with an unexpected error. Here is the traceback:\nThe \
                    extension ssh is not installed.\n",
                ErrorKind::Config,
                "az extension add --name ssh",
            ),
            (
                "ERROR: 'tunnel' is misspelled or not recognized by the system.\n",
                ErrorKind::Config,
                "az upgrade",
            ),
            (
                "ERROR: (ResourceNotFound) The Resource 'Microsoft.Network/bastionHosts/b' under \
                    resource group 'g' was not found.\nCode: ResourceNotFound\n",
                ErrorKind::Config,
                "bastionHosts/b",
            ),
            (
                "ERROR: (AuthorizationFailed) The client 'x' does not have authorization to \
                    perform action\n",
                ErrorKind::Denied,
                "does not allow it",
            ),
            (
                "msrestazure.azure_exceptions.CloudError: Tunneling is disabled\n",
                ErrorKind::Unsupported,
                "--enable-tunneling",
            ),
        ];
        for (output, kind, words) in cases {
            let error = explain_failure("/usr/bin/az", output).expect(output);
            let text = format!("{error} / {}", error.hints().join(" / "));
            assert!(error.kind() == kind && text.contains(words), "{text}");
        }
        assert!(
            explain_failure(
                "az",
                "Opening tunnel on port: 4711\nTunnel is ready, connect on port \
            4711\nCtrl + C to close\n"
            )
            .is_none()
        );
        assert!(explain_failure("socat", "ERROR: Please run 'az login'").is_none());
    }
}
