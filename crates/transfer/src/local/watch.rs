//! Detects changes of a file while it is copied.

use crate::Error;
use crate::image_format::{ImageFormat, MAGIC_BYTES};
use crate::place::Watch;
use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};

/// A regular file, and its state before it was read.
pub(super) struct FileWatch {
    name: String,
    file: File,
    before: Stamp,
}

/// A file's state, which every write and every change of length changes, within the resolution of the filesystem's
/// clock.
#[derive(PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl FileWatch {
    /// Records the file's present state.
    pub(super) fn begin(name: &str, file: File) -> std::io::Result<Self> {
        let before = Stamp::of(&file.metadata()?);
        Ok(Self { name: name.to_owned(), file, before })
    }
}

impl Watch for FileWatch {
    fn image_format(&self) -> Option<ImageFormat> {
        let mut magic = [[0; MAGIC_BYTES]; 2];
        let end = self.before.bytes.saturating_sub(MAGIC_BYTES as u64);
        let [beginning, ending] = &mut magic;
        let beginning_bytes = self.file.read_at(beginning, 0).ok()?;
        let ending_bytes = self.file.read_at(ending, end).ok()?;
        ImageFormat::of(&beginning[..beginning_bytes], &ending[..ending_bytes])
    }

    fn check_unchanged(&self) -> Result<(), Error> {
        match self.file.metadata() {
            Ok(metadata) if Stamp::of(&metadata) == self.before => Ok(()),
            Ok(_) => Err(Error::SourceChanged { name: self.name.clone() }),
            Err(source) => Err(Error::File { name: self.name.clone(), source }),
        }
    }
}
