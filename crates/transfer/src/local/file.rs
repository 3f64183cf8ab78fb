//! A regular file as a destination: locked while it is written, and under its own name only once it is complete.

use crate::disk::Disk;
use crate::local::{self, Kind, cannot_open};
use crate::place::GrowingFile;
use crate::stream::Writer;
use crate::{Error, Refusal};
use block::{Engine, FileOptions};
use rustix::fs::{CWD, OFlags, RenameFlags};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The mode of a new file: only its owner may read or change a disk's data.
const OWNER_ONLY: u32 = 0o600;

/// The suffix of the name under which a new file is written.
const PARTIAL_SUFFIX: &str = ".partial";

/// A file that is open for writing, under an exclusive lock.
pub(super) struct LocalFile {
    file: File,
    /// The file's final name.
    path: PathBuf,
    /// The name of a new file until it is complete.
    partial: Option<PathBuf>,
    engine: Engine,
}

/// The name under which a new file is written.
fn partial_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(PARTIAL_SUFFIX);
    name.into()
}

/// Refuses a copy that would destroy the file's contents.
pub(super) fn check(path: &Path, seen: Kind, overwrite: bool) -> Result<(), Refusal> {
    match seen {
        _ if overwrite => Ok(()),
        Kind::File { bytes: 1.., .. } => Err(Refusal::NotEmpty { name: path.display().to_string() }),
        Kind::Absent if partial_path(path).symlink_metadata().is_ok() => Err(partial_exists(path)),
        _ => Ok(()),
    }
}

fn partial_exists(path: &Path) -> Refusal {
    Refusal::PartialExists { name: partial_path(path).display().to_string() }
}

impl LocalFile {
    /// Opens the file that [`local::kind_of`] found, or creates a new one, without changing its contents.
    pub(super) fn open(path: &Path, seen: Kind, overwrite: bool, engine: Engine) -> Result<Self, Error> {
        if seen == Kind::Absent {
            return Self::create(path, overwrite, engine);
        }
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|error| cannot_open(path, error))?;
        lock(&file, path)?;
        // Other copies are excluded only under the lock, so the earlier checks are repeated.
        let found = file.metadata().map_err(|error| cannot_open(path, error))?;
        if Kind::of(&found) != seen || local::kind_of(path)? != seen {
            return Err(changed(path));
        }
        Ok(Self { file, path: path.to_owned(), partial: None, engine })
    }

    fn create(path: &Path, overwrite: bool, engine: Engine) -> Result<Self, Error> {
        let partial = partial_path(path);
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(OWNER_ONLY).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        if overwrite {
            options.create(true)
        } else {
            options.create_new(true)
        };
        let file = options.open(&partial).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => partial_exists(path).into(),
            _ => cannot_open(&partial, error),
        })?;
        lock(&file, &partial)?;
        let found = file.metadata().map_err(|error| cannot_open(&partial, error))?;
        // Another copy may have completed and renamed the file before the lock was taken.
        if !found.is_file() || local::kind_of(&partial)? != Kind::of(&found) {
            return Err(changed(&partial));
        }
        let emptied = file.set_len(0).and_then(|()| file.set_permissions(Permissions::from_mode(OWNER_ONLY)));
        emptied.map_err(|error| cannot_open(&partial, error))?;
        Ok(Self { file, path: path.to_owned(), partial: Some(partial), engine })
    }

    /// The file's present name.
    fn name(&self) -> &Path {
        self.partial.as_deref().unwrap_or(&self.path)
    }

    fn set_len_if(&self, bytes: u64, condition: impl Fn(u64) -> bool) -> Result<bool, Error> {
        let set = || match self.file.metadata()?.len() {
            present_bytes if condition(present_bytes) => self.file.set_len(bytes).map(|()| true),
            _ => Ok(false),
        };
        set().map_err(|error| cannot_open(self.name(), error))
    }
}

impl GrowingFile for LocalFile {
    fn extend(&self, bytes: u64) -> Result<bool, Error> {
        let extended = self.set_len_if(bytes, |present_bytes| present_bytes < bytes)?;
        Ok(extended && self.partial.is_none())
    }

    fn disk(&self) -> Result<Disk, Error> {
        let failed = |error| cannot_open(self.name(), error);
        let tail = local::tail(&self.file).map_err(failed)?;
        let file = self.file.try_clone().map_err(failed)?;
        let name = self.name().display().to_string();
        let options = FileOptions { thin: true, ..FileOptions::default() };
        let opened = block::File::adopt(file, self.name(), &options, &self.engine);
        let opened = opened.map_err(|source| Error::Open { name: name.clone(), source })?;
        Ok(Disk { tail: tail.into(), ..Disk::new(name, std::sync::Arc::new(opened)) })
    }

    fn writer(&self) -> Result<Writer, Error> {
        let file = self.file.try_clone().map_err(|error| cannot_open(self.name(), error))?;
        Ok(Writer::new(Synced(file)))
    }

    fn finish(&self, bytes: u64) -> Result<(), Error> {
        self.set_len_if(bytes, |present_bytes| present_bytes != bytes)?;
        self.file.sync_all().map_err(|error| cannot_open(self.name(), error))?;
        if let Some(partial) = &self.partial {
            rename(partial, &self.path).map_err(|source| Error::Rename {
                partial: partial.display().to_string(),
                name: self.path.display().to_string(),
                source,
            })?;
            local::sync_folder(&self.path)?;
        }
        Ok(())
    }

    fn abandon(self: Box<Self>, touched: bool) -> Option<Box<Path>> {
        let partial = self.partial?;
        if !touched {
            let _ = fs::remove_file(&partial);
        }
        // It may have its final name already.
        partial.symlink_metadata().is_ok().then(|| partial.into())
    }
}

fn lock(file: &File, path: &Path) -> Result<(), Error> {
    let name = path.display().to_string();
    block::File::lock(file, path).map_err(|source| local::in_use(Error::Open { name, source }))
}

fn changed(path: &Path) -> Error {
    let used = "being changed by another process".to_owned();
    Refusal::DestinationInUse { name: path.display().to_string(), used }.into()
}

/// Renames a file without replacing another one.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some filesystems, such as NFS, cannot do that; `link` refuses to replace a file on every filesystem.
        Err(Errno::INVAL | Errno::NOSYS) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        renamed => Ok(renamed?),
    }
}

/// A file whose flush reaches the medium.
struct Synced(File);

impl io::Write for Synced {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::EngineChoice;
    use std::os::fd::OwnedFd;

    /// A file that the system refuses to sync: `fsync(2)` answers EINVAL for a pipe.
    fn unsyncable() -> (io::PipeReader, File) {
        let (reader, writer) = io::pipe().expect("a pipe");
        (reader, OwnedFd::from(writer).into())
    }

    fn is_einval(error: &io::Error) -> bool {
        Errno::from_io_error(error) == Some(Errno::INVAL)
    }

    #[test]
    fn a_file_is_synced_before_it_gets_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, partial) = (folder.path().join("to"), folder.path().join("to.partial"));
        fs::write(&partial, "").expect("a file");
        let (_reader, file) = unsyncable();
        let engine = Engine::new(EngineChoice::Threads).expect("an engine");
        let file = LocalFile { file, path: path.clone(), partial: Some(partial), engine };
        let failed = file.finish(0);
        assert!(matches!(&failed, Err(Error::File { source, .. }) if is_einval(source)), "{failed:?}");
        assert!(!path.exists());
    }

    #[test]
    fn a_flush_of_a_file_that_is_written_as_a_stream_syncs_it() {
        let (_reader, file) = unsyncable();
        let flushed = io::Write::flush(&mut Synced(file));
        assert!(flushed.as_ref().is_err_and(is_einval), "{flushed:?}");
    }
}
