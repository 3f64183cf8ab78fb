//! One request to a disk, and what became of it.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Which way a request's data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the disk.
    Read,
    /// To the disk.
    Write,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Not before this time after the first; zero for as soon as there is room.
    pub not_before: Duration,
    /// Which way.
    pub direction: Direction,
    /// Where, in bytes from the start of the disk.
    pub offset: u64,
    /// How much.
    pub bytes: u32,
}

/// A request that has succeeded. Times are those of [`monotonic_ns`](crate::monotonic_ns).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSample {
    /// When it was submitted.
    pub begun_ns: u64,
    /// When its end was known.
    pub ended_ns: u64,
    /// Which way its data went.
    pub direction: Direction,
    /// The first block.
    pub lba: u64,
    /// How much.
    pub bytes: u32,
    /// The connection (CID) that carried its command, of several the first; unknown where nobody watched.
    pub connection: Option<u16>,
}
