//! `ropewalk lab clean`: what is left behind, and removed.

use crate::exit::Failed;
use crate::output::outln;
use ::lab::{Folder, FolderError};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = "Example: ropewalk lab clean")]
pub(crate) struct Arguments {
    /// Where results are, in folders too
    #[arg(value_name = "FOLDER", default_value = "results")]
    folder: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failed> {
    outln!("Namespaces, interfaces, relays and programs of a lab end with the command that made them.");
    let mut folders = Vec::new();
    find_results(&arguments.folder, &mut folders);
    let mut removed = 0;
    for folder in folders {
        match Folder::clean(&folder) {
            Ok(files) => {
                removed += files.len();
                files.iter().for_each(|file| outln!("removed {}", file.display()));
            }
            Err(FolderError::InUse(_)) => outln!("{} is in use, and was left alone", folder.display()),
            Err(error) => return Err(error.into()),
        }
    }
    if removed == 0 {
        outln!(
            "No results in {} were left half written: there is nothing to remove.",
            arguments.folder.display()
        );
    }
    Ok(())
}

/// Folders of results, here and below; what cannot be read holds none.
fn find_results(folder: &Path, found: &mut Vec<PathBuf>) {
    if folder.join("manifest.json").is_file() {
        return found.push(folder.to_owned());
    }
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find_results(&entry.path(), found);
        }
    }
}
