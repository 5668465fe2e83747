//! Machines that have a number, and the bastion that leads to each. The number decides which
//! bastion.

use crate::config::{Bastion, Tunnel};
use crate::tunnel::{AzureBastion, Target};
use crate::{Error, Result};

/// The placeholder of the number in the name of a machine.
const NUMBER_PLACEHOLDER: &str = "{number}";
/// The names of GCR's sandboxes.
const DEFAULT_MACHINE_NAME: &str = "GCRAZGDL{number}";

/// The first and the last number of `1000-1115`, or of `7` alone.
fn range(text: &str) -> Result<(u32, u32)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<u32>().ok();
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Ok((first, last)),
        _ => Err(Error::config(format!(
            "`bastions`: `sandboxes: {text}` is not a range of numbers"
        ))
        .hint("for instance 1000-1115")),
    }
}

/// The tunnel to the machine of that number. The digits stay as written: `0123` is a part of its
/// name.
pub fn tunnel_to(number: &str, bastions: &[Bastion]) -> Result<Tunnel> {
    let Some(value) = number
        .parse::<u32>()
        .ok()
        .filter(|_| number.bytes().all(|byte| byte.is_ascii_digit()))
    else {
        return Err(
            Error::usage(format!("`{number}` is not the number of a sandbox"))
                .hint("its last four digits: 1234 of GCRAZGDL1234"),
        );
    };
    let ranges = bastions
        .iter()
        .map(|bastion| range(&bastion.sandboxes))
        .collect::<Result<Vec<_>>>()?;
    let Some((_, bastion)) = ranges
        .iter()
        .zip(bastions)
        .find(|((first, last), _)| (*first..=*last).contains(&value))
    else {
        let error = Error::config(format!(
            "no bastion of the configuration leads to sandbox {number}"
        ));
        return Err(match bastions {
            [] => error.hint(
                "write the table once, in ~/.config/towline/config.yaml: `bastions: \
                    [{sandboxes: 1000-1115, name: BASTION, resource_group: GROUP}]`",
            ),
            known => error.hint(format!(
                "known: {}",
                known
                    .iter()
                    .map(|bastion| bastion.sandboxes.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            )),
        });
    };
    let machine = bastion
        .machine
        .as_deref()
        .unwrap_or(DEFAULT_MACHINE_NAME)
        .replace(NUMBER_PLACEHOLDER, number);
    let base = Tunnel {
        to: machine.clone(),
        user: bastion.user.clone(),
        ..Tunnel::default()
    };
    match (&bastion.via, &bastion.name, &bastion.resource_group) {
        (Some(via), None, _) => Ok(Tunnel {
            via: Some(via.clone()),
            ..base
        }),
        (None, Some(name), Some(group)) => {
            let azure = AzureBastion {
                name: name.clone(),
                resource_group: group.clone(),
                target: machine_id(bastion, group, &machine)?,
                subscription: bastion.subscription.clone(),
            };
            azure.machine()?;
            Ok(Tunnel {
                command: Some(azure.words(Target::parse(&machine)?.port)),
                ..base
            })
        }
        (Some(_), Some(_), _) => Err(Error::config(format!(
            "`bastions`: {} has both `via` and `name`",
            bastion.sandboxes
        ))
        .hint("a host that ssh knows, or an Azure Bastion: one of them")),
        _ => Err(Error::config(format!(
            "`bastions`: {} has neither `via` nor `name` and `resource_group`",
            bastion.sandboxes
        ))),
    }
}

/// The resource id by which Azure Bastion finds the machine.
fn machine_id(bastion: &Bastion, group: &str, machine: &str) -> Result<String> {
    let Some(subscription) = &bastion.subscription else {
        return Err(Error::config(format!(
            "`bastions`: {} lacks `subscription`, which the machine's id has",
            bastion.sandboxes
        )));
    };
    let group = bastion.machine_group.as_deref().unwrap_or(group);
    Ok(format!(
        "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachines/{machine}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(yaml: &str) -> Vec<Bastion> {
        let config: crate::config::Config = crate::yaml::decode(
            &crate::yaml::parse("t", &format!("bastions: {yaml}")).expect("YAML"),
        )
        .expect("decodes");
        config.bastions
    }

    #[test]
    fn the_number_chooses_the_bastion() {
        let table = table(
            "[{sandboxes: 0-999, via: jump0}, \
                {sandboxes: 1000-1115, name: b1, resource_group: g1, subscription: s1, user: FAREAST.alice}, {sandboxes: 4001-4020, via: jump4, machine: 'box-{number}'}]",
        );
        let near = tunnel_to("0123", &table).expect("found");
        assert_eq!(
            (near.to.as_str(), near.via.as_deref()),
            ("GCRAZGDL0123", Some("jump0"))
        );
        let azure = tunnel_to("1115", &table).expect("found");
        assert_eq!(
            (azure.to.as_str(), azure.user.as_deref()),
            ("GCRAZGDL1115", Some("FAREAST.alice"))
        );
        let words = azure.command.expect("a command").join(" ");
        assert!(words.starts_with("az network bastion tunnel --name b1 --resource-group g1 \
            --target-resource-id \
                /subscriptions/s1/resourceGroups/g1/providers/Microsoft.Compute/virtualMachines/GCRAZGDL1115"), "{words}");
        assert_eq!(tunnel_to("4001", &table).expect("found").to, "box-4001");
        let error = tunnel_to("1500", &table).expect_err("in no range");
        assert!(
            error.hints()[0].contains("0-999, 1000-1115, 4001-4020"),
            "{error:?}"
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (number, yaml, part) in [
            ("12x", "[]", "not the number of a sandbox"),
            ("12", "[]", "no bastion of the configuration"),
            ("12", "[{sandboxes: 9-1, via: x}]", "not a range"),
            ("12", "[{sandboxes: 0-99}]", "neither `via` nor"),
            (
                "12",
                "[{sandboxes: 0-99, via: x, name: y, resource_group: z}]",
                "both `via` and `name`",
            ),
            (
                "12",
                "[{sandboxes: 0-99, name: y, resource_group: z}]",
                "lacks `subscription`",
            ),
        ] {
            let error = tunnel_to(number, &table(yaml)).expect_err(yaml);
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
