//! The program as an xz file, a third of its size. It is made once for each version and kept.

use lzma_rust2::{CheckType, FilterType, XzOptions, XzWriter};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use towline_core::{Error, Result};
use towline_host::{filesystem, once};
use towline_wire::program::Packer;

/// The level of compression. The next ones take longer and save nothing.
const LEVEL: u32 = 6;
/// The pieces are compressed side by side. Each further one makes the whole 1 % larger.
const PIECES: usize = 4;
/// A larger program was built for debugging: compressing it takes longer than sending it.
const MAX_PROGRAM_BYTES: u64 = 64 << 20;

#[derive(Debug)]
pub struct ProgramPacker {
    /// The program.
    pub path: PathBuf,
    /// BLAKE3 of its bytes, as hexadecimal digits.
    pub digest: String,
    /// A folder of ours for the compressed program alone.
    pub folder: PathBuf,
}

impl Packer for ProgramPacker {
    fn packed(&self) -> Result<Option<Vec<u8>>> {
        let kept = self.folder.join(format!("tow-{}.xz", self.digest));
        if let Ok(bytes) = fs::read(&kept) {
            return Ok(Some(bytes));
        }
        let unreadable =
            |error: io::Error| Error::bug("this program cannot be read").source_error(error);
        if fs::metadata(&self.path).map_err(unreadable)?.len() > MAX_PROGRAM_BYTES {
            return Ok(None);
        }
        let packed = pack(&fs::read(&self.path).map_err(unreadable)?)
            .map_err(|error| Error::bug("this program cannot be packed").source_error(error))?;
        // If it cannot be kept, it is made again the next time.
        let _ = keep(&self.folder, &kept, &packed);
        Ok(Some(packed))
    }
}

/// Several xz files in a row, which every unpacker takes for one. Addresses of calls are rewritten
/// so that equal ones look equal (the filter for x86), which saves a tenth.
fn pack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let piece_bytes = bytes.len().div_ceil(PIECES).max(1);
    let pack_piece = |piece: &[u8]| {
        let mut options = XzOptions::with_preset(LEVEL);
        options.set_check_sum_type(CheckType::Crc32);
        options.prepend_pre_filter(FilterType::BcjX86, 0);
        let mut writer = XzWriter::new(Vec::new(), options)?;
        writer.write_all(piece)?;
        writer.finish()
    };
    let packed: io::Result<Vec<Vec<u8>>> = std::thread::scope(|scope| {
        let start = |piece| scope.spawn(move || pack_piece(piece));
        let threads: Vec<_> = bytes.chunks(piece_bytes).map(start).collect();
        let panicked = |_| Err(io::Error::other("the compressor panicked"));
        let finish = |thread: std::thread::ScopedJoinHandle<'_, io::Result<Vec<u8>>>| {
            thread.join().unwrap_or_else(panicked)
        };
        threads.into_iter().map(finish).collect()
    });
    Ok(packed?.concat())
}

/// Keeps it in place of those of other versions.
fn keep(folder: &Path, file: &Path, packed: &[u8]) -> io::Result<()> {
    filesystem::private_folder(folder)?;
    for entry in fs::read_dir(folder)? {
        fs::remove_file(entry?.path())?;
    }
    once::replace(file, packed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn unpacked(words: &[&str], packed: &[u8]) -> Vec<u8> {
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut input = child.stdin.take().expect("a pipe");
        let packed = packed.to_vec();
        let writer = std::thread::spawn(move || input.write_all(&packed));
        let output = child.wait_with_output().expect("it ends");
        writer.join().expect("no panic").expect("it reads all");
        output.stdout
    }

    #[test]
    fn both_unpackers_give_the_bytes_back() {
        let program = fs::read("/proc/self/exe").expect("this test");
        let code = &program[..program.len().min(3 << 20)];
        for bytes in [&b""[..], b"x", b"12345", code] {
            let packed = pack(bytes).expect("packed");
            if bytes.is_empty() {
                assert!(packed.is_empty());
                continue;
            }
            let python = "import lzma,sys; \
                          sys.stdout.buffer.write(lzma.open(sys.stdin.buffer).read())";
            for words in [&["xz", "-dc"][..], &["python3", "-c", python]] {
                assert!(
                    unpacked(words, &packed) == bytes,
                    "{words:?} of {}",
                    bytes.len()
                );
            }
        }
    }

    #[test]
    fn it_is_made_once_and_the_one_of_another_version_goes() {
        let home = tempfile::tempdir().expect("a folder");
        let (path, folder) = (home.path().join("tow"), home.path().join("packed"));
        let packer = |digest: &str| ProgramPacker {
            path: path.clone(),
            digest: digest.to_owned(),
            folder: folder.clone(),
        };
        fs::write(&path, b"first").expect("written");
        let first = packer("1").packed().expect("packed").expect("small");
        fs::write(&path, b"second").expect("written");
        assert_eq!(packer("1").packed().expect("packed"), Some(first.clone()));
        assert_ne!(packer("2").packed().expect("packed"), Some(first));
        let names: Vec<_> = fs::read_dir(&folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        assert_eq!(names, ["tow-2.xz"]);
        fs::File::options()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_len(MAX_PROGRAM_BYTES + 1))
            .expect("made large");
        assert_eq!(packer("3").packed().expect("looked at"), None);
    }
}
