//! Workloads on a disk: requests by a pattern, or from a list.

mod contents;
mod load;
mod pattern;
mod replay;
mod request;

pub use contents::Contents;
pub use load::{Load, LoadError};
pub use pattern::{End, InvalidPattern, Order, Pattern, Requests};
pub use replay::{InvalidReplay, Replay};
pub use request::{Direction, Request, RequestSample};

use netem::Bytes;
use serde::{Deserialize, Serialize};

/// A workload on a disk. In a file: `workload.pattern = { … }` or `workload.replay = { … }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Workload {
    /// Requests of one length, by a rule.
    Pattern(Pattern),
    /// The requests of a list.
    Replay(Replay),
}

impl Workload {
    /// The most concurrent requests.
    #[must_use]
    pub fn depth(&self) -> u16 {
        match self {
            Self::Pattern(pattern) => pattern.depth,
            Self::Replay(replay) => replay.depth,
        }
    }

    /// The longest request.
    #[must_use]
    pub fn request_bytes_max(&self) -> u64 {
        match self {
            Self::Pattern(pattern) => pattern.request_size.0,
            Self::Replay(replay) => replay.request_bytes_max(),
        }
    }

    /// Whether it reads at all.
    #[must_use]
    pub fn reads(&self) -> bool {
        self.read_share() > 0.0
    }

    /// The share of the data that is read, from 0 to 1.
    #[must_use]
    pub fn read_share(&self) -> f64 {
        match self {
            Self::Pattern(pattern) => f64::from(pattern.read_percent) / 100.0,
            Self::Replay(replay) => replay.read_share(),
        }
    }

    /// The requests for a disk, starting now.
    ///
    /// # Errors
    /// If they do not fit it.
    pub fn requests(
        &self,
        disk: Bytes,
        block_bytes: u32,
    ) -> Result<Box<dyn Iterator<Item = Request> + '_>, InvalidPattern> {
        match self {
            Self::Pattern(pattern) => Ok(Box::new(pattern.requests(disk.0, block_bytes)?)),
            Self::Replay(replay) => Ok(Box::new(replay.requests(disk.0, block_bytes)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    struct File {
        workload: Workload,
    }

    fn read(text: &str) -> Result<Workload, String> {
        toml::from_str(text).map(|file: File| file.workload).map_err(|error| error.to_string())
    }

    #[test]
    fn a_workload_reads_as_it_is_documented() {
        let pattern = "[workload.pattern]\norder = \"random\"\nread_percent = 70\nrequest_size = \"4KiB\"\n\
                       depth = 32\nend = { time = \"30s\" }\n";
        let workload = read(pattern).unwrap();
        assert_eq!((workload.depth(), workload.request_bytes_max(), workload.reads()), (32, 4096, true));
        let replay = "workload.replay = { depth = 2, requests = \"\"\"\n0, write, 0, 128\n\"\"\" }";
        let workload = read(replay).unwrap();
        assert_eq!((workload.depth(), workload.request_bytes_max(), workload.reads()), (2, 65536, false));
    }

    #[test]
    fn what_is_read_is_a_share_of_the_data_and_not_of_the_requests() {
        let list = "0, write, 0, 1\n0, write, 1, 1\n0, read, 0, 6\n";
        let replay = read(&format!("workload.replay = {{ depth = 1, requests = \"\"\"{list}\"\"\" }}"));
        assert!((replay.unwrap().read_share() - 0.75).abs() < 1e-9);
    }

    #[test]
    fn what_a_workload_cannot_be_is_refused_by_name() {
        let cases = [
            ("[workload.pattern]\nrequest_size = \"4KiB\"\nend = { requests = 1 }\nspeed = 1", "speed"),
            ("[workload.pattern]\nrequest_size = \"4KiB\"", "end"),
            ("[workload.pattern]\nrequest_size = 4096\nend = { requests = 1 }", "4096"),
            ("[workload.trace]\ndepth = 1", "trace"),
            ("[workload.replay]\ndepth = 1\nrequests = \"0, write\"", "line 1: 2 fields"),
        ];
        for (text, expected) in cases {
            let refusal = read(text).unwrap_err();
            assert!(refusal.contains(expected), "{refusal}");
        }
    }
}
