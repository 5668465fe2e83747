//! The blocks of a page and their marks.

/// The setting that a block is run in. Each setting has one suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// This machine alone: no root, nothing installed.
    Local,
    /// A real Slurm cluster.
    Slurm,
    /// The emulator of Azure ML.
    Azure,
    /// Hosts behind a bastion.
    Hosts,
}

impl Setting {
    pub const ALL: [Self; 4] = [Self::Local, Self::Slurm, Self::Azure, Self::Hosts];

    /// As marks spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Slurm => "slurm",
            Self::Azure => "azure",
            Self::Hosts => "hosts",
        }
    }

    /// The source that names the pages it runs, below `crates/towline/tests`.
    pub fn suite(self) -> &'static str {
        match self {
            Self::Local => "console/main.rs",
            Self::Slurm => "slurm/console.rs",
            Self::Azure => "azureml/console.rs",
            Self::Hosts => "tunnel/console.rs",
        }
    }
}

/// A command, and what the page shows below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The line of the page, from 1.
    pub line: usize,
    pub command: String,
    pub shown: Vec<String>,
}

/// A `console` block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub line: usize,
    pub setting: Setting,
    pub is_fresh: bool,
    /// It is left out, and told, where this user may not limit the memory of runs.
    pub needs_memory_limits: bool,
    pub fixtures: Vec<String>,
    pub steps: Vec<Step>,
}

/// The steps of a page, in the order in which a reader takes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Session(Block),
    /// Writes a file of the project.
    File {
        name: String,
        text: String,
    },
}

/// The parts of a page, and what is wrong with it, each with its line.
pub fn parts(text: &str) -> (Vec<Part>, Vec<String>) {
    let mut parts = Vec::new();
    let mut wrong = Vec::new();
    let mut mark: Option<&str> = None;
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            if let Some(unused) = mark.filter(|_| !line.trim().is_empty()) {
                wrong.push(format!("{number}: no block follows the mark `{unused}`"));
                mark = None;
            }
            if let Some(comment) = line.strip_prefix("<!-- ")
                && let Some(words) = comment.strip_suffix(" -->")
                && (words.starts_with("console:") || words.starts_with("file:"))
            {
                mark = Some(words);
            }
            continue;
        };
        let body: Vec<&str> = lines
            .by_ref()
            .map(|(line, _)| line)
            .take_while(|line| line.trim() != "```")
            .collect();
        let mark = mark.take();
        let part = if language == "console" {
            session(number, mark, &body).map(|block| Some(Part::Session(block)))
        } else {
            file(number, mark, &body)
        };
        match part {
            Ok(part) => parts.extend(part),
            Err(message) => wrong.push(message),
        }
    }
    (parts, wrong)
}

fn session(line: usize, mark: Option<&str>, body: &[&str]) -> Result<Block, String> {
    let Some(listed) = mark.and_then(|mark| mark.strip_prefix("console:")) else {
        return Err(format!(
            "{line}: this block has no mark `<!-- console: … -->`"
        ));
    };
    let mut listed = listed.split(',').map(str::trim);
    let name = listed.next().unwrap_or_default();
    let setting = Setting::ALL
        .into_iter()
        .find(|setting| setting.name() == name)
        .ok_or_else(|| format!("{line}: no suite runs blocks marked `{name}`"))?;
    let mut listed: Vec<String> = listed.map(str::to_owned).collect();
    let mut takes = |word: &str| {
        let count = listed.len();
        listed.retain(|other| other != word);
        listed.len() < count
    };
    Ok(Block {
        line,
        setting,
        is_fresh: takes("fresh"),
        needs_memory_limits: takes("memory limits"),
        fixtures: listed,
        steps: steps(line + 1, body)?,
    })
}

fn file(line: usize, mark: Option<&str>, body: &[&str]) -> Result<Option<Part>, String> {
    let Some(mark) = mark else { return Ok(None) };
    let Some(name) = mark.strip_prefix("file:") else {
        return Err(format!(
            "{line}: `{mark}` stands before a block of another language"
        ));
    };
    Ok(Some(Part::File {
        name: name.trim().to_owned(),
        text: body.join("\n") + "\n",
    }))
}

/// The commands of a session that begins at this line, with what each shows.
///
/// # Errors
///
/// If something is shown before the first command, or there is none.
pub fn steps(first_line: usize, body: &[&str]) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_continued = false;
    for (text, line) in body.iter().zip(first_line..) {
        match steps.last_mut() {
            Some(step) if is_continued => {
                step.command += "\n";
                step.command += text;
                is_continued = text.ends_with('\\');
            }
            last => {
                if let Some(command) = text.strip_prefix("$ ") {
                    is_continued = command.ends_with('\\');
                    steps.push(Step {
                        line,
                        command: command.to_owned(),
                        shown: Vec::new(),
                    });
                } else if let Some(step) = last {
                    step.shown.push((*text).to_owned());
                } else {
                    return Err(format!("{line}: a session begins with `$ ` and a command"));
                }
            }
        }
    }
    if steps.is_empty() {
        return Err(format!("{first_line}: a session without a command"));
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# A page

<!-- console: local, fresh, vision -->

```console
$ tow ps \\
    --all     # every run
ID  NAME
$ true
```

<!-- file: job.yaml -->
```yaml
command: true
```

```sh
make
```
";

    #[test]
    fn commands_and_what_they_show_are_read() {
        let (found, wrong) = parts(PAGE);
        assert_eq!(wrong, [""; 0]);
        let [Part::Session(block), Part::File { name, text }] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(
            (name.as_str(), text.as_str()),
            ("job.yaml", "command: true\n")
        );
        assert_eq!((block.setting, block.is_fresh), (Setting::Local, true));
        assert_eq!(block.fixtures, ["vision"]);
        let read: Vec<(usize, &str, &[String])> = block
            .steps
            .iter()
            .map(|step| (step.line, step.command.as_str(), &step.shown[..]))
            .collect();
        assert_eq!(
            read,
            [
                (
                    6,
                    "tow ps \\\n    --all     # every run",
                    &["ID  NAME".to_owned()][..]
                ),
                (9, "true", &[][..]),
            ]
        );
    }

    #[test]
    fn a_block_that_nobody_runs_is_told() {
        for (page, said) in [
            ("```console\n$ true\n```\n", "1: this block has no mark"),
            (
                "<!-- console: vms -->\n```console\n$ true\n```\n",
                "2: no suite runs blocks marked `vms`",
            ),
            (
                "<!-- console: local -->\n```console\nhello\n```\n",
                "3: a session begins with",
            ),
            (
                "<!-- console: local -->\n```console\n```\n",
                "3: a session without a command",
            ),
            (
                "<!-- console: local -->\n```sh\ntrue\n```\n",
                "stands before a block of another language",
            ),
            ("<!-- console: local -->\ntext\n", "2: no block follows"),
        ] {
            let (_, wrong) = parts(page);
            assert!(
                wrong.len() == 1 && wrong[0].contains(said),
                "{page}: {wrong:?}"
            );
        }
    }
}
