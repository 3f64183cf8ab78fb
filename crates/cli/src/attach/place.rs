//! What is attached, on record: a folder for each disk, with a lock that its server holds as long as it lives.

use crate::folders;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where the folders are, for root.
const OF_ROOT: &str = "/run/ropewalk/attached";

/// A name that is a file's name, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(String);

/// What is known of an attached disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) name: String,
    /// The disk, as it was named.
    pub(crate) source: String,
    pub(crate) bytes: u64,
    /// Where it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) identity: Option<String>,
    #[serde(default)]
    pub(crate) read_only: bool,
    /// The process that serves it.
    pub(crate) pid: u32,
    pub(crate) way: Way,
    /// What went wrong at the end, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
}

/// How programs reach the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    /// A loop device over a FUSE mount.
    Loop {
        device: PathBuf,
        file: PathBuf,
        /// A name that stays the same.
        link: Option<PathBuf>,
    },
    /// An NBD server on a unix socket.
    Nbd { socket: PathBuf, clients: usize },
}

/// The folder of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    folder: PathBuf,
}

/// A place with its lock: this process serves the disk.
#[derive(Debug)]
pub(crate) struct Held {
    place: Place,
    _lock: File,
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usable = |letter: char| letter.is_ascii_alphanumeric() || "-_.:".contains(letter);
        if !(1..=64).contains(&text.len()) || text.starts_with('.') || !text.chars().all(usable) {
            return Err(
                "a name has 1 to 64 letters, digits, and any of -_.: but does not start with a dot".into()
            );
        }
        Ok(Self(text.to_owned()))
    }
}

impl Name {
    /// A name that resembles the text.
    pub(crate) fn like(text: &str) -> Self {
        let usable = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        let text: String = text.chars().map(usable).take(64).collect();
        let text = text.trim_matches('-');
        Self(if text.is_empty() { "disk".to_owned() } else { text.to_owned() })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Way {
    /// What a program opens.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Loop { link: Some(link), .. } => link,
            Self::Loop { device, .. } => device,
            Self::Nbd { socket, .. } => socket,
        }
    }

    /// Whether the user may have meant this one.
    fn is_called(&self, path: &Path) -> bool {
        let canonical = path.canonicalize().ok();
        let same = |one: &Path| one == path || canonical.is_some() && one.canonicalize().ok() == canonical;
        match self {
            Self::Loop { device, file, link } => {
                same(device) || same(file) || link.as_deref().is_some_and(same)
            }
            Self::Nbd { socket, .. } => same(socket),
        }
    }
}

impl Place {
    /// Every place that has a record, in the order of their names.
    pub(crate) fn all() -> anyhow::Result<Vec<(Self, Record)>> {
        let parent = parent()?;
        let folders = match fs::read_dir(&parent) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            folders => folders.with_context(|| format!("cannot read {}", parent.display()))?,
        };
        let mut places: Vec<_> = folders
            .filter_map(|folder| Some(Self { folder: folder.ok()?.path() }))
            .filter_map(|place| place.record().map(|record| (place, record)))
            .collect();
        places.sort_by(|one, other| one.1.name.cmp(&other.1.name));
        Ok(places)
    }

    /// The one with this name, device, file or socket.
    pub(crate) fn find(called: &str) -> anyhow::Result<(Self, Record)> {
        let wanted = |record: &Record| record.name == called || record.way.is_called(Path::new(called));
        let found = Self::all()?.into_iter().find(|(_, record)| wanted(record));
        found.with_context(|| format!("nothing attached is called {called}: see ropewalk attach --list"))
    }

    /// Takes the place of this name.
    pub(crate) fn take(name: &Name) -> anyhow::Result<Held> {
        let folder = parent()?.join(&name.0);
        let context = || format!("cannot use {}", folder.display());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).with_context(context)?;
        let place = Self { folder: folder.clone() };
        let lock = place.open_lock().with_context(context)?;
        match lock.try_lock() {
            Ok(()) if place.record().is_some() => {
                anyhow::bail!("{name} has not been detached since its server ended: ropewalk detach {name}")
            }
            Ok(()) => Ok(Held { place, _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                anyhow::bail!("{name} is attached already: detach it, or choose another --name")
            }
            Err(TryLockError::Error(error)) => Err(error).with_context(context),
        }
    }

    /// Lets other attachments wait that begin, until this is dropped.
    pub(crate) fn one_at_a_time() -> anyhow::Result<File> {
        let path = parent()?.join(".lock");
        let lock = File::options().write(true).create(true).truncate(false).open(&path);
        let lock = lock.and_then(|lock| lock.lock().map(|()| lock));
        lock.with_context(|| format!("cannot lock {}", path.display()))
    }

    /// Refuses a disk that is attached already under another name, unless nobody writes to it: each device has a cache of
    /// its own, and a filesystem on both would be damaged.
    pub(crate) fn refuse_again(identity: &str, read_only: bool) -> anyhow::Result<()> {
        let again = |(place, record): &(Self, Record)| {
            let is_same = record.identity.as_deref() == Some(identity);
            is_same && !(read_only && record.read_only) && place.is_served()
        };
        let Some((_, Record { name, way, .. })) = Self::all()?.into_iter().find(again) else { return Ok(()) };
        anyhow::bail!(
            "this disk is attached already, as {name}: use {}, or detach that, or attach both with --read-only",
            way.path().display()
        )
    }

    /// Waits, on this thread, until its server has ended.
    pub(crate) fn wait_for_end(&self) -> io::Result<()> {
        match self.open_lock() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            lock => lock?.lock_shared(),
        }
    }

    /// Its server lives.
    pub(crate) fn is_served(&self) -> bool {
        let lock = self.open_lock();
        lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    pub(crate) fn record(&self) -> Option<Record> {
        serde_json::from_slice(&fs::read(self.folder.join("record.json")).ok()?).ok()
    }

    /// Where the disk's file is mounted.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.join("disk")
    }

    /// The log of a server in the background.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.folder)
    }

    fn open_lock(&self) -> io::Result<File> {
        File::options().read(true).write(true).create(true).truncate(false).open(self.folder.join("lock"))
    }
}

impl Held {
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Keeps what is known, in one step.
    pub(crate) fn write(&self, record: &Record) -> anyhow::Result<()> {
        let folder = &self.place.folder;
        let written = folders::replace_json(&folder.join("record.json"), record);
        written.with_context(|| format!("cannot write to {}", folder.display()))
    }
}

/// The folder of all places.
fn parent() -> anyhow::Result<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Ok(OF_ROOT.into());
    }
    let runtime = folders::named_by("XDG_RUNTIME_DIR");
    let runtime = runtime.context("a user other than root needs XDG_RUNTIME_DIR, a folder for what runs")?;
    Ok(runtime.join("ropewalk/attached"))
}
