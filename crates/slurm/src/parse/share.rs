//! `sshare`: how much of its fair share an account has used, which decides much of a job's
//! priority.

use super::unreadable;
use super::values;
use crate::owned;
use towline_core::Result;

/// The rows of one user and of the accounts above.
pub fn argv(user: &str) -> Vec<String> {
    owned([
        "sshare",
        "-n",
        "-P",
        "-u",
        user,
        "-o",
        "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare,LevelFS",
    ])
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Share {
    pub account: String,
    /// Absent on the account's own row.
    pub user: Option<String>,
    /// The granted part of the cluster, 0 to 1.
    pub granted: Option<f64>,
    /// The part of recent usage, 0 to 1.
    pub used: Option<f64>,
    /// 0 (used far too much) to 1 (used nothing).
    pub fair_share: Option<f64>,
}

/// Reads the answer to [`argv`].
pub fn read(text: &str) -> Result<Vec<Share>> {
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(share)
        .collect()
}

fn share(line: &str) -> Result<Share> {
    let fields: Vec<&str> = line.split('|').map(str::trim).collect();
    let [account, user, _, granted, _, used, fair_share, _] = fields.as_slice() else {
        return Err(unreadable("sshare", line));
    };
    let number = |text: &str| {
        values::present(text)?
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
    };
    Ok(Share {
        account: (*account).to_owned(),
        user: values::words(user),
        granted: number(granted),
        used: number(used),
        fair_share: number(fair_share),
    })
}
