//! Mounts below a folder: how to find and release them.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Mount points at or below `folder`, the innermost first.
pub fn below(folder: &Path) -> Vec<PathBuf> {
    // The kernel's list has no links in its paths.
    let folder = &folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let list = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mut found: Vec<PathBuf> = list
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(unescape)
        .filter(|point| point.starts_with(folder))
        .collect();
    found.sort_by_key(|point| std::cmp::Reverse(point.as_os_str().len()));
    found
}

/// Releases every mount below `folder`, even one whose program is gone. Returns those that stayed.
pub fn release_below(folder: &Path) -> Vec<PathBuf> {
    for point in below(folder) {
        // A user may release a FUSE mount through its helper; root may release any mount.
        for words in [
            &["fusermount3", "-u", "-z"][..],
            &["fusermount", "-u", "-z"],
            &["umount", "-l"],
        ] {
            let mut command = Command::new(words[0]);
            command
                .args(&words[1..])
                .arg(&point)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            if command.status().is_ok_and(|status| status.success()) {
                break;
            }
        }
    }
    below(folder)
}

/// Decodes a path of the kernel's list, which has blanks, tabs, newlines and backslashes in octal.
fn unescape(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|digits| {
            *first == b'\\' && digits.iter().all(|digit| (b'0'..=b'7').contains(digit))
        });
        let number = octal.and_then(|digits| {
            u8::from_str_radix(std::str::from_utf8(digits).unwrap_or_default(), 8).ok()
        });
        bytes.push(number.unwrap_or(*first));
        rest = if number.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// Whether something is mounted exactly there.
pub fn is_mounted(point: &Path) -> bool {
    let point = &point.canonicalize().unwrap_or_else(|_| point.to_owned());
    let list = below(point);
    list.iter()
        .any(|found| found.as_os_str().as_bytes() == point.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_names_are_decoded() {
        assert_eq!(
            unescape(br"/a\040b\011c\134d\012e"),
            PathBuf::from("/a b\tc\\d\ne")
        );
        assert_eq!(unescape(br"/plain\9"), PathBuf::from(r"/plain\9"));
    }

    #[test]
    fn the_root_is_a_mount_and_a_fresh_folder_is_none() {
        assert!(
            below(Path::new("/"))
                .iter()
                .any(|point| point == Path::new("/"))
        );
        assert!(release_below(Path::new("/nowhere/at/all")).is_empty());
    }
}
