//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How the names of files end that are being written.
const PARTIAL: &str = ".partial";

/// Writes a file so that, whatever happens meanwhile, there is the old one or the new one, and the new one survives a
/// crash once this has returned.
pub(super) fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(PARTIAL);
    let partial = PathBuf::from(partial);
    let mut file = File::create(&partial)?;
    file.write_all(contents)?;
    file.sync_all()?;
    fs::rename(&partial, path)?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// Removes what is left in a folder, and below it, of files whose writing was interrupted; their paths.
pub(super) fn remove_partial_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            removed.extend(remove_partial_files(&entry.path())?);
        } else if kind.is_file() && entry.file_name().to_string_lossy().ends_with(PARTIAL) {
            fs::remove_file(entry.path())?;
            removed.push(entry.path());
        }
    }
    Ok(removed)
}
