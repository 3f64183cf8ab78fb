//! Requests by a rule.

use super::contents::mix;
use super::request::{Direction, Request};
use netem::{Bytes, Span};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Requests of one length, so many at a time.
///
/// ```toml
/// order = "sequential"      # or "random"
/// read_percent = 0          # the others write
/// request_size = "1MiB"
/// depth = 1
/// end = { requests = 100 }  # or { time = "30s" }
/// seed = 1
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// The order of the requests' places.
    #[serde(default)]
    pub order: Order,
    /// The percentage of reads.
    #[serde(default)]
    pub read_percent: u8,
    /// The length of each.
    pub request_size: Bytes,
    /// The concurrent requests.
    #[serde(default = "default_depth")]
    pub depth: u16,
    /// The end. Outstanding requests, and those already prepared, are finished.
    pub end: End,
    /// The time from one request to the next; as soon as there is room, if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
    /// The seed of all randomness.
    #[serde(default = "default_seed")]
    pub seed: u64,
}

/// The order of the requests' places. The disk is divided into places of their length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// One place after the other, then again from the beginning.
    #[default]
    Sequential,
    /// Any place at random.
    Random,
}

/// The end of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum End {
    /// After this many requests.
    Requests(u64),
    /// After this time, counted from the first.
    Time(Span),
}

/// The reason why a disk cannot take the requests.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} is {value}, but must be {expected}")]
pub struct InvalidPattern {
    what: &'static str,
    value: String,
    expected: String,
}

impl InvalidPattern {
    pub(super) fn new(what: &'static str, value: &impl ToString, expected: impl Into<String>) -> Self {
        Self { what, value: value.to_string(), expected: expected.into() }
    }
}

fn default_depth() -> u16 {
    1
}

fn default_seed() -> u64 {
    1
}

impl Pattern {
    /// The requests, starting now.
    ///
    /// # Errors
    /// If they do not fit a disk of this length, in blocks of this length.
    pub fn requests(&self, disk_bytes: u64, block_bytes: u32) -> Result<Requests, InvalidPattern> {
        let Self { order, read_percent, request_size, depth, end, every, seed } = *self;
        let longest = block::BUFFER_BYTES_MAX as u64;
        let fits = (1..=longest.min(disk_bytes)).contains(&request_size.0)
            && request_size.0.is_multiple_of(block_bytes.into());
        if !fits {
            let expected = format!(
                "whole blocks of {block_bytes} bytes, and at most {longest} bytes and the disk's {disk_bytes}"
            );
            return Err(InvalidPattern::new("request_size", &request_size, expected));
        }
        if read_percent > 100 {
            return Err(InvalidPattern::new("read_percent", &read_percent, "from 0 to 100"));
        }
        if depth == 0 {
            return Err(InvalidPattern::new("depth", &depth, "at least 1"));
        }
        Ok(Requests {
            order,
            read_percent,
            bytes: u32::try_from(request_size.0).unwrap_or(u32::MAX),
            places: disk_bytes / request_size.0,
            end,
            every: every.unwrap_or_default(),
            begun: None,
            number: 0,
            seed,
        })
    }
}

/// The requests of a [`Pattern`], endless unless it has an end.
#[derive(Clone, Debug)]
pub struct Requests {
    order: Order,
    read_percent: u8,
    bytes: u32,
    places: u64,
    end: End,
    every: Span,
    begun: Option<Instant>,
    /// The number of the next one.
    number: u64,
    seed: u64,
}

impl Requests {
    fn is_over(&mut self) -> bool {
        match self.end {
            End::Requests(requests) => self.number >= requests,
            End::Time(time) => {
                let elapsed = self.begun.get_or_insert_with(Instant::now).elapsed();
                elapsed.max(self.not_before()) >= time.0
            }
        }
    }

    fn not_before(&self) -> Duration {
        self.every.0.saturating_mul(u32::try_from(self.number).unwrap_or(u32::MAX))
    }

    fn place(&self) -> u64 {
        let number = match self.order {
            Order::Sequential => self.number,
            Order::Random => mix(self.seed ^ mix(self.number)),
        };
        number % self.places
    }

    fn direction(&self) -> Direction {
        // Another sequence than that of the places.
        let percent = mix(!self.seed ^ mix(self.number)) % 100;
        if percent < self.read_percent.into() { Direction::Read } else { Direction::Write }
    }
}

impl Iterator for Requests {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        if self.is_over() {
            return None;
        }
        let request = Request {
            not_before: self.not_before(),
            direction: self.direction(),
            offset: self.place() * u64::from(self.bytes),
            bytes: self.bytes,
        };
        self.number += 1;
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK_BYTES: u64 = 1 << 20;

    fn pattern(order: Order, read_percent: u8, requests: u64) -> Pattern {
        let end = End::Requests(requests);
        Pattern { order, read_percent, request_size: Bytes(4096), depth: 1, end, every: None, seed: 7 }
    }

    fn requests(pattern: &Pattern) -> Vec<Request> {
        pattern.requests(DISK_BYTES, 512).unwrap().collect()
    }

    #[test]
    fn sequential_requests_begin_again_at_the_end_of_the_disk() {
        let offsets: Vec<u64> =
            requests(&pattern(Order::Sequential, 0, 258)).iter().map(|request| request.offset).collect();
        assert_eq!(offsets[..2], [0, 4096]);
        assert_eq!(offsets[255..], [DISK_BYTES - 4096, 0, 4096]);
    }

    #[test]
    fn random_requests_reach_every_place_and_are_the_same_for_the_same_seed() {
        let random = pattern(Order::Random, 50, 10_000);
        let found = requests(&random);
        let places: std::collections::HashSet<u64> = found.iter().map(|request| request.offset).collect();
        assert_eq!(places.len(), 256);
        assert_eq!(found, requests(&random));
        assert_ne!(found, requests(&Pattern { seed: 8, ..random }));
    }

    #[test]
    fn requests_come_at_the_interval_that_was_asked_for() {
        let every = Some(Span(Duration::from_millis(20)));
        let paced = Pattern { every, ..pattern(Order::Sequential, 0, 3) };
        let times: Vec<_> = requests(&paced).iter().map(|request| request.not_before.as_millis()).collect();
        assert_eq!(times, [0, 20, 40]);
    }

    #[test]
    fn as_many_requests_read_as_were_asked_for() {
        for percent in [0, 30, 100] {
            let found = requests(&pattern(Order::Random, percent, 10_000));
            let reads = found.iter().filter(|request| request.direction == Direction::Read).count();
            // Six standard deviations.
            let (expected, deviation) = (f64::from(percent) * 100.0, 50.0 * 6.0);
            assert!((reads as f64 - expected).abs() <= deviation, "{reads} of 10000");
        }
    }

    #[test]
    fn a_pattern_that_has_run_out_of_time_asks_for_nothing() {
        let end = End::Time(Span(Duration::ZERO));
        assert_eq!(requests(&Pattern { end, ..pattern(Order::Sequential, 0, 0) }), []);
    }

    #[test]
    fn what_does_not_fit_the_disk_is_refused_with_what_is_expected() {
        let good = pattern(Order::Sequential, 0, 1);
        let refusals = [
            (
                Pattern { request_size: Bytes(1000), ..good.clone() },
                "request_size is 1kB, but must be whole blocks",
            ),
            (Pattern { request_size: Bytes(2 << 20), ..good.clone() }, "request_size is 2097152B"),
            (Pattern { request_size: Bytes(0), ..good.clone() }, "request_size is 0B"),
            (Pattern { read_percent: 101, ..good.clone() }, "read_percent is 101, but must be from 0 to 100"),
            (Pattern { depth: 0, ..good }, "depth is 0, but must be at least 1"),
        ];
        for (pattern, expected) in refusals {
            let refusal = pattern.requests(DISK_BYTES, 512).unwrap_err().to_string();
            assert!(refusal.starts_with(expected), "{refusal}");
        }
    }
}
