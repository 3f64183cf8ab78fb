//! The two ends of a copy, as the user names them.

use crate::disk::Disk;
use crate::local::{self, Kind};
use crate::stream::{Reader, Writer};
use crate::watch::Watch;
use crate::{Error, Identity, ImageFormat, Refusal, mount, standard_stream};
use block::{Backend, Engine};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Standard input and output are named by this.
pub(crate) const STREAM_NAME: &str = "-";

/// Where a copy comes from.
pub struct Source {
    pub(crate) identity: Identity,
    pub(crate) kind: SourceKind,
    /// What the path led to, if it was one.
    local: Option<Kind>,
    /// Of a regular file.
    watch: Option<Watch>,
}

pub(crate) enum SourceKind {
    Disk(Disk),
    Stream(Reader),
}

impl Source {
    /// A device, such as a remote logical unit.
    pub fn device(identity: Identity, backend: Arc<dyn Backend>) -> Self {
        let disk = Disk::new(identity.name.clone(), backend);
        Self { identity, kind: SourceKind::Disk(disk), local: None, watch: None }
    }

    /// A stream of unknown length.
    pub fn stream(name: &str, reader: Reader) -> Self {
        let kind = SourceKind::Stream(reader);
        Self { identity: Identity::named(name), kind, local: None, watch: None }
    }

    /// Standard input, from where it stands to its end.
    ///
    /// # Errors
    /// [`Refusal::Descriptor`] if it is closed or cannot be read; [`Refusal::SourceInUse`] for a device that is
    /// mounted for writing.
    pub fn standard_input() -> Result<Self, Error> {
        let (file, kind) = standard_stream::input()?;
        check_source_use(STREAM_NAME, kind)?;
        let same_file = || file.try_clone();
        let watch = watch(Path::new("standard input"), kind, same_file)?;
        Ok(Self { local: Some(kind), watch, ..Self::stream(STREAM_NAME, Reader::new(file)) })
    }

    /// A file, a block device, or a pipe.
    ///
    /// # Errors
    /// [`Refusal::SourceInUse`] for a device that is mounted for writing; [`Error::Open`].
    pub fn path(path: &Path, engine: &Engine) -> Result<Self, Error> {
        let local = local::kind_of(path)?;
        let identity = local::identity(path, local);
        check_source_use(&identity.name, local)?;
        let watch = watch(path, local, || File::open(path))?;
        let kind = match local {
            Kind::Stream => SourceKind::Stream(Reader::open(path)),
            Kind::Device(_) | Kind::File { .. } | Kind::Absent => {
                SourceKind::Disk(local::open_to_read(path, engine)?)
            }
        };
        Ok(Self { identity, kind, local: Some(local), watch })
    }

    /// Fails if it is a file that changed since it was opened; devices and pipes cannot tell.
    pub(crate) fn check_unchanged(&self) -> Result<(), Error> {
        self.watch.as_ref().map_or(Ok(()), Watch::check_unchanged)
    }

    /// What wraps the image of a file; other sources are raw, or show it when they are read.
    pub(crate) fn image_format(&self) -> Option<ImageFormat> {
        self.watch.as_ref().filter(|_| matches!(self.kind, SourceKind::Disk(_)))?.image_format()
    }

    /// Its length, if that is known.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        match &self.kind {
            SourceKind::Disk(disk) => Some(disk.bytes()),
            SourceKind::Stream(_) => None,
        }
    }
}

/// Where a copy goes.
pub struct Destination {
    pub(crate) identity: Identity,
    pub(crate) kind: DestinationKind,
    local: Option<Kind>,
}

pub(crate) enum DestinationKind {
    /// Of fixed size, open already.
    Device(Disk),
    /// A block device, to be opened for writing once all is checked.
    BlockDevice {
        path: PathBuf,
        present: Disk,
    },
    /// A regular file, which becomes as long as the copy; `None` if there is none yet.
    File {
        path: PathBuf,
        /// As which it was seen, to be confirmed under its lock.
        seen: Kind,
        present: Option<Disk>,
    },
    Stream(Writer),
}

impl Destination {
    /// A device, such as a remote logical unit.
    pub fn device(identity: Identity, backend: Arc<dyn Backend>) -> Self {
        let disk = Disk::new(identity.name.clone(), backend);
        Self { identity, kind: DestinationKind::Device(disk), local: None }
    }

    /// A stream.
    pub fn stream(name: &str, writer: Writer) -> Self {
        Self { identity: Identity::named(name), kind: DestinationKind::Stream(writer), local: None }
    }

    /// Standard output; a file or block device is synced before the copy succeeds.
    ///
    /// # Errors
    /// [`Refusal::Descriptor`] if it is closed or cannot be written; [`Refusal::DestinationInUse`] for a device that
    /// is mounted for writing or part of something.
    pub fn standard_output() -> Result<Self, Error> {
        let (output, kind) = standard_stream::output()?;
        check_destination_use(STREAM_NAME, kind)?;
        Ok(Self { local: Some(kind), ..Self::stream(STREAM_NAME, Writer::new(output)) })
    }

    /// A file, which need not exist, a block device, or a pipe. Nothing is created or changed yet.
    ///
    /// # Errors
    /// [`Refusal::DestinationInUse`] for a device that is mounted for writing or part of something;
    /// [`Error::Open`].
    pub fn path(path: &Path, engine: &Engine) -> Result<Self, Error> {
        let local = local::kind_of(path)?;
        let identity = local::identity(path, local);
        let kind = match local {
            Kind::Device(_) => {
                check_destination_use(&identity.name, local)?;
                DestinationKind::BlockDevice { path: path.to_owned(), present: present(path, engine)? }
            }
            Kind::File { .. } => {
                let present = Some(present(path, engine)?);
                DestinationKind::File { path: path.to_owned(), seen: local, present }
            }
            Kind::Absent => DestinationKind::File { path: path.to_owned(), seen: local, present: None },
            Kind::Stream => DestinationKind::Stream(Writer::open(path)),
        };
        Ok(Self { identity, kind, local: Some(local) })
    }

    /// What is there now, to be looked at.
    pub(crate) fn present(&self) -> Option<&Disk> {
        match &self.kind {
            DestinationKind::Device(disk) | DestinationKind::BlockDevice { present: disk, .. } => Some(disk),
            DestinationKind::File { present, .. } => present.as_ref(),
            DestinationKind::Stream(_) => None,
        }
    }

    /// Its size, unless it grows as needed.
    #[must_use]
    pub fn capacity_bytes(&self) -> Option<u64> {
        match &self.kind {
            DestinationKind::Device(disk) | DestinationKind::BlockDevice { present: disk, .. } => {
                Some(disk.bytes())
            }
            DestinationKind::File { .. } | DestinationKind::Stream(_) => None,
        }
    }

    /// Whether it is the same file or device as the source.
    pub(crate) fn is(&self, source: &Source) -> bool {
        let same_path = match (self.local, source.local) {
            (Some(Kind::Device(one)), Some(Kind::Device(other))) => one == other,
            (Some(Kind::File { inode: one, .. }), Some(Kind::File { inode: other, .. })) => one == other,
            _ => false,
        };
        same_path
            || source.identity.designator.as_deref().is_some_and(|designator| self.identity.is(designator))
    }
}

fn watch(path: &Path, kind: Kind, open: impl Fn() -> io::Result<File>) -> Result<Option<Watch>, Error> {
    if !matches!(kind, Kind::File { .. }) {
        return Ok(None);
    }
    let watch = open().and_then(|file| Watch::begin(&path.display().to_string(), file));
    watch.map(Some).map_err(|error| local::cannot_open(path, error))
}

fn check_source_use(name: &str, kind: Kind) -> Result<(), Refusal> {
    match used(kind) {
        Some(used) => Err(Refusal::SourceInUse { name: name.to_owned(), used }),
        None => Ok(()),
    }
}

fn check_destination_use(name: &str, kind: Kind) -> Result<(), Refusal> {
    match used(kind).or_else(|| held(kind)) {
        Some(used) => Err(Refusal::DestinationInUse { name: name.to_owned(), used }),
        None => Ok(()),
    }
}

fn used(kind: Kind) -> Option<String> {
    let Kind::Device(number) = kind else { return None };
    mount::use_of(number)
}

fn held(kind: Kind) -> Option<String> {
    let Kind::Device(number) = kind else { return None };
    mount::holder_of(number).map(|holder| format!("in use by {holder}"))
}

/// What is in the way of writing to it. Somebody else who writes holds its lock.
fn present(path: &Path, engine: &Engine) -> Result<Disk, Error> {
    local::open_to_read(path, engine).map_err(local::in_use)
}
