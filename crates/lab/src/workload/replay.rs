//! Requests from a list, each at its time.

use super::pattern::InvalidPattern;
use super::request::{Direction, Request};
use netem::Bytes;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::time::Duration;

/// A list of requests. As text, a line for each, ordered by time:
///
/// ```csv
/// # seconds since the first line, read or write, first block, blocks
/// 0.000, write, 0, 128
/// 0.0125, read, 4096, 8
/// ```
///
/// Blank lines, and text after a `#`, are ignored. A block has 512 bytes, whatever the disk's own length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The requests, ordered by time.
    pub requests: Listed,
    /// The most concurrent requests: later ones wait, and are late.
    pub depth: u16,
}

/// The requests, parsed from their text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Listed(Vec<Request>);

/// The block of a list.
const BLOCK_BYTES: u64 = 512;

/// The most requests of a list. A trace of an hour with a thousand requests per second is longer than such a lab should
/// repeat.
const REQUESTS_MAX: usize = 1 << 20;

/// A text that is not a list of requests.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct InvalidReplay {
    line: usize,
    problem: String,
}

impl Replay {
    pub(super) fn request_bytes_max(&self) -> u64 {
        self.requests.0.iter().map(|request| request.bytes.into()).max().unwrap_or(0)
    }

    /// The requests, ordered by time.
    pub(crate) fn list(&self) -> &[Request] {
        &self.requests.0
    }

    /// A list without requests reads nothing.
    pub(crate) fn read_share(&self) -> f64 {
        let bytes = |request: &Request| f64::from(request.bytes);
        let all: f64 = self.requests.0.iter().map(bytes).sum();
        let reads = self.requests.0.iter().filter(|request| request.direction == Direction::Read);
        reads.map(bytes).sum::<f64>() / all.max(1.0)
    }

    /// The requests.
    ///
    /// # Errors
    /// If they do not fit a disk of this length, in blocks of this length.
    pub fn requests(
        &self,
        disk_bytes: u64,
        block_bytes: u32,
    ) -> Result<impl Iterator<Item = Request> + '_, InvalidPattern> {
        if self.depth == 0 {
            return Err(InvalidPattern::new("depth", &self.depth, "at least 1"));
        }
        let block_bytes = u64::from(block_bytes);
        let fits = |request: &&Request| {
            let end = request.offset.checked_add(request.bytes.into());
            end.is_some_and(|end| end <= disk_bytes && end.is_multiple_of(block_bytes))
                && request.offset.is_multiple_of(block_bytes)
        };
        if let Some(wrong) = self.requests.0.iter().find(|request| !fits(request)) {
            let value = format!("{} bytes at {}", wrong.bytes, wrong.offset);
            let expected = format!("whole blocks of {block_bytes} bytes of a disk of {}", Bytes(disk_bytes));
            return Err(InvalidPattern::new("a request", &value, expected));
        }
        Ok(self.requests.0.iter().copied())
    }
}

impl FromStr for Listed {
    type Err = InvalidReplay;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut requests: Vec<Request> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.split_once('#').map_or(line, |(before, _)| before).trim();
            if line.is_empty() {
                continue;
            }
            let wrong = |problem| InvalidReplay { line: index + 1, problem };
            let request = parse(line).map_err(wrong)?;
            if requests.last().is_some_and(|last| last.not_before > request.not_before) {
                return Err(wrong("it is earlier than the line before it".to_owned()));
            }
            if requests.len() == REQUESTS_MAX {
                return Err(wrong(format!("a list has at most {REQUESTS_MAX} requests")));
            }
            requests.push(request);
        }
        Ok(Self(requests))
    }
}

fn parse(line: &str) -> Result<Request, String> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [seconds, direction, lba, blocks] = fields[..] else {
        return Err(format!(
            "{} fields instead of four: seconds, read or write, first block, blocks",
            fields.len()
        ));
    };
    let time = seconds.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let direction = match direction {
        "read" => Direction::Read,
        "write" => Direction::Write,
        other => return Err(format!("\"{other}\" is neither read nor write")),
    };
    let number = |text: &str| text.parse().ok().and_then(|blocks: u64| blocks.checked_mul(BLOCK_BYTES));
    let longest = block::BUFFER_BYTES_MAX as u64;
    let bytes = number(blocks).filter(|bytes| (1..=longest).contains(bytes));
    Ok(Request {
        not_before: time.ok_or_else(|| format!("\"{seconds}\" is not a number of seconds"))?,
        direction,
        offset: number(lba).ok_or_else(|| format!("\"{lba}\" is not a block"))?,
        bytes: bytes.and_then(|bytes| u32::try_from(bytes).ok()).ok_or_else(|| {
            format!("\"{blocks}\" is not a number of blocks from 1 to {}", longest / BLOCK_BYTES)
        })?,
    })
}

impl TryFrom<String> for Listed {
    type Error = InvalidReplay;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Listed> for String {
    fn from(listed: Listed) -> Self {
        let line = |request: &Request| {
            let direction = if request.direction == Direction::Read { "read" } else { "write" };
            let (lba, blocks) = (request.offset / BLOCK_BYTES, u64::from(request.bytes) / BLOCK_BYTES);
            format!("{:.9}, {direction}, {lba}, {blocks}\n", request.not_before.as_secs_f64())
        };
        listed.0.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        text.parse::<Listed>().unwrap_err().to_string()
    }

    #[test]
    fn a_list_is_read_with_its_comments_and_blank_lines() {
        let listed: Listed = "# a trace\n\n0, write, 0, 128\n0.0125,read,4096,8 # a page\n".parse().unwrap();
        let expected = [
            (Duration::ZERO, Direction::Write, 0, 65536),
            (Duration::from_micros(12_500), Direction::Read, 2 << 20, 4096),
        ];
        let expected = expected.map(|(not_before, direction, offset, bytes)| Request {
            not_before,
            direction,
            offset,
            bytes,
        });
        assert_eq!(listed.0, expected);
    }

    #[test]
    fn what_is_written_reads_back() {
        let listed: Listed = "0, write, 0, 1\n1.000000001, read, 7, 9\n".parse().unwrap();
        assert_eq!(String::from(listed.clone()).parse(), Ok(listed));
    }

    #[test]
    fn a_wrong_line_is_named_with_what_is_wrong_in_it() {
        let good = "0, read, 0, 1\n";
        let cases = [
            ("1, read, 0", "3 fields instead of four"),
            ("x, read, 0, 1", "\"x\" is not a number of seconds"),
            ("-1, read, 0, 1", "\"-1\" is not a number of seconds"),
            ("1, erase, 0, 1", "\"erase\" is neither read nor write"),
            ("1, read, -1, 1", "\"-1\" is not a block"),
            ("1, read, 18446744073709551615, 1", "\"18446744073709551615\" is not a block"),
            ("1, read, 0, 0", "\"0\" is not a number of blocks from 1 to 65536"),
            ("1, read, 0, 65537", "\"65537\" is not a number of blocks from 1 to 65536"),
        ];
        for (line, problem) in cases {
            let found = refusal(&format!("{good}\n{line}\n"));
            assert!(found.starts_with(&format!("line 3: {problem}")), "{found}");
        }
        assert_eq!(
            refusal("1, read, 0, 1\n0.5, read, 0, 1"),
            "line 2: it is earlier than the line before it"
        );
    }

    #[test]
    fn a_request_beyond_the_disk_or_across_its_blocks_is_refused() {
        let replay = |text: &str| Replay { requests: text.parse().unwrap(), depth: 1 };
        assert!(replay("0, read, 2047, 1").requests(1 << 20, 512).is_ok());
        assert!(replay("0, read, 2047, 2").requests(1 << 20, 512).is_err());
        assert!(replay("0, read, 1, 8").requests(1 << 20, 4096).is_err());
        assert!(replay("0, read, 8, 1").requests(1 << 20, 4096).is_err());
    }
}
