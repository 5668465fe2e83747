//! Reading a file that the user names: only plain files, and only up to a limit.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// No configuration or batch script is larger.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The file's text. A device, a pipe or a folder is not opened at all.
pub fn read_plain(file: &Path) -> io::Result<String> {
    let refused = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    if !fs::metadata(file)?.is_file() {
        return refused("is not a plain file".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(file)?
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return refused(format!("is larger than {} MiB", MAX_FILE_BYTES >> 20));
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_files_of_a_sane_size_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("x");
        fs::write(&file, "text").expect("written");
        assert_eq!(read_plain(&file).expect("read"), "text");
        for odd in [Path::new("/dev/zero"), folder.path()] {
            let error = read_plain(odd).expect_err("refused");
            assert_eq!(
                (error.kind(), error.to_string().as_str()),
                (io::ErrorKind::InvalidInput, "is not a plain file")
            );
        }
        File::create(&file)
            .and_then(|file| file.set_len(MAX_FILE_BYTES + 1))
            .expect("written");
        assert!(
            read_plain(&file)
                .expect_err("refused")
                .to_string()
                .contains("larger than 16 MiB")
        );
        assert_eq!(
            read_plain(&folder.path().join("none"))
                .expect_err("refused")
                .kind(),
            io::ErrorKind::NotFound
        );
    }
}
