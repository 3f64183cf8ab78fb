//! Files with contents that are the same in every run and nowhere repeat, so that a misplaced block is noticed.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A file in a folder of its own, gone with this value.
#[derive(Debug)]
pub struct Image {
    folder: TempDir,
    path: PathBuf,
}

const MIB: u64 = 1 << 20;

/// Every so many MiB, one is a hole: copies must get those right too.
const HOLE_EVERY: u64 = 16;

impl Image {
    /// Data with a hole now and then.
    ///
    /// # Errors
    /// If there is no room for it.
    pub fn random(mib: u64) -> io::Result<Self> {
        let image = Self::empty(mib)?;
        let mut file = BufWriter::with_capacity(1 << 20, File::options().write(true).open(&image.path)?);
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for number in 0..mib {
            if number % HOLE_EVERY == HOLE_EVERY - 1 {
                file.seek(SeekFrom::Start((number + 1) * MIB))?;
                continue;
            }
            for _ in 0..MIB / 8 {
                state = xorshift(state);
                file.write_all(&state.to_le_bytes())?;
            }
        }
        file.flush()?;
        Ok(image)
    }

    /// Nothing but a hole.
    ///
    /// # Errors
    /// If there is no room for it.
    pub fn empty(mib: u64) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("disk.raw");
        File::create(&path)?.set_len(mib * MIB)?;
        Ok(Self { folder, path })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same, for a command line.
    #[must_use]
    pub fn name(&self) -> &str {
        // Made from the system's temporary folder and plain letters.
        self.path.to_str().unwrap_or_default()
    }

    /// A place for another file beside it, gone with it.
    #[must_use]
    pub fn beside(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

/// Marsaglia's generator of 64 bits.
fn xorshift(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^ (state << 17)
}

/// Compares byte by byte.
///
/// # Errors
/// If a file cannot be read, or they differ: where first.
pub fn assert_same(left: impl AsRef<Path>, right: impl AsRef<Path>) -> io::Result<()> {
    let (mut left, mut right) = (open(left.as_ref())?, open(right.as_ref())?);
    let (mut ours, mut theirs) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    let mut offset = 0;
    loop {
        let (read, other) = (fill(&mut left, &mut ours)?, fill(&mut right, &mut theirs)?);
        if ours[..read] != theirs[..other] {
            let pairs = ours[..read].iter().zip(&theirs[..other]);
            let at = offset + pairs.take_while(|(ours, theirs)| ours == theirs).count();
            return Err(io::Error::other(format!("the contents differ, first at byte {at}")));
        }
        if read == 0 {
            return Ok(());
        }
        offset += read;
    }
}

fn open(path: &Path) -> io::Result<BufReader<File>> {
    let file =
        File::open(path).map_err(|error| io::Error::new(error.kind(), format!("{path:?}: {error}")))?;
    Ok(BufReader::new(file))
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}
