//! Folders that the environment names (XDG Base Directory Specification), and files in them that are replaced at once.

use serde::Serialize;
use std::env;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The absolute path in a variable.
pub(crate) fn named_by(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Where programs of this user keep their state; `None` for a user without a home.
pub(crate) fn user_state() -> Option<PathBuf> {
    named_by("XDG_STATE_HOME").or_else(|| Some(named_by("HOME")?.join(".local/state")))
}

/// Replaces a file by one with this object, at once, so that nobody reads half of it.
pub(crate) fn replace_json(file: &Path, object: &impl Serialize) -> io::Result<()> {
    let folder = file.parent().ok_or(io::ErrorKind::NotFound)?;
    let mut new = NamedTempFile::new_in(folder)?;
    serde_json::to_writer_pretty(&mut new, object)?;
    new.flush()?;
    new.persist(file)?;
    Ok(())
}
