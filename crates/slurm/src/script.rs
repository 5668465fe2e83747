//! The batch script: readable `#SBATCH` lines, then the one command. Pure.

use std::fmt::Write;
use towline_core::{Error, Result, quote};

/// The options of `sbatch`, and the command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    pub name: String,
    pub comment: Option<String>,
    /// A pattern: `%j`, `%A`, `%a` and the like are Slurm's, `%%` is a percent sign.
    pub output: String,
    pub workdir: String,
    pub nodes: u32,
    pub ntasks_per_node: u32,
    pub gpus_per_node: u32,
    pub gpu_type: Option<String>,
    pub cpus_per_task: Option<u32>,
    /// MiB per node.
    pub memory_mb: Option<u64>,
    /// In seconds. Slurm counts minutes, so it is rounded up.
    pub time: Option<u64>,
    pub partition: Option<String>,
    pub qos: Option<String>,
    pub account: Option<String>,
    /// `0-7%3`
    pub array: Option<String>,
    pub requeue: bool,
    /// The signal (`B:USR1`: to the script alone), and how many seconds before the end it comes.
    pub signal: Option<(String, u32)>,
    /// Native option lines, unchanged. They come after ours, so they win. They follow the quoting
    /// of `#SBATCH` lines.
    pub native: Vec<String>,
    pub command: Vec<String>,
}

impl Batch {
    pub fn render(&self) -> Result<String> {
        let mut text = String::from("#!/bin/sh\n");
        for (name, value) in self.options() {
            refuse_breaks(name, &value)?;
            let separator = if value.is_empty() { "" } else { "=" };
            let _ = writeln!(text, "#SBATCH --{name}{separator}{}", directive(&value));
        }
        if let Some(first) = self
            .native
            .first()
            .filter(|line| !line.trim_start().starts_with('-'))
        {
            return Err(
                Error::config(format!("`{first}` is not an option of `sbatch`"))
                    .hint("`resources.native` holds options such as `--exclusive`"),
            );
        }
        for line in &self.native {
            refuse_breaks("native", line)?;
            let _ = writeln!(text, "#SBATCH {}", line.trim());
        }
        if self.command.is_empty() {
            return Err(Error::bug("a batch script without a command"));
        }
        text.push_str("\nexec");
        for word in &self.command {
            // `sbatch` refuses a script that contains either anywhere.
            if word.contains('\0') || word.contains("\r\n") {
                return Err(Error::config(
                    "a word of the command holds a NUL or a DOS line break, which Slurm does not \
                        accept in scripts",
                ));
            }
            text.push(' ');
            text.push_str(&quote::word(word));
        }
        text.push('\n');
        Ok(text)
    }

    /// Our options in the order of the lines; an empty value is a flag.
    fn options(&self) -> Vec<(&'static str, String)> {
        let mut options: Vec<(&'static str, String)> = vec![("job-name", self.name.clone())];
        let mut add =
            |name, value: Option<String>| options.extend(value.map(|value| (name, value)));
        add(
            "comment",
            self.comment.clone().filter(|comment| !comment.is_empty()),
        );
        add("output", Some(self.output.clone()));
        // A restarted job appends to its output.
        add("open-mode", Some("append".to_owned()));
        add("chdir", Some(self.workdir.clone()));
        add("nodes", Some(self.nodes.to_string()));
        add("ntasks-per-node", Some(self.ntasks_per_node.to_string()));
        // A site without `select/cons_tres` refuses `--gpus-per-node`; `--gres` always works.
        let kind = self
            .gpu_type
            .as_ref()
            .map_or(String::new(), |kind| format!("{kind}:"));
        add(
            "gres",
            (self.gpus_per_node > 0).then(|| format!("gpu:{kind}{}", self.gpus_per_node)),
        );
        add(
            "cpus-per-task",
            self.cpus_per_task.map(|cpus| cpus.to_string()),
        );
        add("mem", self.memory_mb.map(|memory| format!("{memory}M")));
        add("time", self.time.map(clock));
        add("partition", self.partition.clone());
        add("qos", self.qos.clone());
        add("account", self.account.clone());
        add("array", self.array.clone());
        add(
            if self.requeue {
                "requeue"
            } else {
                "no-requeue"
            },
            Some(String::new()),
        );
        add(
            "signal",
            self.signal
                .as_ref()
                .map(|(signal, seconds)| format!("{signal}@{seconds}")),
        );
        options
    }

    /// Variables that win over lines of this script: `sbatch` reads the environment after the
    /// script, and only its own command line wins over both.
    pub fn overridden_by(&self) -> Vec<&'static str> {
        let options = self.options();
        let has = |name: &str| options.iter().any(|(known, _)| *known == name);
        OVERRIDING
            .iter()
            .filter(|(option, _)| option.is_empty() || has(option))
            .map(|(_, variable)| *variable)
            .collect()
    }
}

/// Variables that win over lines of a script that is already rendered.
pub fn overriding(script: &str) -> Vec<&'static str> {
    let has = |option: &str| {
        script.lines().any(|line| {
            line.strip_prefix("#SBATCH --")
                .is_some_and(|rest| rest.split(['=', ' ']).next() == Some(option))
        })
    };
    OVERRIDING
        .iter()
        .filter(|(option, _)| option.is_empty() || has(option))
        .map(|(_, variable)| *variable)
        .collect()
}

/// The value of an option that a script was rendered with; the last one counts.
pub fn option<'a>(script: &'a str, name: &str) -> Option<&'a str> {
    script
        .lines()
        .filter_map(|line| {
            line.strip_prefix("#SBATCH --")?
                .strip_prefix(name)?
                .strip_prefix('=')
        })
        .next_back()
}

/// The name of the file that a job prints to, as a pattern for [`Batch::output`].
pub const fn output_pattern(is_array: bool) -> &'static str {
    if is_array {
        "slurm-%A_%a.out"
    } else {
        "slurm-%j.out"
    }
}

/// The name that [`output_pattern`] gives to the file of a job, or of a task of an array.
pub fn output_name(job: &str, task: Option<u32>) -> String {
    task.map_or_else(
        || format!("slurm-{job}.out"),
        |task| format!("slurm-{job}_{task}.out"),
    )
}

/// The option that each variable sets; a variable without an option changes the behaviour of
/// `sbatch`.
const OVERRIDING: &[(&str, &str)] = &[
    ("", "SBATCH_WAIT"),
    ("", "SBATCH_DEBUG"),
    ("", "SBATCH_ERROR"),
    ("", "SBATCH_ARRAY_INX"),
    ("job-name", "SBATCH_JOB_NAME"),
    ("output", "SBATCH_OUTPUT"),
    ("open-mode", "SBATCH_OPEN_MODE"),
    ("gres", "SBATCH_GRES"),
    ("gres", "SBATCH_GPUS"),
    ("gres", "SBATCH_GPUS_PER_NODE"),
    ("gres", "SBATCH_GPUS_PER_TASK"),
    ("mem", "SBATCH_MEM_PER_NODE"),
    ("mem", "SBATCH_MEM_PER_CPU"),
    ("mem", "SBATCH_MEM_PER_GPU"),
    ("time", "SBATCH_TIMELIMIT"),
    ("partition", "SBATCH_PARTITION"),
    ("qos", "SBATCH_QOS"),
    ("account", "SBATCH_ACCOUNT"),
    ("requeue", "SBATCH_NO_REQUEUE"),
    ("no-requeue", "SBATCH_REQUEUE"),
    ("signal", "SBATCH_SIGNAL"),
];

fn refuse_breaks(name: &str, value: &str) -> Result<()> {
    if value.contains(['\n', '\r', '\0']) {
        return Err(Error::config(format!(
            "`{name}` holds a line break, which an option of `sbatch` cannot"
        )));
    }
    Ok(())
}

/// `[D-]HH:MM:SS`, whole minutes, at least one.
fn clock(seconds: u64) -> String {
    let minutes = seconds.div_ceil(60).max(1);
    let (days, hours, minutes) = (minutes / 1_440, minutes / 60 % 24, minutes % 60);
    if days > 0 {
        format!("{days}-{hours:02}:{minutes:02}:00")
    } else {
        format!("{hours:02}:{minutes:02}:00")
    }
}

/// A value for `#SBATCH` lines: in double quotes if it contains more than plain characters. A
/// backslash escapes inside and outside of quotes, and `#` outside begins a comment.
fn directive(value: &str) -> String {
    let plain = value
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_./:=,+@%^[]~".contains(c));
    if plain {
        value.to_owned()
    } else {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Batch {
        Batch {
            name: "train".into(),
            output: "/home/alice/.towline/log/%j".into(),
            workdir: "/home/alice".into(),
            nodes: 1,
            ntasks_per_node: 1,
            command: vec!["tow".into(), "__node".into()],
            ..Batch::default()
        }
    }

    #[test]
    fn a_small_job_has_a_short_script() {
        let expected = "\
#!/bin/sh
#SBATCH --job-name=train
#SBATCH --output=/home/alice/.towline/log/%j
#SBATCH --open-mode=append
#SBATCH --chdir=/home/alice
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --no-requeue

exec tow __node
";
        assert_eq!(small().render().expect("renders"), expected);
    }

    #[test]
    fn everything_that_can_be_asked_for_has_its_line() {
        let batch = Batch {
            name: "vit \"large\" #1".into(),
            comment: Some(r"run a\b 'c'".into()),
            output: "/home/al ice/%A_%a.log".into(),
            nodes: 4,
            gpus_per_node: 8,
            gpu_type: Some("h200".into()),
            cpus_per_task: Some(40),
            memory_mb: Some(614_400),
            time: Some(14 * 86_400 + 1),
            partition: Some("gpu".into()),
            qos: Some("premium".into()),
            account: Some("lab".into()),
            array: Some("0-7%3".into()),
            requeue: true,
            signal: Some(("B:USR1".into(), 120)),
            native: vec!["--exclusive".into(), "--comment='mine wins'".into()],
            command: vec![
                "/bin/sh".into(),
                "-c".into(),
                "echo it's\n#SBATCH --nodes=9".into(),
                String::new(),
            ],
            ..small()
        };
        let expected = r#"#!/bin/sh
#SBATCH --job-name="vit \"large\" #1"
#SBATCH --comment="run a\\b 'c'"
#SBATCH --output="/home/al ice/%A_%a.log"
#SBATCH --open-mode=append
#SBATCH --chdir=/home/alice
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:h200:8
#SBATCH --cpus-per-task=40
#SBATCH --mem=614400M
#SBATCH --time=14-00:01:00
#SBATCH --partition=gpu
#SBATCH --qos=premium
#SBATCH --account=lab
#SBATCH --array=0-7%3
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
#SBATCH --exclusive
#SBATCH --comment='mine wins'

exec /bin/sh -c 'echo it'\''s
#SBATCH --nodes=9' ''
"#;
        assert_eq!(batch.render().expect("renders"), expected);
        let overriding = batch.overridden_by();
        assert!(
            overriding.contains(&"SBATCH_PARTITION")
                && overriding.contains(&"SBATCH_NO_REQUEUE")
                && !overriding.contains(&"SBATCH_REQUEUE")
        );
        assert!(!small().overridden_by().contains(&"SBATCH_PARTITION"));
    }

    #[test]
    fn what_would_break_the_lines_is_refused() {
        for batch in [
            Batch {
                name: "a\nb".into(),
                ..small()
            },
            Batch {
                comment: Some("a\r".into()),
                ..small()
            },
            Batch {
                native: vec!["--x\n--y".into()],
                ..small()
            },
            Batch {
                native: vec!["exclusive".into()],
                ..small()
            },
            Batch {
                command: vec!["a\r\nb".into()],
                ..small()
            },
            Batch {
                command: vec!["a\0b".into()],
                ..small()
            },
            Batch {
                command: Vec::new(),
                ..small()
            },
        ] {
            assert!(batch.render().is_err(), "{batch:?}");
        }
    }

    #[test]
    fn the_output_of_a_job_is_found_by_its_pattern() {
        let one = output_pattern(false).replace("%j", "7");
        assert_eq!(output_name("7", None), one);
        let task = output_pattern(true).replace("%A", "7").replace("%a", "3");
        assert_eq!(output_name("7", Some(3)), task);
    }

    #[test]
    fn the_last_line_of_an_option_counts() {
        let script = "#!/bin/sh\n#SBATCH --qos=low\n#SBATCH --qos=high\n#SBATCH --qosx=no\n";
        assert_eq!(option(script, "qos"), Some("high"));
        assert_eq!(option(script, "partition"), None);
    }

    #[test]
    fn spans_are_whole_minutes() {
        for (seconds, text) in [
            (0, "00:01:00"),
            (1, "00:01:00"),
            (60, "00:01:00"),
            (61, "00:02:00"),
            (86_399, "1-00:00:00"),
            (9_000, "02:30:00"),
        ] {
            assert_eq!(clock(seconds), text, "{seconds}");
        }
    }
}
