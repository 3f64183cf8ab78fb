//! What `--connections auto` has found over each path, kept for the next run.

use crate::folders;
use initiator::{Experience, Found, Law};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What is older is forgotten: paths change. A weekly backup still finds the last one's.
const AGE_MAX: Duration = Duration::from_secs(8 * 24 * 60 * 60);

/// The most paths that are kept, those of which something was found last.
const PATHS_MAX: usize = 256;

/// A longer file is not one of ours.
const BYTES_MAX: u64 = 1 << 20;

/// The user's file with what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    file: PathBuf,
}

/// The file's contents.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Contents {
    paths: Vec<KeptPath>,
}

/// What was found over a path.
#[derive(Debug, Serialize, Deserialize)]
struct KeptPath {
    /// The portals at its end, and the congestion control if one was named.
    portals: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to_target: Option<KeptFound>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from_target: Option<KeptFound>,
}

/// What was found in one direction, and when.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct KeptFound {
    found_unix_seconds: u64,
    connections: u32,
    bbr: bool,
    bytes_per_second: f64,
}

impl Kept {
    /// The user's, by the XDG Base Directory Specification; `None` for a user without a home.
    pub(crate) fn of_user() -> Option<Self> {
        Some(Self { file: folders::user_state()?.join("ropewalk/paths.json") })
    }

    /// What was found over the path to these portals and is not too old. Whatever cannot be read was not found.
    pub(crate) fn recall(&self, portals: &str) -> Experience {
        let now = unix_seconds();
        let path = self.read().paths.into_iter().find(|path| path.portals == portals);
        path.map_or_else(Experience::default, |path| Experience {
            to_target: path.to_target.filter(|found| found.is_recent(now)).and_then(KeptFound::recall),
            from_target: path.from_target.filter(|found| found.is_recent(now)).and_then(KeptFound::recall),
        })
    }

    /// Keeps what was found over the path to these portals by a run that began with `known`. The rest may be what another
    /// run has found meanwhile, and stays.
    pub(crate) fn keep(&self, portals: &str, known: Experience, found: Experience) -> io::Result<()> {
        let news = [(found.to_target, known.to_target), (found.from_target, known.from_target)];
        let [to_target, from_target] = news.map(|(found, known)| found.filter(|found| Some(*found) != known));
        if to_target.is_none() && from_target.is_none() {
            return Ok(());
        }
        let now = unix_seconds();
        let mut contents = self.read();
        let earlier = contents.paths.iter().position(|path| path.portals == portals);
        let mut path = earlier.map_or_else(
            || KeptPath { portals: portals.to_owned(), to_target: None, from_target: None },
            |index| contents.paths.remove(index),
        );
        path.to_target = to_target.map(|found| KeptFound::new(found, now)).or(path.to_target);
        path.from_target = from_target.map(|found| KeptFound::new(found, now)).or(path.from_target);
        contents.paths.insert(0, path);
        contents.paths.truncate(PATHS_MAX);
        fs::create_dir_all(self.file.parent().ok_or(io::ErrorKind::NotFound)?)?;
        folders::replace_json(&self.file, &contents)
    }

    fn read(&self) -> Contents {
        // A pipe in its place would never end.
        let is_file = fs::metadata(&self.file).is_ok_and(|file| file.is_file() && file.len() <= BYTES_MAX);
        let text = if is_file { fs::read(&self.file).unwrap_or_default() } else { Vec::new() };
        serde_json::from_slice(&text).unwrap_or_default()
    }
}

impl KeptFound {
    fn new(found: Found, found_unix_seconds: u64) -> Self {
        let Found { connections, law, bytes_per_second } = found;
        Self { found_unix_seconds, connections, bbr: law == Law::Bbr, bytes_per_second }
    }

    fn is_recent(&self, now: u64) -> bool {
        // What was found in the future was found under a wrong clock.
        now.checked_sub(self.found_unix_seconds).is_some_and(|age| age <= AGE_MAX.as_secs())
    }

    /// `None` if somebody has written nonsense.
    fn recall(self) -> Option<Found> {
        let law = if self.bbr { Law::Bbr } else { Law::Configured };
        let is_sound =
            self.connections > 0 && self.bytes_per_second.is_finite() && self.bytes_per_second >= 0.0;
        is_sound.then_some(Found {
            connections: self.connections,
            law,
            bytes_per_second: self.bytes_per_second,
        })
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const PORTAL: &str = "192.0.2.1:3260";
    const NOTHING: Experience = Experience { to_target: None, from_target: None };

    fn kept() -> (TempDir, Kept) {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("ropewalk/paths.json");
        (folder, Kept { file })
    }

    fn found(connections: u32) -> Option<Found> {
        Some(Found { connections, law: Law::Configured, bytes_per_second: 1e6 })
    }

    fn writes(connections: u32) -> Experience {
        Experience { to_target: found(connections), from_target: None }
    }

    #[test]
    fn what_was_found_over_a_path_is_recalled_for_that_path() {
        let (_folder, kept) = kept();
        kept.keep(PORTAL, NOTHING, writes(32)).unwrap();
        assert_eq!(kept.recall(PORTAL), writes(32));
        assert_eq!(kept.recall("192.0.2.2:3260"), Experience::default());
    }

    #[test]
    fn each_direction_keeps_its_own_time() {
        let (_folder, kept) = kept();
        kept.keep(PORTAL, NOTHING, writes(32)).unwrap();
        let mut contents = kept.read();
        contents.paths[0].to_target.as_mut().unwrap().found_unix_seconds = unix_seconds() - 1000;
        folders::replace_json(&kept.file, &contents).unwrap();
        kept.keep(PORTAL, writes(32), Experience { from_target: found(4), ..writes(32) }).unwrap();
        let path = &kept.read().paths[0];
        let age = |found: Option<KeptFound>| unix_seconds() - found.unwrap().found_unix_seconds;
        assert!(age(path.to_target) >= 1000 && age(path.from_target) < 1000, "{path:?}");
    }

    #[test]
    fn what_another_run_has_found_meanwhile_stays() {
        let (_folder, kept) = kept();
        let reads = Experience { to_target: None, from_target: found(4) };
        kept.keep(PORTAL, NOTHING, reads).unwrap();
        kept.keep(PORTAL, NOTHING, writes(32)).unwrap();
        assert_eq!(kept.recall(PORTAL), Experience { from_target: found(4), ..writes(32) });
    }

    #[test]
    fn what_was_found_in_the_future_is_not_believed() {
        let (_folder, kept) = kept();
        kept.keep(PORTAL, NOTHING, writes(32)).unwrap();
        let mut contents = kept.read();
        contents.paths[0].to_target.as_mut().unwrap().found_unix_seconds += 1000;
        folders::replace_json(&kept.file, &contents).unwrap();
        assert_eq!(kept.recall(PORTAL), NOTHING);
    }

    #[test]
    fn what_is_old_is_forgotten() {
        let (_folder, kept) = kept();
        kept.keep(PORTAL, NOTHING, writes(32)).unwrap();
        let mut contents = kept.read();
        contents.paths[0].to_target.as_mut().unwrap().found_unix_seconds -= AGE_MAX.as_secs() + 1;
        folders::replace_json(&kept.file, &contents).unwrap();
        assert_eq!(kept.recall(PORTAL), Experience::default());
    }

    #[test]
    fn a_file_that_cannot_be_read_is_as_good_as_none() {
        let (_folder, kept) = kept();
        fs::create_dir_all(kept.file.parent().unwrap()).unwrap();
        fs::write(&kept.file, "{").unwrap();
        assert_eq!(kept.recall(PORTAL), Experience::default());
        kept.keep(PORTAL, NOTHING, writes(8)).unwrap();
        assert_eq!(kept.recall(PORTAL), writes(8));
    }

    #[test]
    fn the_paths_used_last_are_kept() {
        let (_folder, kept) = kept();
        for path in 0..=PATHS_MAX {
            kept.keep(&path.to_string(), NOTHING, writes(8)).unwrap();
        }
        assert_eq!(kept.recall("0"), Experience::default());
        assert_eq!(kept.recall(&PATHS_MAX.to_string()), writes(8));
    }
}
