//! Trust in files: configuration that another user can write is not used.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The bit of a mode that lets everybody write.
const WORLD_WRITABLE: u32 = 0o002;

/// Why a file or folder is not trusted: another user owns it, or everybody may write it or its
/// folder. `None` if it is trusted. For a link, both the link and its target are checked.
pub fn distrust(path: &Path) -> io::Result<Option<String>> {
    // Searches upward mostly ask about files that are not there, which one call answers.
    fs::symlink_metadata(path)?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let real = fs::canonicalize(path)?;
    let beside_real = real.parent().unwrap_or(Path::new("/"));
    for place in [path, real.as_path()] {
        let meta = fs::symlink_metadata(place)?;
        if !is_ours(meta.uid()) {
            return Ok(Some(format!("belongs to {}", user_name(meta.uid()))));
        }
        // The mode of a link has no meaning.
        if !meta.is_symlink() && meta.mode() & WORLD_WRITABLE != 0 {
            return Ok(Some("can be written by everybody".to_owned()));
        }
    }
    for place in [folder, beside_real] {
        if fs::metadata(place)?.mode() & WORLD_WRITABLE != 0 {
            return Ok(Some(format!(
                "lies in {}, where everybody can write",
                place.display()
            )));
        }
    }
    Ok(None)
}

/// Whether the owner is this user, root, or the user who called `sudo`.
fn is_ours(owner: u32) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let caller = || {
        std::env::var("SUDO_UID")
            .ok()
            .and_then(|text| text.parse::<u32>().ok())
    };
    owner == own || owner == 0 || (own == 0 && caller() == Some(owner))
}

/// The name of a user in `/etc/passwd`, else the number. The program is static and cannot use NSS.
fn user_name(user: u32) -> String {
    let text = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let number = user.to_string();
    let name = text
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields.get(2) == Some(&number.as_str()))
        .map(|fields| fields[0].to_owned());
    name.map_or_else(|| format!("user {number}"), |name| format!("user `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    #[test]
    fn a_file_that_others_can_change_is_not_trusted() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("towline.yaml");
        fs::write(&file, "x").expect("written");
        assert_eq!(distrust(&file).expect("it can be asked"), None);
        let link = folder.path().join("link");
        symlink(&file, &link).expect("a link");
        assert_eq!(distrust(&link).expect("it can be asked"), None);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("changed");
        assert!(
            distrust(&file)
                .expect("it can be asked")
                .expect("not ours")
                .contains("everybody")
        );
        assert!(
            distrust(&link).expect("it can be asked").is_some(),
            "through a link too"
        );
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("changed");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).expect("changed");
        assert!(
            distrust(&file)
                .expect("it can be asked")
                .expect("not ours")
                .contains("lies in")
        );
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("changed");
        if rustix::process::geteuid().is_root() {
            chown(&file, Some(65_534), None).expect("root gives it away");
            assert!(
                distrust(&file)
                    .expect("it can be asked")
                    .expect("not ours")
                    .contains("belongs to")
            );
        }
        assert!(distrust(&folder.path().join("nothing")).is_err());
    }
}
