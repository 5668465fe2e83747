//! This program on its way to another machine: compressed, if that machine can unpack it.

use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use towline_core::transport::{Ran, Transport};
use towline_core::{Error, Result};

/// This program, ready for upload to another machine.
#[derive(Debug, Clone)]
pub struct OwnProgram {
    pub path: PathBuf,
    /// BLAKE3 of its bytes, as hexadecimal digits.
    pub digest: String,
    /// Without one, the program is sent as it is.
    pub packer: Option<Arc<dyn Packer>>,
}

/// Makes the compressed program.
pub trait Packer: fmt::Debug + Send + Sync {
    /// The whole program as an xz file; `None` if compressing takes longer than it saves.
    fn packed(&self) -> Result<Option<Vec<u8>>>;
}

/// How long the other machine may take to unpack the program.
const UNPACK_TIMEOUT: Duration = Duration::from_secs(120);

// Neither script has a character that some login shell would change within single quotes.

/// Says whether a machine can unpack.
const CAN_UNPACK_SCRIPT: &str = "command -v xz || command -v python3";

/// Unpacks the file `$1` and gives it the name `$2` once it is whole and synced. Python does it
/// where `xz` cannot.
const UNPACK_SCRIPT: &str = r#"case $1 in ./*) cd || exit 1;; esac;
umask 077; t=$1.whole;
p="import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), sys.stdout.buffer)";
if xz -dc "$1" > "$t" || python3 -c "$p" "$1" > "$t"; then
dd if=/dev/null of="$t" bs=1 count=0 conv=notrunc,fsync && chmod 700 "$t" && mv -f "$t" "$2" && rm -f "$1" && exit 0; fi;
rm -f "$t" "$1"; exit 1"#;

impl OwnProgram {
    /// Its path in a stage folder.
    pub fn place(&self, stage: &str) -> String {
        format!("{stage}/bin/tow-{}", self.digest)
    }

    /// Copies it into a stage folder of that machine.
    pub(crate) fn bring(&self, machine: &dyn Transport, stage: &str) -> Result<()> {
        let mut bytes = File::open(&self.path).map_err(|error| {
            Error::bug(format!("{} cannot be read", self.path.display())).source_error(error)
        })?;
        machine.put(&self.place(stage), &mut bytes, 0o700)
    }

    /// The same, with fewer bytes on the network. `false` if that machine has to get the program as
    /// it is.
    pub(crate) fn bring_packed(&self, machine: &dyn Transport, stage: &str) -> Result<bool> {
        let Some(packer) = self.packer.as_ref().filter(|_| !machine.is_this_machine()) else {
            return Ok(false);
        };
        if !shell(machine, CAN_UNPACK_SCRIPT, &[])?.is_good() {
            return Ok(false);
        }
        let Some(packed) = packer.packed()? else {
            return Ok(false);
        };
        // Another machine of the user may send the same program at the same time.
        let place = self.place(stage);
        let part = format!("{stage}/bin/.tow-{}", random_word()?);
        machine.put(&part, &mut &packed[..], 0o600)?;
        let words = [&*below_home(&part), &*below_home(&place)];
        Ok(shell(machine, UNPACK_SCRIPT, &words)?.is_good())
    }
}

fn shell(machine: &dyn Transport, script: &str, words: &[&str]) -> Result<Ran> {
    let script = script.replace('\n', " ");
    let argv = [&["/bin/sh", "-c", &script, "tow"], words].concat();
    machine.run(&argv, &[], UNPACK_TIMEOUT)
}

/// A path that does not begin with `/` is below the user's home there.
fn below_home(path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("./{path}")
    }
}

fn random_word() -> Result<String> {
    let number = getrandom::u64()
        .map_err(|error| Error::bug("no random bytes from the system").source_error(error))?;
    Ok(format!("{number:016x}"))
}
