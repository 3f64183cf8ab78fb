//! The files that `lab` writes into a results folder, by name: only they are ever removed, and only from a folder that
//! carries `lab`'s manifest. Links are neither followed nor removed: `lab` makes none.

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;
use serde::Deserialize;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Marks a folder as one of results.
pub(super) const MANIFEST: &str = "manifest.json";
pub(super) const EXPERIMENT: &str = "experiment.toml";
/// The folder of the attempts' files.
pub(super) const RUNS: &str = "runs";
/// The file of a report.
pub const REPORT: &str = "report.html";
/// Ends the name of a file while it is being written.
pub(super) const PARTIAL: &str = ".partial";
/// The suffixes of an attempt's files.
const OF_ATTEMPT: [&str; 3] = ["json", "jsonl", "pcapng"];

/// The paths that a removal removed and spared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removal {
    /// Files that `lab` wrote.
    pub removed: Vec<PathBuf>,
    /// Files, links and folders that `lab` did not write; they are still there.
    pub left: Vec<PathBuf>,
}

/// The contents of a folder, judged before anything in it is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// It is empty, but for a manifest whose writing was interrupted.
    Nobody,
    /// Its manifest is one that `lab` wrote, in this version's format or another.
    Lab,
    /// It holds something else.
    Stranger,
}

/// The part of a manifest that every format has.
#[derive(Deserialize)]
struct Mark {
    #[serde(rename = "schema")]
    _schema: u32,
    #[serde(rename = "ropewalk")]
    _ropewalk: String,
    #[serde(rename = "title")]
    _title: String,
}

/// The name of a picture in a report; `number` counts from 1.
pub(super) fn figure(number: usize) -> String {
    format!("figure-{number}.png")
}

/// The stem of an attempt's files.
pub(super) fn attempt(run: usize, attempt: u32) -> String {
    format!("{run:04}-{attempt}")
}

/// Whether this is the name of an attempt's record.
pub(super) fn is_record(name: &str) -> bool {
    is_of_attempt(name) && name.ends_with(".json")
}

/// Says whose folder this is.
pub(super) fn owner(folder: &Path) -> io::Result<Owner> {
    let directory = open(CWD, folder, folder)?;
    if is_marked(&directory) {
        return Ok(Owner::Lab);
    }
    let entries = entries(&directory)?;
    let is_begun = |(name, kind): &(CString, FileType)| {
        *kind == FileType::RegularFile && name.to_str().is_ok_and(|name| whole(name) == Some(MANIFEST))
    };
    Ok(if entries.iter().all(is_begun) { Owner::Nobody } else { Owner::Stranger })
}

/// Whether the folder carries a manifest that `lab` wrote; `false` also if it cannot be read.
pub(super) fn is_of_lab(folder: &Path) -> bool {
    owner(folder).is_ok_and(|owner| owner == Owner::Lab)
}

/// Removes all that `lab` wrote except the manifest, which marks the folder as its own until it is replaced.
pub(super) fn remove_results(folder: &Path) -> io::Result<Removal> {
    remove(folder, |name| name != MANIFEST)
}

/// Removes files whose writing was interrupted.
pub(super) fn remove_partial_files(folder: &Path) -> io::Result<Removal> {
    remove(folder, |name| whole(name).is_some())
}

/// Removes `lab`'s own regular files that `doomed` names, from the folder and its `runs`.
fn remove(folder: &Path, doomed: impl Fn(&str) -> bool) -> io::Result<Removal> {
    let directory = open(CWD, folder, folder)?;
    let mut removal = Removal::default();
    let runs_path = folder.join(RUNS);
    match open(&directory, Path::new(RUNS), &runs_path) {
        Ok(runs) => sweep(&runs, &runs_path, is_of_attempt, &doomed, &mut removal)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    sweep(&directory, folder, is_beside_manifest, &doomed, &mut removal)?;
    removal.left.retain(|path| *path != runs_path);
    removal.removed.sort();
    removal.left.sort();
    Ok(removal)
}

fn sweep(
    directory: &OwnedFd,
    path: &Path,
    is_own_here: impl Fn(&str) -> bool,
    doomed: impl Fn(&str) -> bool,
    removal: &mut Removal,
) -> io::Result<()> {
    for (name, kind) in entries(directory)? {
        let file = path.join(OsStr::from_bytes(name.to_bytes()));
        let own = name.to_str().ok().filter(|name| is_own_here(whole(name).unwrap_or(name)));
        match (own, kind) {
            (Some(name), FileType::RegularFile) if doomed(name) => {
                unlinkat(directory, name, AtFlags::empty())?;
                removal.removed.push(file);
            }
            (Some(_), FileType::RegularFile) => {}
            _ => removal.left.push(file),
        }
    }
    Ok(())
}

/// Opens a folder, but no link to one; an error names it as `shown`, and a link is [`io::ErrorKind::NotADirectory`].
fn open(at: impl AsFd, path: &Path, shown: &Path) -> io::Result<OwnedFd> {
    // A slash at the end would make the system follow a link.
    let path: PathBuf = path.components().collect();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, &path, flags, Mode::empty()).map_err(|error| match error {
        Errno::NOTDIR | Errno::LOOP => {
            let reason = format!("{shown:?} is a link or a file, and not a folder");
            io::Error::new(io::ErrorKind::NotADirectory, reason)
        }
        error => error.into(),
    })
}

fn entries(directory: &OwnedFd) -> io::Result<Vec<(CString, FileType)>> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_owned();
        if name.as_c_str() == c"." || name.as_c_str() == c".." {
            continue;
        }
        let kind = kind(directory, &name)?;
        entries.push((name, kind));
    }
    Ok(entries)
}

fn kind(directory: &OwnedFd, name: &CStr) -> io::Result<FileType> {
    let status = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(status.st_mode))
}

fn is_marked(directory: &OwnedFd) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = openat(directory, MANIFEST, flags, Mode::empty()) else { return false };
    serde_json::from_reader::<_, Mark>(BufReader::new(File::from(file))).is_ok()
}

fn is_beside_manifest(name: &str) -> bool {
    let number = || name.strip_prefix("figure-")?.strip_suffix(".png")?.parse().ok();
    [MANIFEST, EXPERIMENT, REPORT].contains(&name) || number().is_some_and(|number| figure(number) == name)
}

fn is_of_attempt(name: &str) -> bool {
    let Some((stem, suffix)) = name.split_once('.') else { return false };
    let numbers = || {
        let (run, number) = stem.split_once('-')?;
        Some(attempt(run.parse().ok()?, number.parse().ok()?))
    };
    OF_ATTEMPT.contains(&suffix) && numbers().is_some_and(|name| name == stem)
}

/// The name of the file of which this is a partial one.
fn whole(name: &str) -> Option<&str> {
    name.strip_suffix(PARTIAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_name_is_exactly_one_that_lab_gives() {
        for name in ["0001-1.json", "0001-1.jsonl", "0012-3.pcapng", "12345-1.json"] {
            assert!(is_of_attempt(name), "{name}");
        }
        for name in ["1-1.json", "0001-1.txt", "0001-01.json", "0001-1.json.gz", "notes.json", "+001-1.json"]
        {
            assert!(!is_of_attempt(name), "{name}");
        }
        for name in ["figure-1.png", "figure-12.png", REPORT, EXPERIMENT] {
            assert!(is_beside_manifest(name), "{name}");
        }
        for name in
            ["figure-of-mine.png", "figure-01.png", "figure-.png", "report.html~", "experiment.toml.bak"]
        {
            assert!(!is_beside_manifest(name), "{name}");
        }
    }
}
