//! Storage for persistent reservations across restarts: one file for each logical unit, named by the unit's designator,
//! in a directory that only this user and root can write to.
//!
//! The directory is opened once and checked. Every file is then opened relative to it, so nobody can replace it with
//! another directory or a symbolic link.
//!
//! A file is replaced as a whole: the new one is written beside it, made durable and renamed, and the directory is made
//! durable. After a crash, one or the other is there. A lock file beside it is held for as long as a server serves the
//! unit, because two servers that store independently would undo each other's fences.

use device::unit_state::{InvalidSnapshot, PersistedReservations};
use device::{Persist, Stored};
use rustix::fs::{AtFlags, Dir, Mode, OFlags, Stat};
use scsi::Naa;
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A directory, or a file in it, that cannot be used. Nothing is served without its reservations, which fence hosts
/// off.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message shows what each field is")]
pub enum StateError {
    /// The directory cannot be made, read or written to.
    #[error("cannot keep reservations in {}: {source}", path.display())]
    Directory { path: PathBuf, source: io::Error },
    /// Others could add or remove reservations there.
    #[error(
        "cannot keep reservations in {}: others may write to it (mode {mode:04o}): run chmod go-w on it",
        path.display()
    )]
    Exposed { path: PathBuf, mode: u32 },
    /// Another user could change the permissions, and then the reservations.
    #[error(
        "cannot keep reservations in {}: it belongs to user {owner}, and only directories of user {user} or of root are \
         trusted: run chown on it, or choose another state directory (--state-directory)",
        path.display()
    )]
    Owner {
        path: PathBuf,
        /// Its owner's user number.
        owner: u32,
        /// This process's user number.
        user: u32,
    },
    /// Anyone who can write to the parent directory could redirect the link.
    #[error(
        "cannot keep reservations in {}, which is a symbolic link: name the directory that it leads to",
        path.display()
    )]
    SymbolicLink { path: PathBuf },
    /// The file cannot be read.
    #[error("cannot read the reservations in {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// Another unit with the same target name and identity uses the same file.
    #[error(
        "the reservations in {} are those of another server, which serves the same unit of the same target name: stop \
         it, or give this one another state directory (--state-directory), target name or id",
        path.display()
    )]
    InUse { path: PathBuf },
    /// The file is damaged, or of a later version.
    #[error(
        "the reservations in {} cannot be trusted: {source}. If no initiator relies on them, remove the file",
        path.display()
    )]
    Damaged { path: PathBuf, source: InvalidSnapshot },
}

/// The longest file name (`NAME_MAX` of Linux), less the longer suffix.
const NAME_BYTES_MAX: usize = 255 - LOCK.len();
/// The suffix of a file that is being written.
const NEW: &str = ".new";
/// The suffix of the lock file, which stays.
const LOCK: &str = ".lock";
/// The time for which a lock is retried: an immediate restart must not fail because the old server is still ending.
const IN_USE_PATIENCE: Duration = Duration::from_secs(2);
/// The pause between two tries.
const IN_USE_PAUSE: Duration = Duration::from_millis(10);
/// Permissions of others that a state directory must not give.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// A usable state directory.
#[derive(Clone, Debug)]
pub(crate) struct StateDirectory {
    path: PathBuf,
    directory: Arc<File>,
}

impl StateDirectory {
    /// Makes the directory if necessary, and checks that it is trustworthy and writable.
    pub(crate) fn open(path: &Path) -> Result<Self, StateError> {
        const OWNER_ONLY: u32 = 0o700;
        // Without a final slash, at which the system would follow a symbolic link.
        let path: PathBuf = path.components().collect();
        let failed = |source| StateError::Directory { path: path.clone(), source };
        DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(&path).map_err(failed)?;
        if path.symlink_metadata().map_err(failed)?.is_symlink() {
            return Err(StateError::SymbolicLink { path });
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&path, flags, Mode::empty());
        let directory = File::from(opened.map_err(|errno| failed(errno.into()))?);
        let facts = rustix::fs::fstat(&directory).map_err(|errno| failed(errno.into()))?;
        check(&path, &facts)?;
        let state = Self { path, directory: Arc::new(directory) };
        let probe = format!("{}{NEW}", std::process::id());
        let probed = state.create_new(&probe).and_then(|_| state.remove(&probe));
        probed.map_err(|source| StateError::Directory { path: state.path.clone(), source })?;
        Ok(state)
    }

    /// Locks the file of a logical unit for this server, and reads it; `None` if its name would be too long. Waits for
    /// a server that is ending.
    pub(crate) fn unit(
        &self,
        target_name: &str,
        unit: Naa,
    ) -> Result<Option<(StateFile, PersistedReservations)>, StateError> {
        let name = PersistedReservations::file_name(target_name, unit);
        if name.len() > NAME_BYTES_MAX {
            tracing::warn!(target_name, %unit, "its name is too long for a file that keeps reservations");
            return Ok(None);
        }
        let file = StateFile::claim(self.clone(), name)?;
        let last = self.load(&file.name)?;
        Ok(Some((file, last)))
    }

    /// Warns of reservations of units that the target no longer serves: a disk with a new identity is not protected by
    /// the reservations of its old one.
    pub(crate) fn warn_of_others(&self, target_name: &str, served: &[Naa]) {
        let served: Vec<String> =
            served.iter().map(|unit| PersistedReservations::file_name(target_name, *unit)).collect();
        let Ok(entries) = Dir::read_from(&self.directory) else { return };
        let names = entries.flatten().filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
        for name in names.filter(|name| PersistedReservations::is_file_of(target_name, name)) {
            if !served.contains(&name) && !self.load(&name).is_ok_and(|kept| kept.is_empty()) {
                let file = self.path.join(&name);
                tracing::warn!(
                    target_name,
                    file = %file.display(),
                    "it keeps reservations of a unit that is not served any more: they are neither in force nor removed"
                );
            }
        }
    }

    /// The last stored reservations; empty if nothing was ever stored.
    fn load(&self, name: &str) -> Result<PersistedReservations, StateError> {
        let path = self.path.join(name);
        let failed = |source| StateError::File { path: path.clone(), source };
        let file = match self.open_file(name, OFlags::RDONLY) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(PersistedReservations::default());
            }
            Err(error) => return Err(failed(error)),
        };
        let mut text = String::new();
        file.take(PersistedReservations::BYTES_MAX as u64).read_to_string(&mut text).map_err(failed)?;
        PersistedReservations::parse(&text)
            .map_err(|source| StateError::Damaged { path: path.clone(), source })
    }

    /// Makes a new file of this name, and replaces one left by a crash.
    fn create_new(&self, name: &str) -> io::Result<File> {
        match self.remove(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.open_file(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
    }

    fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let owner_only = Mode::RUSR | Mode::WUSR;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.directory, name, flags, owner_only)?.into())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.directory, name, AtFlags::empty())?)
    }
}

/// Checks that only this user and root can change the directory's contents.
fn check(path: &Path, facts: &Stat) -> Result<(), StateError> {
    const ROOT: u32 = 0;
    let (owner, user) = (facts.st_uid, rustix::process::geteuid().as_raw());
    if owner != user && owner != ROOT {
        return Err(StateError::Owner { path: path.to_owned(), owner, user });
    }
    let mode = facts.st_mode & 0o7777;
    if mode & WRITABLE_BY_OTHERS != 0 {
        return Err(StateError::Exposed { path: path.to_owned(), mode });
    }
    Ok(())
}

/// The file of one logical unit.
#[derive(Clone, Debug)]
pub(crate) struct StateFile {
    state: StateDirectory,
    name: String,
    /// Locked until its last owner is gone.
    _lock: Arc<File>,
}

impl StateFile {
    fn claim(state: StateDirectory, name: String) -> Result<Self, StateError> {
        let path = state.path.join(&name);
        let failed = |source| StateError::File { path: path.clone(), source };
        let lock =
            state.open_file(&format!("{name}{LOCK}"), OFlags::WRONLY | OFlags::CREATE).map_err(failed)?;
        let deadline = Instant::now() + IN_USE_PATIENCE;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { state, name, _lock: Arc::new(lock) }),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(IN_USE_PAUSE),
                Err(TryLockError::WouldBlock) => return Err(StateError::InUse { path }),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        let (directory, new) = (&self.state.directory, format!("{}{NEW}", self.name));
        let mut file = self.state.create_new(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        rustix::fs::renameat(directory, &new, directory, &self.name)?;
        directory.sync_all()
    }
}

impl Persist for StateFile {
    fn store(&self, snapshot: PersistedReservations) -> Stored {
        let file = self.clone();
        Box::pin(async move {
            let replaced = tokio::task::spawn_blocking(move || file.replace(&snapshot.to_string()));
            replaced.await.map_err(io::Error::other)?
        })
    }
}
