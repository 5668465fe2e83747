//! `tow completions`: what real shells offer at a Tab.

use super::home;
use regex::Regex;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use towline_testkit::{Home, Output};

const CONFIGURATION: &str = "clusters:
  lab: {kind: slurm, host: login}
  lake: {kind: slurm, host: login}
datastores:
  research: {kind: folder, path: /nowhere}
  nas: {kind: folder, path: /nowhere}
folders:
  data: {datastore: research, path: alice/data}
tunnels:
  box: {to: far, via: bastion, port: 22222}
workspaces:
  work: {path: /scratch/work}
  other: {path: /scratch/other}
";

/// A home with three ended submissions, a running one, and names of every kind.
struct Typist {
    home: Home,
    /// Newest first.
    ids: Vec<String>,
}

/// Submits and waits for the end; the id.
fn ended(home: &Home, words: &[&str]) -> String {
    let id = home.tow([&["submit"], words].concat()).ok().id();
    home.tow(["wait", &id]);
    id
}

/// The short form that tables show.
fn short(id: &str) -> &str {
    &id[id.len() - 5..]
}

fn typist() -> Typist {
    let home = home();
    home.configure(CONFIGURATION);
    home.write("job.yaml", "command: [\"true\"]\n");
    home.write("notes/a b.txt", "");
    std::fs::create_dir(home.path("bin")).unwrap();
    symlink(home.binary(), home.path("bin/tow")).unwrap();
    let mut ids = vec![
        ended(&home, &["--name", "alpha", "--tag", "good", "true"]),
        ended(
            &home,
            &["--name", "sweep", "--sweep", "x=1-2", "true", "${{x}}"],
        ),
        ended(&home, &["--name", "beta", "--experiment", "hoi", "false"]),
        home.tow(["submit", "--name", "lasting", "sleep", "300"])
            .ok()
            .id(),
    ];
    home.wait_for_state(&ids[3], "running");
    ids.reverse();
    Typist { home, ids }
}

impl Typist {
    /// A program with the environment of this home, and its `tow` first in the path.
    fn command(&self, program: &str) -> Command {
        let tow = self.home.command([""; 0]);
        let mut command = Command::new(program);
        command.current_dir(self.home.project()).env_clear().envs(
            tow.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let path = std::env::var("PATH").unwrap_or_default();
        let own = self.home.path("bin");
        command
            .env("PATH", format!("{}:{path}", own.display()))
            .env("TERM", "xterm");
        command
    }
}

/// An interactive shell in a terminal of its own.
struct Shell {
    child: Child,
    keys: ChildStdin,
    screen: ChildStdout,
    /// The keys that put every candidate on the line.
    insert_all: &'static str,
}

impl Shell {
    fn start(typist: &Typist, line: &str, set_up: &str, insert_all: &'static str) -> Self {
        let mut child = typist
            .command("script")
            .args(["-qfec", line, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (keys, screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut shell = Self {
            child,
            keys,
            screen,
            insert_all,
        };
        shell.press(&format!(
            "stty columns 500; {set_up}; printf 'rea%s\\n' dy\n"
        ));
        shell.read_until("ready\r\n");
        shell
    }

    fn bash(typist: &Typist) -> Self {
        Self::start(
            typist,
            "bash --norc --noprofile -i",
            "bind 'set enable-bracketed-paste off'; source <(tow completions bash)",
            "\x1b*",
        )
    }

    /// With zsh's own completer that inserts all matches.
    fn zsh(typist: &Typist) -> Self {
        let set_up = "autoload -Uz compinit; compinit -u -D; source <(tow completions zsh); \
            zstyle ':completion:all:*' completer _all_matches _complete; \
            zstyle ':completion:all:*' insert yes; zle -C all complete-word _generic; \
            bindkey '^X' all";
        Self::start(typist, "zsh -f", set_up, "\x18")
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    #[track_caller]
    fn read_until(&mut self, text: &str) -> String {
        let mut seen = Vec::new();
        let mut byte = [0];
        while !String::from_utf8_lossy(&seen).ends_with(text) {
            assert_eq!(
                self.screen.read(&mut byte).unwrap(),
                1,
                "the shell ended before {text:?}: {}",
                String::from_utf8_lossy(&seen)
            );
            seen.push(byte[0]);
        }
        String::from_utf8_lossy(&seen).into_owned()
    }

    /// The words of the line after every candidate was put on it.
    #[track_caller]
    fn completed(&mut self, line: &str) -> Vec<String> {
        let insert_all = self.insert_all;
        self.press(&format!("{line}{insert_all}\x01printf '[%s]\\n' \n"));
        self.press("printf 'do%s\\n' ne\n");
        let screen = self.read_until("done\r\n");
        Regex::new(r"(?m)^\[(.*)\]\r$")
            .unwrap()
            .captures_iter(&screen)
            .map(|found| found[1].to_owned())
            .collect()
    }

    fn leave(mut self) {
        self.press("exit\n");
        drop(self.keys);
        self.child.wait().unwrap();
    }
}

/// Lines, and the words that replace the last one.
fn lines(typist: &Typist) -> Vec<(String, Vec<String>)> {
    let ids = &typist.ids;
    let line = |line: &str, words: &[&str]| {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        (line.to_owned(), words)
    };
    vec![
        line("tow resub", &["resubmit"]),
        line("tow scratch re", &["restore"]),
        line("tow logs --foll", &["--follow"]),
        // Newest first; the sweep as one, until its own id is typed.
        line("tow logs ", &[&ids[0], &ids[1], &ids[2], &ids[3]]),
        line("tow q al", &[&ids[3]]),
        line(
            &format!("tow logs {}-", ids[2]),
            &[&format!("{}-2", ids[2]), &format!("{}-1", ids[2])],
        ),
        line(&format!("tow why {}", short(&ids[1])), &[short(&ids[1])]),
        line("tow abort ", &[&ids[0]]),
        line(&format!("tow diff {} al", ids[1]), &[&ids[3]]),
        line("tow submit -c la", &["lab", "lake"]),
        line("tow submit --cluster=lab", &["--cluster=lab"]),
        line("tow -c la", &["lab", "lake"]),
        line("tow resubmit @ --to loc", &["local"]),
        line("tow ps --state failed,qu", &["failed,queued"]),
        line("tow submit --tier p", &["premium"]),
        line("tow ps --tag ", &["good"]),
        line("tow ps --experiment ", &["hoi"]),
        line("tow snapshot ls --in r", &["research"]),
        line("tow sync n", &["nas:"]),
        line("tow tunnel open ", &["box"]),
        line("tow scratch backup ", &["other", "work"]),
        line("tow up da", &["data/"]),
        line("tow submit -f jo", &["job.yaml"]),
        line("tow trust no", &["notes/"]),
        line("tow submit -n 1 cat notes/a", &["notes/a b.txt"]),
        line("tow run -n 1 whoam", &["whoami"]),
        line("tow completions zs", &["zsh"]),
        line("tow nonsense ", &[]),
    ]
}

#[track_caller]
fn check(shell: &mut Shell, typist: &Typist) {
    for (line, words) in lines(typist) {
        let mut before: Vec<&str> = line.split(' ').collect();
        let typed = before.pop().unwrap();
        let mut expected: Vec<String> = before.into_iter().map(ToOwned::to_owned).collect();
        expected.extend(words);
        let found = shell.completed(&line);
        // A folder may have its slash already, or get it with the next key.
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        let is_folder = |(found, expected): (&&str, &String)| {
            *found == expected || format!("{found}/") == *expected
        };
        assert!(
            found.len() == expected.len() && found.iter().zip(&expected).all(is_folder),
            "{line:?} ({typed:?}): {found:?}, not {expected:?}"
        );
    }
}

#[test]
fn bash_completes_verbs_options_and_values() {
    let typist = typist();
    let mut bash = Shell::bash(&typist);
    check(&mut bash, &typist);
    // Readline cuts words at a colon: what is behind it belongs to the store.
    assert_eq!(bash.completed("tow cp rese"), ["tow", "cp", "research:"]);
    assert_eq!(
        bash.completed("tow cp research:"),
        ["tow", "cp", "research:"]
    );
    bash.leave();
}

#[test]
fn zsh_completes_verbs_options_and_values_with_descriptions() {
    let typist = typist();
    let mut zsh = Shell::zsh(&typist);
    check(&mut zsh, &typist);
    zsh.press("tow abort la\t; tow logs \t");
    zsh.read_until("lasting-");
    zsh.read_until(" -- running: sleep 300");
    zsh.read_until(" -- failed: false");
    zsh.press("\x03");
    zsh.leave();
}

#[test]
fn fish_completes_verbs_options_and_values_with_descriptions() {
    let typist = typist();
    let ask = |line: &str| -> Vec<String> {
        let script = format!("tow completions fish | source; complete --do-complete '{line}'");
        let output: Output = typist
            .command("fish")
            .args(["--no-config", "-c", &script])
            .output()
            .unwrap()
            .into();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{line}");
        output.stdout.lines().map(ToOwned::to_owned).collect()
    };
    for (line, words) in lines(&typist) {
        let found = ask(&line);
        let values: Vec<&str> = found
            .iter()
            .map(|found| found.split('\t').next().unwrap())
            .collect();
        assert_eq!(values, words, "{line:?}");
    }
    assert_eq!(
        ask("tow abort ")[0].split_once('\t').unwrap().1,
        "running: sleep 300"
    );
    assert!(ask("tow logs be")[0].ends_with("\tfailed: false"));
    assert!(ask("tow -c lab")[0].ends_with("\tslurm"));
    assert!(ask("tow wh")[0].starts_with("why\tExplain why"));
}
