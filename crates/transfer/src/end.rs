//! The two ends of a copy, as the user names them.

use crate::disk::Disk;
use crate::identity::Node;
use crate::place::{Open, Place, Watch};
use crate::stream::{Reader, Writer};
use crate::{Error, Identity, ImageFormat};
use block::Backend;
use std::sync::Arc;

/// The name of standard input and output.
pub(crate) const STREAM_NAME: &str = "-";

/// The source of a copy.
pub struct Source {
    pub(crate) identity: Identity,
    pub(crate) kind: SourceKind,
    /// The file or device that the path led to, if it was one.
    pub(crate) node: Option<Node>,
    /// Watches a regular file for changes.
    pub(crate) watch: Option<Box<dyn Watch>>,
}

pub(crate) enum SourceKind {
    Disk(Disk),
    Stream(Reader),
}

impl Source {
    /// A device, such as a remote logical unit.
    pub fn device(identity: Identity, backend: Arc<dyn Backend>) -> Self {
        let disk = Disk::new(identity.name.clone(), backend);
        Self { identity, kind: SourceKind::Disk(disk), node: None, watch: None }
    }

    /// A stream of unknown length.
    pub fn stream(name: &str, reader: Reader) -> Self {
        let kind = SourceKind::Stream(reader);
        Self { identity: Identity::named(name), kind, node: None, watch: None }
    }

    /// Fails if the source is a file that changed since it was opened. Changes of devices and pipes go unnoticed.
    pub(crate) fn check_unchanged(&self) -> Result<(), Error> {
        self.watch.as_ref().map_or(Ok(()), |watch| watch.check_unchanged())
    }

    /// The image format of a file. Other sources are raw, or reveal their format when they are read.
    pub(crate) fn image_format(&self) -> Option<ImageFormat> {
        self.watch.as_ref().filter(|_| matches!(self.kind, SourceKind::Disk(_)))?.image_format()
    }

    /// The source's length in bytes, if it is known.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        match &self.kind {
            SourceKind::Disk(disk) => Some(disk.bytes()),
            SourceKind::Stream(_) => None,
        }
    }
}

/// The destination of a copy.
pub struct Destination {
    pub(crate) identity: Identity,
    pub(crate) kind: DestinationKind,
    /// The file or device that the path led to, if it was one.
    pub(crate) node: Option<Node>,
}

pub(crate) enum DestinationKind {
    /// A device of fixed size, already open.
    Device(Disk),
    /// A path that is opened for writing after all checks.
    Place(Box<dyn Place>),
    Stream(Writer),
}

impl Destination {
    /// A device, such as a remote logical unit.
    pub fn device(identity: Identity, backend: Arc<dyn Backend>) -> Self {
        let disk = Disk::new(identity.name.clone(), backend);
        Self { identity, kind: DestinationKind::Device(disk), node: None }
    }

    /// A stream, such as standard output or a pipe: written once, in order, and not read back.
    pub fn stream(name: &str, writer: Writer) -> Self {
        Self { identity: Identity::named(name), kind: DestinationKind::Stream(writer), node: None }
    }

    /// The present contents, for the checks.
    pub(crate) fn present(&self) -> Option<&Disk> {
        match &self.kind {
            DestinationKind::Device(disk) => Some(disk),
            DestinationKind::Place(place) => place.present(),
            DestinationKind::Stream(_) => None,
        }
    }

    /// Whether it is a device, local or remote, which has an identity of its own.
    pub(crate) fn is_device(&self) -> bool {
        match &self.kind {
            DestinationKind::Device(_) => true,
            DestinationKind::Place(place) => place.is_device(),
            DestinationKind::Stream(_) => false,
        }
    }

    /// The destination's size in bytes, unless it grows as needed.
    #[must_use]
    pub fn capacity_bytes(&self) -> Option<u64> {
        self.present().filter(|_| self.is_device()).map(Disk::bytes)
    }

    /// Whether the destination is the same file or device as the source.
    pub(crate) fn is(&self, source: &Source) -> bool {
        self.node.is_some() && self.node == source.node
            || source.identity.designator.as_deref().is_some_and(|designator| self.identity.is(designator))
    }
}

impl DestinationKind {
    /// Opens the destination for writing. A file keeps its contents for now.
    pub(crate) fn open(self, overwrite: bool) -> Result<Open, Error> {
        match self {
            Self::Stream(writer) => Ok(Open::Stream(writer)),
            Self::Device(disk) => Ok(Open::Disk(disk)),
            Self::Place(place) => place.open(overwrite),
        }
    }
}
