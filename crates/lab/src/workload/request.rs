//! One request to a disk, and its result.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The direction of a request's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the disk.
    Read,
    /// To the disk.
    Write,
}

/// A request that a workload makes of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The earliest time after the first request; zero for as soon as there is room.
    pub not_before: Duration,
    /// Whether data come from the disk, or go to it.
    pub direction: Direction,
    /// The offset, in bytes from the start of the disk.
    pub offset: u64,
    /// The length in bytes.
    pub bytes: u32,
}

/// A request that has succeeded. Times are those of [`monotonic_ns`](crate::monotonic_ns).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSample {
    /// The time of its submission.
    pub begun_ns: u64,
    /// The time at which its end was known.
    pub ended_ns: u64,
    /// The direction of its data.
    pub direction: Direction,
    /// The first block.
    pub lba: u64,
    /// The length in bytes.
    pub bytes: u32,
    /// The connection (CID) of its command, the first of several; unknown if nobody observed it.
    pub connection: Option<u16>,
}
