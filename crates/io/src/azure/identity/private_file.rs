//! Files that hold secrets: regular files of this user that nobody else can read.

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A larger file is not read; no token comes near this size.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Why a file is not used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unsafe {
    Link,
    OtherOwner,
    /// Its mode.
    Readable(u32),
    Unreadable(String),
}

impl Unsafe {
    /// The rest of a sentence that begins with the path.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Link => "is a link or no regular file".to_owned(),
            Self::OtherOwner => "belongs to somebody else".to_owned(),
            Self::Readable(mode) => format!("can be read by others (mode {mode:o})"),
            Self::Unreadable(why) => format!("cannot be read: {why}"),
        }
    }
}

/// The bytes of a private file; `None` if there is none. A link is not followed, because it may
/// lead to a file that somebody else replaces.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, Unsafe> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(descriptor) => File::from(descriptor),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(rustix::io::Errno::LOOP) => return Err(Unsafe::Link),
        Err(error) => return Err(Unsafe::Unreadable(io::Error::from(error).to_string())),
    };
    let unreadable = |error: io::Error| Unsafe::Unreadable(error.to_string());
    let meta = file.metadata().map_err(unreadable)?;
    if !meta.is_file() {
        return Err(Unsafe::Link);
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(Unsafe::OtherOwner);
    }
    if meta.mode() & 0o077 != 0 {
        return Err(Unsafe::Readable(meta.mode() & 0o777));
    }
    if meta.len() > MAX_FILE_BYTES {
        return Err(Unsafe::Unreadable("it is too large".to_owned()));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn only_a_private_regular_file_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        assert_eq!(read(&path), Ok(None));
        fs::write(&path, "secret").expect("written");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("set");
        assert_eq!(read(&path), Err(Unsafe::Readable(0o640)));
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("set");
        assert_eq!(read(&path), Ok(Some(b"secret".to_vec())));
        let link = folder.path().join("link");
        symlink(&path, &link).expect("linked");
        assert_eq!(read(&link), Err(Unsafe::Link));
        assert_eq!(read(folder.path()), Err(Unsafe::Link));
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .expect("a pipe");
        assert_eq!(read(&pipe), Err(Unsafe::Link), "nobody waits for a writer");
    }
}
