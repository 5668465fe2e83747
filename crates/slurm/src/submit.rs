//! `sbatch`: handing a script over. [`crate::parse::answer`] reads what it says, and
//! [`crate::refusal`] why it refuses.

use crate::environment::submitting;
use crate::{owned, script};

/// The program that every site with Slurm has.
pub const PROGRAM: &str = "sbatch";

/// The command that takes `script` on stdin; of its array only these tasks, if any are named.
pub fn argv(script: &str, tasks: &[u32]) -> Vec<String> {
    let mut argv = owned([PROGRAM, "--parsable"]);
    if !tasks.is_empty() {
        let tasks: Vec<String> = tasks.iter().map(ToString::to_string).collect();
        argv.push(format!("--array={}", tasks.join(",")));
    }
    submitting(&argv, &script::overriding(script))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_handed_over_without_the_variables_that_would_win_over_it() {
        let argv = |tasks: &[u32]| argv("#!/bin/sh\n#SBATCH --qos=low\n", tasks).join(" ");
        assert_eq!(
            argv(&[]),
            "env -u SBATCH_WAIT -u SBATCH_DEBUG -u SBATCH_ERROR -u SBATCH_ARRAY_INX -u SBATCH_QOS \
                sbatch --parsable"
        );
        assert!(argv(&[3, 5]).ends_with("sbatch --parsable --array=3,5"));
    }
}
