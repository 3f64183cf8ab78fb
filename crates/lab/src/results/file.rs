//! Files that are written whole or not at all.

use super::own_files::PARTIAL;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a file so that at every moment the old one or the new one is there; the new one survives a crash once this
/// has returned. A link of that name is replaced, not followed.
pub(super) fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(PARTIAL);
    let partial = PathBuf::from(partial);
    match fs::remove_file(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::create_new(&partial)?;
    file.write_all(contents)?;
    file.sync_all()?;
    fs::rename(&partial, path)?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}
