//! The two ends of a copy, as the user names them.

use crate::disk::Disk;
use crate::identity::Node;
use crate::place::{Open, Place, Watch};
use crate::stream::{Reader, Writer};
use crate::{Error, Identity, ImageFormat};
use block::Backend;
use std::sync::Arc;

/// Standard input and output are named by this.
pub(crate) const STREAM_NAME: &str = "-";

/// Where a copy comes from.
pub struct Source {
    pub(crate) identity: Identity,
    pub(crate) kind: SourceKind,
    /// The file or device that the path led to, if it was one.
    pub(crate) node: Option<Node>,
    /// Of a regular file.
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

    /// Fails if it is a file that changed since it was opened; devices and pipes cannot tell.
    pub(crate) fn check_unchanged(&self) -> Result<(), Error> {
        self.watch.as_ref().map_or(Ok(()), |watch| watch.check_unchanged())
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
    /// The file or device that the path led to, if it was one.
    pub(crate) node: Option<Node>,
}

pub(crate) enum DestinationKind {
    /// Of fixed size, open already.
    Device(Disk),
    /// To be opened for writing once all is checked.
    Place(Box<dyn Place>),
    Stream(Writer),
}

impl Destination {
    /// A device, such as a remote logical unit.
    pub fn device(identity: Identity, backend: Arc<dyn Backend>) -> Self {
        let disk = Disk::new(identity.name.clone(), backend);
        Self { identity, kind: DestinationKind::Device(disk), node: None }
    }

    /// A stream.
    pub fn stream(name: &str, writer: Writer) -> Self {
        Self { identity: Identity::named(name), kind: DestinationKind::Stream(writer), node: None }
    }

    /// What is there now, to be looked at.
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

    /// Its size, unless it grows as needed.
    #[must_use]
    pub fn capacity_bytes(&self) -> Option<u64> {
        self.present().filter(|_| self.is_device()).map(Disk::bytes)
    }

    /// Whether it is the same file or device as the source.
    pub(crate) fn is(&self, source: &Source) -> bool {
        self.node.is_some() && self.node == source.node
            || source.identity.designator.as_deref().is_some_and(|designator| self.identity.is(designator))
    }
}

impl DestinationKind {
    /// Takes it for writing; a file keeps its contents as yet.
    pub(crate) fn open(self, overwrite: bool) -> Result<Open, Error> {
        match self {
            Self::Stream(writer) => Ok(Open::Stream(writer)),
            Self::Device(disk) => Ok(Open::Disk(disk)),
            Self::Place(place) => place.open(overwrite),
        }
    }
}
