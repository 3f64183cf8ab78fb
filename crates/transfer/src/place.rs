//! A local file or block device as a destination. It is opened for writing after all checks.

use crate::disk::Disk;
use crate::stream::Writer;
use crate::{Error, ImageFormat, Refusal};
use std::path::Path;

/// The block length of a file that does not exist yet.
pub(crate) const FILE_BLOCK_BYTES: u32 = 512;

/// A destination that is given by a path.
pub(crate) trait Place: Send + Sync {
    /// Its present contents, for the checks; `None` if it does not exist.
    fn present(&self) -> Option<&Disk>;

    /// Whether it is a block device, of fixed size and with an identity of its own. Otherwise it is a file, which
    /// becomes as long as the copy.
    fn is_device(&self) -> bool;

    /// Whether it is a file that does not exist, or is empty.
    fn is_new(&self) -> bool;

    /// Refuses to destroy a file's contents without `overwrite`.
    ///
    /// # Errors
    /// [`Refusal::NotEmpty`], [`Refusal::PartialExists`].
    fn check(&self, overwrite: bool) -> Result<(), Refusal>;

    /// Opens it for writing. A file keeps its contents for now.
    ///
    /// # Errors
    /// If it is in use, or this user has no access to it.
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
    /// Makes the file at least `bytes` long. Returns whether that changed a file that existed before.
    fn extend(&self, bytes: u64) -> Result<bool, Error>;

    /// The file as a disk of its present length, under the same lock.
    fn disk(&self) -> Result<Disk, Error>;

    /// The file as a stream, from its beginning, whose flush reaches the medium.
    fn writer(&self) -> Result<Writer, Error>;

    /// Cuts the file to its length, makes that durable, and gives a new file its name.
    fn finish(&self, bytes: u64) -> Result<(), Error>;

    /// Cleans up after a failure. Removes a new file that was not written to (`touched`), else returns the name under
    /// which it is left.
    fn abandon(self: Box<Self>, touched: bool) -> Option<Box<Path>>;
}

/// Detects changes of a source while it is copied.
pub(crate) trait Watch: Send + Sync {
    /// Fails if the source changed since it was opened.
    fn check_unchanged(&self) -> Result<(), Error>;

    /// The source's image format, if it is not raw.
    fn image_format(&self) -> Option<ImageFormat>;
}
