//! `ropewalk lab clean`: removes files that an interrupted run left half written.

use super::run::refused;
use crate::exit::Failed;
use crate::output::outln;
use ::lab::{Folder, FolderError};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = "Example: ropewalk lab clean")]
pub(crate) struct Arguments {
    /// A folder of results, or a folder that contains such folders
    #[arg(value_name = "FOLDER", default_value = "results")]
    folder: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failed> {
    outln!("Namespaces, interfaces, relays and programs of a lab end with the command that made them.");
    let folder = &arguments.folder;
    let mut found = Vec::new();
    find_results(folder, &mut found);
    if found.is_empty() && fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        // The error gives the reason: the file is not lab's, or is a link.
        found.push(folder.clone());
    }
    let mut removed = 0;
    for folder in found {
        match Folder::clean(&folder) {
            Ok(removal) => {
                removed += removal.removed.len();
                removal.removed.iter().for_each(|file| outln!("removed {}", file.display()));
                let left = removal.left.iter();
                left.for_each(|file| outln!("left {} alone: lab did not write it", file.display()));
            }
            Err(FolderError::InUse(_)) => outln!("left {} alone: it is in use", folder.display()),
            Err(error) => return Err(refused(error)),
        }
    }
    if removed == 0 {
        outln!("No results in {} were left half written: there is nothing to remove.", folder.display());
    }
    Ok(())
}

/// Adds the folders of results here and below. Skips links and unreadable folders.
fn find_results(folder: &Path, found: &mut Vec<PathBuf>) {
    if folder.is_symlink() {
        return;
    }
    if Folder::is_of_lab(folder) {
        return found.push(folder.to_owned());
    }
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find_results(&entry.path(), found);
        }
    }
}
