//! Reads files that hold secrets. The owner must be this process's user or root, and nobody else may read or change the
//! file: others may know a secret that they could read, and may have replaced one that they could write.

#![forbid(unsafe_code)]

use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The longest file that is read: a few secrets with their names, or a configuration of hundreds of targets.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// Permissions that a file with secrets must not have.
const OF_OTHERS: u32 = 0o077;

/// The reason why a file's secrets are refused, and the remedy.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message shows what each field is")]
pub enum SecretFileError {
    /// The system cannot read the file.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The path leads to a folder, a pipe or a device.
    #[error("{} is not a regular file", path.display())]
    NotAFile { path: PathBuf },
    /// Other users can read or change the file.
    #[error(
        "others than its owner have access to {} (mode {mode:04o}): run chmod 600 on it, and change the secrets in it",
        path.display()
    )]
    Exposed { path: PathBuf, mode: u32 },
    /// The file belongs to another user, and so does the secret.
    #[error(
        "{}, or the symbolic link of that name, belongs to user {owner}: only files of user {user} or of root are \
         trusted; run chown on it",
        path.display()
    )]
    Owner {
        path: PathBuf,
        /// Its owner's user number.
        owner: u32,
        /// This process's user number.
        user: u32,
    },
    /// The file is longer than [`FILE_BYTES_MAX`].
    #[error("{} is longer than {FILE_BYTES_MAX} bytes, too long for a file of secrets", path.display())]
    TooLong { path: PathBuf },
}

/// Reads a whole file and returns the verdict of [`check`] with it. The check follows the opening, so that the file
/// cannot be replaced in between.
///
/// # Errors
/// The file cannot be read, or is too long. The second part of the result says whether its secrets may be used.
pub fn read_and_check(path: &Path) -> Result<(Vec<u8>, Result<(), SecretFileError>), SecretFileError> {
    let unreadable = |source| SecretFileError::Unreadable { path: path.to_owned(), source };
    // Does not wait for a writer if this is a pipe.
    let nonblocking = i32::from_ne_bytes(OFlags::NONBLOCK.bits().to_ne_bytes());
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path).map_err(unreadable)?;
    let verdict = check(&file, path);
    if matches!(verdict, Err(SecretFileError::NotAFile { .. })) {
        return verdict.map(|()| (Vec::new(), Ok(())));
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(SecretFileError::TooLong { path: path.to_owned() });
    }
    Ok((bytes, verdict))
}

/// Reads a file that holds only secrets.
///
/// # Errors
/// The file cannot be read, or its secrets may not be used.
pub fn read(path: &Path) -> Result<Vec<u8>, SecretFileError> {
    let (bytes, verdict) = read_and_check(path)?;
    verdict.map(|()| bytes)
}

/// Whether an open file, opened by this path, may hold secrets.
fn check(file: &File, path: &Path) -> Result<(), SecretFileError> {
    let unreadable = |source| SecretFileError::Unreadable { path: path.to_owned(), source };
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(SecretFileError::NotAFile { path: path.to_owned() });
    }
    let link = fs::symlink_metadata(path).map_err(unreadable)?;
    let user = geteuid().as_raw();
    let stranger = [link.uid(), metadata.uid()].into_iter().find(|&owner| owner != user && owner != 0);
    if let Some(owner) = stranger {
        return Err(SecretFileError::Owner { path: path.to_owned(), owner, user });
    }
    if metadata.mode() & OF_OTHERS != 0 {
        return Err(SecretFileError::Exposed { path: path.to_owned(), mode: metadata.mode() & 0o7777 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use requirement::{Need, skip};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use tempfile::TempDir;

    fn file(text: &[u8], mode: u32) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        (folder, path)
    }

    #[test]
    fn a_file_that_only_its_owner_can_read_is_read() {
        for mode in [0o600, 0o400] {
            let (_folder, path) = file(b"correct horse", mode);
            assert_eq!(read(&path).unwrap(), b"correct horse");
        }
    }

    #[test]
    fn a_file_that_others_can_read_or_change_is_refused_with_advice_and_without_the_secret() {
        for mode in [0o640, 0o604, 0o620, 0o602, 0o610] {
            let (_folder, path) = file(b"correct horse", mode);
            let refusal = read(&path).unwrap_err();
            assert!(matches!(refusal, SecretFileError::Exposed { .. }), "{mode:o}");
            let text = format!("{refusal} {refusal:?}");
            assert!(text.contains("chmod 600") && !text.contains("horse"), "{text}");
        }
    }

    #[test]
    fn a_symbolic_link_is_followed_and_the_file_behind_it_judged() {
        let (folder, path) = file(b"correct horse", 0o600);
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(read(&link).is_ok());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(read(&link), Err(SecretFileError::Exposed { .. })));
    }

    /// Only root can give files away.
    #[test]
    fn what_belongs_to_somebody_else_is_refused() {
        const NOBODY: u32 = 65534;
        let (folder, path) = file(b"correct horse", 0o600);
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        if let Err(error) = std::os::unix::fs::lchown(&link, Some(NOBODY), None) {
            return skip(Need::Root, &format!("giving a file away: {error}"));
        }
        assert!(matches!(read(&link), Err(SecretFileError::Owner { owner: NOBODY, .. })));
        assert!(read(&path).is_ok());
        std::os::unix::fs::chown(&path, Some(NOBODY), None).unwrap();
        assert!(matches!(read(&path), Err(SecretFileError::Owner { owner: NOBODY, .. })));
    }

    #[test]
    fn what_is_no_file_is_refused_without_waiting_for_it() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(read(folder.path()), Err(SecretFileError::NotAFile { .. })));
        assert!(matches!(read(Path::new("/dev/zero")), Err(SecretFileError::NotAFile { .. })));
        let absent = folder.path().join("absent");
        assert!(matches!(read(&absent), Err(SecretFileError::Unreadable { .. })));
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(!made.is_ok_and(|made| made.success()) || read(&pipe).is_err());
    }

    #[test]
    fn a_file_is_not_read_without_end() {
        let (_folder, path) = file(&vec![b'a'; usize::try_from(FILE_BYTES_MAX).unwrap() + 1], 0o600);
        assert!(matches!(read(&path), Err(SecretFileError::TooLong { .. })));
    }
}
