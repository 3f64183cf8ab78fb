//! A file in memory that other processes can open by name.

use crate::workload::Contents;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// No disk of this machine affects a measurement with it, and the end of the process removes it.
pub(super) struct MemoryFile(File);

const PIECE_BYTES: usize = 1 << 20;

impl MemoryFile {
    pub fn new() -> io::Result<Self> {
        Ok(Self(memfd_create("ropewalk-lab", MemfdFlags::CLOEXEC)?.into()))
    }

    /// The path for processes of the same user, as long as this one lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }

    pub fn fill(&self, bytes: u64, contents: Contents) -> io::Result<()> {
        for (offset, mut piece) in pieces(bytes) {
            contents.fill(&mut piece, offset);
            self.0.write_all_at(&piece, offset)?;
        }
        Ok(())
    }

    /// The first offset at which it differs from the expected contents of this length, or its end if it is shorter or
    /// longer.
    pub fn first_difference(&self, bytes: u64, contents: Contents) -> io::Result<Option<u64>> {
        let length = self.0.metadata()?.len();
        for (offset, mut piece) in pieces(bytes.min(length)) {
            self.0.read_exact_at(&mut piece, offset)?;
            if let Some(at) = contents.first_difference(&piece, offset) {
                return Ok(Some(at));
            }
        }
        Ok((length != bytes).then_some(length.min(bytes)))
    }
}

/// Offsets, and memory for the contents there.
fn pieces(bytes: u64) -> impl Iterator<Item = (u64, Vec<u8>)> {
    let piece = move |offset| {
        let rest = usize::try_from(bytes - offset).unwrap_or(usize::MAX);
        (offset, vec![0; rest.min(PIECE_BYTES)])
    };
    (0..bytes).step_by(PIECE_BYTES).map(piece)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const CONTENTS: Contents = Contents::Known { seed: 3, oldest: 1, newest: 1 };

    #[test]
    fn others_read_what_was_filled_and_what_they_write_is_compared() {
        let piece = PIECE_BYTES as u64;
        let bytes = piece + 512;
        let [from, to] = [(); 2].map(|()| MemoryFile::new().unwrap());
        from.fill(bytes, CONTENTS).unwrap();
        fs::copy(from.path(), to.path()).unwrap();
        assert_eq!(to.first_difference(bytes, CONTENTS).unwrap(), None);
        assert_eq!(to.first_difference(bytes + 512, CONTENTS).unwrap(), Some(bytes), "it is too short");
        assert_eq!(to.first_difference(bytes - 512, CONTENTS).unwrap(), Some(bytes - 512), "it is too long");
        to.0.write_all_at(&[0], piece + 7).unwrap();
        assert_eq!(to.first_difference(bytes, CONTENTS).unwrap(), Some(piece));
    }
}
