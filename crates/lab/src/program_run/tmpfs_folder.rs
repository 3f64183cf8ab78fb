//! A private folder in memory.

use rustix::process::geteuid;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Where Linux keeps files in memory (`shm_overview(7)`).
const TMPFS: &str = "/dev/shm";
const PREFIX: &str = "ropewalk-lab.";
/// A folder without an owner is removed at this age: younger ones may be about to get theirs.
const ABANDONED: Duration = Duration::from_secs(60);

/// Its end removes it. If the process is killed before, the next folder's begin does.
pub(super) struct TmpfsFolder {
    path: PathBuf,
    /// Locked, which shows others that the folder has an owner.
    _owner: File,
}

impl TmpfsFolder {
    pub fn new() -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        remove_abandoned();
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let path = Path::new(TMPFS).join(format!("{PREFIX}{process}.{number}"));
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| in_path(&path, &error))?;
        let owner = File::open(&path)?;
        owner.try_lock()?;
        Ok(Self { path, _owner: owner })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a folder in it.
    pub fn folder(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        fs::create_dir(&path)?;
        Ok(path)
    }
}

impl Drop for TmpfsFolder {
    fn drop(&mut self) {
        // What cannot be removed now is removed as abandoned later.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn in_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Removes this user's folders that a killed process has left behind. An error leaves them there: they do no harm.
fn remove_abandoned() {
    let names = fs::read_dir(TMPFS).into_iter().flatten().flatten();
    let folders = names.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    for folder in folders {
        if is_abandoned(&folder.path()).unwrap_or(false) {
            let _ = fs::remove_dir_all(folder.path());
        }
    }
}

fn is_abandoned(folder: &Path) -> io::Result<bool> {
    let about = fs::symlink_metadata(folder)?;
    let is_old = about.modified()?.elapsed().is_ok_and(|age| age > ABANDONED);
    Ok(about.is_dir()
        && about.uid() == geteuid().as_raw()
        && is_old
        && File::open(folder)?.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use requirement::{Need, skip};
    use std::time::SystemTime;

    fn folder() -> Option<TmpfsFolder> {
        TmpfsFolder::new().map_err(|error| skip(Need::Tmpfs, &error.to_string())).ok()
    }

    #[test]
    fn a_folder_goes_with_its_owner() {
        let Some(folder) = folder() else { return };
        let inner = folder.folder("state").unwrap();
        assert!(inner.is_dir());
        drop(folder);
        assert!(!inner.exists());
    }

    #[test]
    fn only_a_folder_without_an_owner_is_removed_by_others() {
        let Some(kept) = folder() else { return };
        let abandoned = Path::new(TMPFS).join(format!("{PREFIX}test.{}", std::process::id()));
        fs::create_dir(&abandoned).unwrap();
        let long_ago = SystemTime::now() - 2 * ABANDONED;
        for path in [&kept.path, &abandoned] {
            File::open(path).unwrap().set_modified(long_ago).unwrap();
        }
        drop(TmpfsFolder::new().unwrap());
        assert!(kept.path.exists() && !abandoned.exists());
    }
}
