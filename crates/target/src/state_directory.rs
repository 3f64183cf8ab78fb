//! Where persistent reservations are kept while no server runs: one file for each logical unit, in a directory that
//! only this user can write to.
//!
//! A file is replaced as a whole: written beside the old one, made durable, renamed, and the directory made durable.
//! What is found after a crash is one or the other. A file beside it is locked for as long as a server serves the unit:
//! two servers that store without each other's knowledge would undo each other's fences.

use device::{Persist, Stored};
use nexus::target::{InvalidSnapshot, PersistedReservations};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
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
    /// The file cannot be read.
    #[error("cannot read the reservations in {}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another server serves a unit of the same target name and number, and keeps its reservations in the same file.
    #[error(
        "the reservations in {} are those of another server, which serves the same target name and LUN: stop it, or \
         give this one another state directory (--state-directory) or target name",
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
}

impl StateDirectory {
    /// Makes the directory if need be, and sees whether files can be written there.
    pub(crate) fn open(path: &Path) -> Result<Self, StateError> {
        const OWNER_ONLY: u32 = 0o700;
        let failed = |source| StateError::Directory { path: path.to_owned(), source };
        DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(path).map_err(failed)?;
        let mode = fs::metadata(path).map_err(failed)?.permissions().mode() & 0o7777;
        if mode & WRITABLE_BY_OTHERS != 0 {
            return Err(StateError::Exposed { path: path.to_owned(), mode });
        }
        let probe = path.join(format!("{}{NEW}", std::process::id()));
        create(&probe).and_then(|_| fs::remove_file(&probe)).map_err(failed)?;
        Ok(Self { path: path.to_owned() })
    }

    /// The file of a logical unit, for this server alone, and what it holds; `None` if its name would be too long. Waits
    /// for a server that is about to end.
    pub(crate) fn unit(
        &self,
        target_name: &str,
        lun: u16,
    ) -> Result<Option<(StateFile, PersistedReservations)>, StateError> {
        let name = PersistedReservations::file_name(target_name, lun);
        if name.len() > NAME_BYTES_MAX {
            tracing::warn!(target_name, lun, "its name is too long for a file that keeps reservations");
            return Ok(None);
        }
        let file = StateFile::claim(self.path.join(name))?;
        let last = file.load()?;
        Ok(Some((file, last)))
    }
}

/// The file of one logical unit.
#[derive(Clone, Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    /// Locked until the last of its owners is gone.
    _lock: Arc<File>,
}

impl StateFile {
    fn claim(path: PathBuf) -> Result<Self, StateError> {
        let failed = |source| StateError::File { path: path.clone(), source };
        let lock = create(&beside(&path, LOCK)).map_err(failed)?;
        let deadline = Instant::now() + IN_USE_PATIENCE;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { path, _lock: Arc::new(lock) }),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(IN_USE_PAUSE),
                Err(TryLockError::WouldBlock) => return Err(StateError::InUse { path }),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }

    /// What was stored last; nothing if nothing ever was.
    fn load(&self) -> Result<PersistedReservations, StateError> {
        let failed = |source| StateError::File { path: self.path.clone(), source };
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(PersistedReservations::default());
            }
            Err(error) => return Err(failed(error)),
        };
        let mut text = String::new();
        file.take(PersistedReservations::BYTES_MAX as u64).read_to_string(&mut text).map_err(failed)?;
        PersistedReservations::parse(&text)
            .map_err(|source| StateError::Damaged { path: self.path.clone(), source })
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        let new = beside(&self.path, NEW);
        let mut file = create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        match self.path.parent() {
            Some(directory) => File::open(directory)?.sync_all(),
            None => Ok(()),
        }
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

/// A file of the same name with something added.
fn beside(path: &Path, added: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(added);
    name.into()
}

fn create(path: &Path) -> io::Result<File> {
    const OWNER_ONLY: u32 = 0o600;
    OpenOptions::new().write(true).create(true).truncate(true).mode(OWNER_ONLY).open(path)
}
