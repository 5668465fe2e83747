//! A terminal with a shell in it: a server of tmux of its own.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use towline_testkit::{Home, until};

pub(super) struct Screen {
    socket: PathBuf,
    home: PathBuf,
    environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
}

impl Screen {
    /// A shell on a terminal of this size, with `tow` at its place in `$TOW`.
    pub(super) fn new(home: &Home, columns: u32, lines: u32) -> Self {
        let tow = home.command(["ps"]);
        let environment = tow
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let screen = Self {
            socket: home.path("tmux"),
            home: home.project(),
            environment: environment.collect(),
        };
        let size = [columns.to_string(), lines.to_string()];
        screen
            .tmux(&[
                "-f",
                "/dev/null",
                "new-session",
                "-d",
                "-x",
                &size[0],
                "-y",
                &size[1],
                "sh",
            ])
            .unwrap();
        screen.tmux(&["set-option", "-g", "status", "off"]).unwrap();
        let binary = home.binary().display();
        screen.types(&format!("PS1='ready> '; TOW={binary}; clear"));
        screen.shows("ready>");
        screen
    }

    /// Runs a command of tmux; its output, unless it failed.
    pub(super) fn tmux(&self, words: &[&str]) -> Option<String> {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .args(words)
            .current_dir(&self.home)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        output.status.success().then_some(text)
    }

    /// A line of the shell.
    pub(super) fn types(&self, line: &str) {
        self.keys(&["-l", line]);
        self.keys(&["Enter"]);
    }

    pub(super) fn keys(&self, keys: &[&str]) {
        let mut words = vec!["send-keys"];
        words.extend(keys);
        self.tmux(&words).unwrap();
    }

    pub(super) fn resize(&self, columns: u32, lines: u32) {
        let size = [columns.to_string(), lines.to_string()];
        self.tmux(&["resize-window", "-x", &size[0], "-y", &size[1]])
            .unwrap();
    }

    /// What is to be read now.
    pub(super) fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p"]).unwrap_or_default()
    }

    /// The same, with the colours.
    pub(super) fn coloured(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"]).unwrap_or_default()
    }

    /// Waits until a text is to be read; the whole screen then.
    #[track_caller]
    pub(super) fn shows(&self, text: &str) -> String {
        self.shows_that(text, |screen| screen.contains(text))
    }

    #[track_caller]
    pub(super) fn shows_that(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        until(&format!("the terminal shows {what}"), || {
            let screen = self.text();
            holds(&screen).then_some(screen)
        })
    }

    /// Whether the second screen is shown, the mouse is reported, and the cursor is there.
    pub(super) fn modes(&self) -> String {
        let modes = "#{alternate_on} #{mouse_any_flag} #{cursor_flag}";
        self.tmux(&["display-message", "-p", modes])
            .unwrap_or_default()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the terminal:\n{}", self.text());
        }
        self.tmux(&["kill-server"]);
    }
}
