//! Local ends of a copy: paths, standard input and standard output.

use super::file::{self, LocalFile};
use super::watch::FileWatch;
use super::{
    Kind, cannot_open, identity, in_use, kind_of, mount, open_to_read, open_to_write, standard_stream,
};
use crate::disk::Disk;
use crate::end::{DestinationKind, STREAM_NAME, SourceKind};
use crate::place::{Open, Place, Watch};
use crate::{Destination, Error, Reader, Refusal, Source, Writer};
use block::Engine;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

impl Source {
    /// Standard input, from its present position to its end.
    ///
    /// # Errors
    /// [`Refusal::Descriptor`] if it is closed or cannot be read; [`Refusal::SourceInUse`] for a device that is
    /// mounted for writing.
    pub fn standard_input() -> Result<Self, Error> {
        let (file, kind) = standard_stream::input()?;
        check_source_use(STREAM_NAME, kind)?;
        let same_file = || file.try_clone();
        let watch = watch(Path::new("standard input"), kind, same_file)?;
        Ok(Self { node: kind.node(), watch, ..Self::stream(STREAM_NAME, Reader::new(file)) })
    }

    /// A file, a block device, or a pipe; `engine` does the I/O.
    ///
    /// # Errors
    /// [`Refusal::SourceInUse`] for a device that is mounted for writing; [`Error::Open`].
    pub fn path(path: &Path, engine: &Engine) -> Result<Self, Error> {
        let found = kind_of(path)?;
        let identity = identity(path, found);
        check_source_use(&identity.name, found)?;
        let watch = watch(path, found, || File::open(path))?;
        let kind = match found {
            Kind::Stream => SourceKind::Stream(Reader::open(path)),
            Kind::Device(_) | Kind::File { .. } | Kind::Absent => {
                SourceKind::Disk(open_to_read(path, engine)?)
            }
        };
        Ok(Self { identity, kind, node: found.node(), watch })
    }
}

impl Destination {
    /// Standard output; a file or block device is synced before the copy succeeds.
    ///
    /// # Errors
    /// [`Refusal::Descriptor`] if it is closed or cannot be written; [`Refusal::DestinationInUse`] for a device that
    /// is mounted for writing or part of something.
    pub fn standard_output() -> Result<Self, Error> {
        let (output, kind) = standard_stream::output()?;
        check_destination_use(STREAM_NAME, kind)?;
        Ok(Self { node: kind.node(), ..Self::stream(STREAM_NAME, Writer::new(output)) })
    }

    /// A file, which need not exist, a block device, or a pipe; `engine` does the I/O. Nothing is created or changed
    /// yet.
    ///
    /// # Errors
    /// [`Refusal::DestinationInUse`] for a device that is mounted for writing or part of something;
    /// [`Error::Open`].
    pub fn path(path: &Path, engine: &Engine) -> Result<Self, Error> {
        let seen = kind_of(path)?;
        let identity = identity(path, seen);
        if let Kind::Device(_) = seen {
            check_destination_use(&identity.name, seen)?;
        }
        let kind = match seen {
            Kind::Stream => DestinationKind::Stream(Writer::open(path)),
            Kind::Device(_) | Kind::File { .. } | Kind::Absent => {
                let present = if seen == Kind::Absent { None } else { Some(present(path, engine)?) };
                let place = LocalPlace { path: path.to_owned(), seen, present, engine: engine.clone() };
                DestinationKind::Place(Box::new(place))
            }
        };
        Ok(Self { identity, kind, node: seen.node() })
    }
}

/// A path to a block device or a regular file, which need not exist.
struct LocalPlace {
    path: PathBuf,
    /// The file's kind when it was checked, to be confirmed under its lock.
    seen: Kind,
    present: Option<Disk>,
    engine: Engine,
}

impl Place for LocalPlace {
    fn present(&self) -> Option<&Disk> {
        self.present.as_ref()
    }

    fn is_device(&self) -> bool {
        matches!(self.seen, Kind::Device(_))
    }

    fn is_new(&self) -> bool {
        matches!(self.seen, Kind::Absent | Kind::File { bytes: 0, .. })
    }

    fn check(&self, overwrite: bool) -> Result<(), Refusal> {
        if self.is_device() { Ok(()) } else { file::check(&self.path, self.seen, overwrite) }
    }

    fn open(self: Box<Self>, overwrite: bool) -> Result<Open, Error> {
        let is_device = self.is_device();
        let Self { path, seen, present, engine } = *self;
        // The descriptor that was open for reading is closed first, to free its lock for writing.
        drop(present);
        if is_device {
            return open_to_write(&path, &engine).map(Open::Disk);
        }
        let file = LocalFile::open(&path, seen, overwrite, engine)?;
        Ok(Open::File(Box::new(file)))
    }
}

fn watch(
    path: &Path,
    kind: Kind,
    open: impl Fn() -> io::Result<File>,
) -> Result<Option<Box<dyn Watch>>, Error> {
    if !matches!(kind, Kind::File { .. }) {
        return Ok(None);
    }
    let watch = open().and_then(|file| FileWatch::begin(&path.display().to_string(), file));
    let watch = watch.map_err(|error| cannot_open(path, error))?;
    Ok(Some(Box::new(watch)))
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

/// Opens the present contents for the checks. Another writer would hold the lock, and is refused.
fn present(path: &Path, engine: &Engine) -> Result<Disk, Error> {
    open_to_read(path, engine).map_err(in_use)
}
