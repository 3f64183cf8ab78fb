//! A file that a program copies from or to.

use super::extents::gaps;
use crate::workload::Contents;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A file in memory, so that no disk of this machine affects a measurement.
pub(super) struct CopiedFile {
    path: PathBuf,
    /// Keeps a file without a name alive.
    _unnamed: Option<File>,
}

const PIECE_BYTES: usize = 1 << 20;

impl CopiedFile {
    /// An empty file without a name, which the end of this process removes. Some programs want a path without links,
    /// and cannot use it.
    pub fn unnamed() -> io::Result<Self> {
        let file = File::from(memfd_create("ropewalk-lab", MemfdFlags::CLOEXEC)?);
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into();
        Ok(Self { path, _unnamed: Some(file) })
    }

    /// A new file of this length, empty or a hole.
    pub fn create(path: PathBuf, bytes: u64) -> io::Result<Self> {
        File::create_new(&path)?.set_len(bytes)?;
        Ok(Self { path, _unnamed: None })
    }

    /// The path for processes of the same user, as long as this one lives.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the contents of these extents. Between them are holes.
    pub fn fill(&self, extents: &[Range<u64>], contents: Contents) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(&self.path)?;
        for (offset, mut piece) in extents.iter().flat_map(pieces) {
            contents.fill(&mut piece, offset);
            let filled = file.write_all_at(&piece, offset);
            // The memory of `/dev/shm` may be less than a copy needs.
            filled
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.path.display())))?;
        }
        Ok(())
    }

    /// The first offset at which it differs from the expected contents of these extents and zeroes between them, or its
    /// end if it is shorter or longer.
    pub fn first_difference(&self, extents: &[Range<u64>], contents: Contents) -> io::Result<Option<u64>> {
        let file = File::open(&self.path)?;
        let (length, expected) = (file.metadata()?.len(), extents.last().map_or(0, |extent| extent.end));
        let within = |extent: &Range<u64>| extent.start.min(length)..extent.end.min(length);
        let data = extents.iter().map(within).flat_map(|extent| pieces(&extent).map(|piece| (piece, true)));
        let holes = gaps(extents).map(|gap| within(&gap));
        let holes = holes.flat_map(|gap| pieces(&gap).map(|piece| (piece, false)));
        let mut first = (length != expected).then_some(length.min(expected));
        for ((offset, mut piece), is_data) in data.chain(holes) {
            file.read_exact_at(&mut piece, offset)?;
            let at = match is_data {
                true => contents.first_difference(&piece, offset),
                false => piece.iter().position(|byte| *byte != 0).map(|at| offset + at as u64),
            };
            if let Some(at) = at {
                first = Some(first.map_or(at, |first| first.min(at)));
                break;
            }
        }
        Ok(first)
    }
}

/// Offsets, and memory for the contents there.
fn pieces(extent: &Range<u64>) -> impl Iterator<Item = (u64, Vec<u8>)> + use<> {
    let end = extent.end;
    let piece = move |offset| {
        let rest = usize::try_from(end - offset).unwrap_or(usize::MAX);
        (offset, vec![0; rest.min(PIECE_BYTES)])
    };
    extent.clone().step_by(PIECE_BYTES).map(piece)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program_run::extents::extents_of;
    use netem::Bytes;
    use std::fs;

    const CONTENTS: Contents = Contents::Known { seed: 3, oldest: 1, newest: 1 };
    const PIECE: u64 = PIECE_BYTES as u64;

    fn difference(file: &CopiedFile, extents: &[Range<u64>]) -> Option<u64> {
        file.first_difference(extents, CONTENTS).unwrap()
    }

    #[test]
    fn others_read_what_was_filled_and_what_they_write_is_compared() {
        let whole = |bytes| extents_of(Bytes(bytes), None);
        let bytes = PIECE + 512;
        let [from, to] = [(); 2].map(|()| CopiedFile::unnamed().unwrap());
        from.fill(&whole(bytes), CONTENTS).unwrap();
        fs::copy(from.path(), to.path()).unwrap();
        assert_eq!(difference(&to, &whole(bytes)), None);
        assert_eq!(difference(&to, &whole(bytes + 512)), Some(bytes), "it is too short");
        assert_eq!(difference(&to, &whole(bytes - 512)), Some(bytes - 512), "it is too long");
        let other = OpenOptions::new().write(true).open(to.path()).unwrap();
        other.write_all_at(&[0], PIECE + 7).unwrap();
        assert_eq!(difference(&to, &whole(bytes)), Some(PIECE));
    }

    #[test]
    fn what_lies_between_the_data_has_to_be_zero() {
        let folder = tempfile::tempdir().unwrap();
        let extents = [0..1024, 4 * PIECE..4 * PIECE + 1024];
        let file = CopiedFile::create(folder.path().join("file"), 4 * PIECE + 1024).unwrap();
        file.fill(&extents, CONTENTS).unwrap();
        assert_eq!(difference(&file, &extents), None);
        let other = OpenOptions::new().write(true).open(file.path()).unwrap();
        other.write_all_at(&[1], 2 * PIECE + 7).unwrap();
        assert_eq!(difference(&file, &extents), Some(2 * PIECE + 7));
    }
}
