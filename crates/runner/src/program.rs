//! From a program to the exact file and arguments that are executed.

use std::fs;
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use towline_core::command::Program;

const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The values for `exec`: a file, the name it sees itself under, and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Executable {
    pub(crate) file: PathBuf,
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum NotExecutable {
    #[error("command not found: {0}")]
    NotFound(String),
    #[error("{0} is not executable")]
    Denied(String),
    #[error("{0} could not be started: {1}")]
    Broken(String, #[source] io::Error),
    #[error("the script could not be written: {0}")]
    Script(#[source] io::Error),
}

impl NotExecutable {
    /// The exit code of a shell for this error.
    pub(crate) const fn exit_code(&self) -> i32 {
        match self {
            Self::NotFound(_) => 127,
            _ => 126,
        }
    }

    /// The system's error, where one is the reason.
    pub(crate) const fn io_error(&self) -> Option<&io::Error> {
        match self {
            Self::Broken(_, error) | Self::Script(error) => Some(error),
            Self::NotFound(_) | Self::Denied(_) => None,
        }
    }
}

/// Finds the file that runs `program`; a script is first written to `script_file`.
pub(crate) fn prepare(
    program: &Program,
    workdir: &Path,
    path: Option<&str>,
    script_file: &Path,
) -> Result<Executable, NotExecutable> {
    match program {
        Program::Argv(words) => {
            let (first, rest) = words
                .split_first()
                .ok_or_else(|| NotExecutable::NotFound(String::new()))?;
            Ok(Executable {
                file: find(first, workdir, path)?,
                name: first.clone(),
                arguments: rest.to_vec(),
            })
        }
        Program::Line(line) => Ok(Executable {
            file: "/bin/sh".into(),
            name: "sh".into(),
            arguments: vec!["-c".into(), line.clone()],
        }),
        Program::Script(text) => script(text, workdir, path, script_file),
    }
}

/// `bash -e` (`sh -e` where there is none), or the interpreter that the `#!` line names.
pub(crate) fn script(
    text: &str,
    workdir: &Path,
    path: Option<&str>,
    file: &Path,
) -> Result<Executable, NotExecutable> {
    write_private(file, text.as_bytes()).map_err(NotExecutable::Script)?;
    let file_name = file.to_string_lossy().into_owned();
    let (interpreter, mut arguments) = match text
        .strip_prefix("#!")
        .and_then(|rest| rest.lines().next())
    {
        Some(line) => {
            let (interpreter, argument) = line
                .trim()
                .split_once(char::is_whitespace)
                .unwrap_or((line.trim(), ""));
            let argument = argument.trim();
            (
                interpreter.to_owned(),
                if argument.is_empty() {
                    Vec::new()
                } else {
                    vec![argument.to_owned()]
                },
            )
        }
        None if find("bash", workdir, path).is_ok() => ("bash".to_owned(), vec!["-e".to_owned()]),
        None => ("/bin/sh".to_owned(), vec!["-e".to_owned()]),
    };
    arguments.push(file_name);
    Ok(Executable {
        file: find(&interpreter, workdir, path)?,
        name: interpreter,
        arguments,
    })
}

fn write_private(file: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o700)
        .open(file)?
        .write_all(bytes)
}

/// Searches like a shell: a word with a slash is a path, another is searched in `PATH`.
fn find(word: &str, workdir: &Path, path: Option<&str>) -> Result<PathBuf, NotExecutable> {
    let executable = |file: &Path| {
        fs::metadata(file)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if word.contains('/') {
        let file = workdir.join(word);
        return match (executable(&file), file.exists()) {
            (true, _) => Ok(file),
            (false, true) => Err(NotExecutable::Denied(word.to_owned())),
            (false, false) => Err(NotExecutable::NotFound(word.to_owned())),
        };
    }
    path.unwrap_or(DEFAULT_PATH)
        .split(':')
        .map(|folder| workdir.join(folder).join(word))
        .find(|file| executable(file))
        .ok_or_else(|| NotExecutable::NotFound(word.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_like_a_shell_finds_them() {
        let here = Path::new("/");
        let words =
            |words: &[&str]| Program::Argv(words.iter().map(|word| (*word).to_owned()).collect());
        let found = prepare(
            &words(&["sh", "-c", "a b"]),
            here,
            Some("/nowhere:/bin"),
            Path::new("/x"),
        )
        .expect("sh is there");
        assert_eq!(
            (found.file, found.name.as_str()),
            (PathBuf::from("/bin/sh"), "sh")
        );
        let missing = prepare(&words(&["no-such-program"]), here, None, Path::new("/x"))
            .expect_err("missing");
        assert_eq!(
            (missing.exit_code(), missing.to_string().as_str()),
            (127, "command not found: no-such-program")
        );
        let denied = prepare(&words(&["/etc/passwd"]), here, None, Path::new("/x"))
            .expect_err("not executable");
        assert_eq!(denied.exit_code(), 126);
    }

    #[test]
    fn a_script_chooses_its_interpreter() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("script");
        let own = script(
            "#!/usr/bin/env python3\nprint(1)\n",
            folder.path(),
            None,
            &file,
        )
        .expect("env is there");
        assert_eq!(
            own.arguments,
            ["python3".to_owned(), file.to_string_lossy().into_owned()]
        );
        let plain =
            script("echo hi\n", folder.path(), Some("/nowhere"), &file).expect("sh is there");
        assert_eq!(
            (plain.file, plain.arguments[0].as_str()),
            (PathBuf::from("/bin/sh"), "-e")
        );
    }
}
