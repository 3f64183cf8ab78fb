//! A file or block device of this machine, as a copy sees it: it is opened for writing once all is checked.

use crate::disk::Disk;
use crate::stream::Writer;
use crate::{Error, ImageFormat, Refusal};
use std::path::Path;

/// The block length of a file that does not exist yet.
pub(crate) const FILE_BLOCK_BYTES: u32 = 512;

/// A destination that a path leads to.
pub(crate) trait Place: Send + Sync {
    /// Its contents now, to be looked at; `None` if there is nothing yet.
    fn present(&self) -> Option<&Disk>;

    /// A block device, of fixed size and with an identity of its own; otherwise a file, which becomes as long as the
    /// copy.
    fn is_device(&self) -> bool;

    /// A file that does not exist yet, or is empty.
    fn is_new(&self) -> bool;

    /// Refuses to destroy a file's contents, unless the user asked for that.
    ///
    /// # Errors
    /// [`Refusal::NotEmpty`], [`Refusal::PartialExists`].
    fn check(&self, overwrite: bool) -> Result<(), Refusal>;

    /// Takes it for writing; a file keeps its contents as yet.
    ///
    /// # Errors
    /// Somebody else uses it, or the system does not let this user have it.
    fn open(self: Box<Self>, overwrite: bool) -> Result<Open, Error>;
}

/// A destination that is open for writing.
pub(crate) enum Open {
    Disk(Disk),
    File(Box<dyn GrowingFile>),
    Stream(Writer),
}

/// A regular file that is open for writing, under an exclusive lock.
pub(crate) trait GrowingFile: Send + Sync {
    /// Makes it at least so long. Returns whether that changed a file which was there before.
    fn extend(&self, bytes: u64) -> Result<bool, Error>;

    /// The file as a disk of its present length, under the same lock.
    fn disk(&self) -> Result<Disk, Error>;

    /// The file as a stream, from its beginning, whose flush reaches the medium.
    fn writer(&self) -> Result<Writer, Error>;

    /// Cuts it to its length, makes that durable, and gives a new file its name.
    fn finish(&self, bytes: u64) -> Result<(), Error>;

    /// After a failure: the name under which a new file is left. One that nothing was written to is removed.
    fn abandon(self: Box<Self>, touched: bool) -> Option<Box<Path>>;
}

/// Notices whether a source keeps still while it is copied.
pub(crate) trait Watch: Send + Sync {
    /// Fails if it changed since it was opened.
    fn check_unchanged(&self) -> Result<(), Error>;

    /// The format that wraps the image in it.
    fn image_format(&self) -> Option<ImageFormat>;
}
