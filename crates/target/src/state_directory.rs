//! Where persistent reservations are kept while no server runs: one file for each logical unit, named by the unit's
//! designator, in a directory that only this user and root can write to.
//!
//! The directory is opened once, checked, and from then on every file is opened relative to it: nobody can put another
//! directory or a symbolic link in its place.
//!
//! A file is replaced as a whole: written beside the old one, made durable, renamed, and the directory made durable.
//! What is found after a crash is one or the other. A file beside it is locked for as long as a server serves the unit:
//! two servers that store without each other's knowledge would undo each other's fences.

use device::{Persist, Stored};
use nexus::target::{InvalidSnapshot, PersistedReservations};
use rustix::fs::{AtFlags, Dir, Mode, OFlags, Stat};
use scsi::Naa;
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A directory, or a file in it, that cannot be used. Its reservations say who must not write, so nothing is served
/// without them.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The directory cannot be made, read or written to.
    #[error("cannot keep reservations in {}: {source}", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others could put reservations there, or take them away.
    #[error(
        "cannot keep reservations in {}: others may write to it (mode {mode:04o}): run chmod go-w on it",
        path.display()
    )]
    Exposed {
        /// Which.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Somebody else could change the permissions, and then the reservations.
    #[error(
        "cannot keep reservations in {}: it belongs to user {owner}, and only directories of user {user} or of root are \
         trusted: run chown on it, or choose another state directory (--state-directory)",
        path.display()
    )]
    Owner {
        /// Which.
        path: PathBuf,
        /// Whose it is, by number.
        owner: u32,
        /// Who this is.
        user: u32,
    },
    /// Whoever can write to the directory around it decides where it leads.
    #[error(
        "cannot keep reservations in {}, which is a symbolic link: name the directory that it leads to",
        path.display()
    )]
    SymbolicLink {
        /// Which.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("cannot read the reservations in {}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another unit of the same target name and identity keeps its reservations in the same file.
    #[error(
        "the reservations in {} are those of another server, which serves the same unit of the same target name: stop \
         it, or give this one another state directory (--state-directory), target name or id",
        path.display()
    )]
    InUse {
        /// Which.
        path: PathBuf,
    },
    /// The file was damaged, or is of a later version.
    #[error(
        "the reservations in {} cannot be trusted: {source}. If no initiator relies on them, remove the file",
        path.display()
    )]
    Damaged {
        /// Which.
        path: PathBuf,
        /// How.
        source: InvalidSnapshot,
    },
}

/// The longest file name (`NAME_MAX` of Linux), without room for the longer of what is added.
const NAME_BYTES_MAX: usize = 255 - LOCK.len();
/// What is added to a file's name while it is being written.
const NEW: &str = ".new";
/// What is added to it for the file that is locked; it stays.
const LOCK: &str = ".lock";
/// For how long a lock is tried again: whoever starts a server again at once must not fail for the end of the old one.
const IN_USE_PATIENCE: Duration = Duration::from_secs(2);
/// Between two tries.
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
    /// Makes the directory if need be, and sees whether it can be trusted and files can be written there.
    pub(crate) fn open(path: &Path) -> Result<Self, StateError> {
        const OWNER_ONLY: u32 = 0o700;
        // Without a slash at the end, at which the system would follow a symbolic link.
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

    /// The file of a logical unit, for this server alone, and what it holds; `None` if its name would be too long. Waits
    /// for a server that is about to end.
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

    /// Warns of reservations of units that the target had and is no longer asked to serve: a disk that has got another
    /// identity is not protected by those of its old one.
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

    /// What was stored last; nothing if nothing ever was.
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

    /// A file of this name that was not there, in place of one that was left by a crash.
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

/// Whether nobody but this user and root can change what is in a directory.
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
    /// Locked until the last of its owners is gone.
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
