//! Plain TCP streams, as in an experiment's file.

use crate::workload::Direction;
use netem::{Bytes, Span};
use serde::{Deserialize, Serialize};

/// Plain TCP streams: for a time, from the client to the server, or until they have carried a fixed amount of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamsSetup {
    /// The number of concurrent streams.
    pub count: u8,
    /// The time after the warm-up that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    measured: Option<Span>,
    /// The data, which the streams draw from one pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<Bytes>,
    /// The direction of `size`: `write` to the server, `read` from it.
    #[serde(default = "to_the_server")]
    direction: Direction,
    /// The approximate time that `size` takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expected_time: Option<Span>,
    /// `SO_SNDBUF` of the senders; the kernel's own tuning, if missing.
    #[serde(default)]
    pub send_buffer: Option<Bytes>,
}

fn to_the_server() -> Direction {
    Direction::Write
}

/// The end of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamsEnd {
    /// After this time, which follows the warm-up.
    Time(Span),
    /// When all of this has arrived.
    Size(Bytes, Direction),
}

impl StreamsSetup {
    /// Checks the settings.
    ///
    /// # Errors
    /// The defect, in words.
    pub(super) fn check(&self, warm_up: Span) -> Result<(), String> {
        if self.count == 0 {
            return Err("setup.streams.count is 0, but must be 1 to 255".to_owned());
        }
        let is_zero = |span: Option<Span>| span.is_none_or(|span| span.0.is_zero());
        match (self.measured, self.size) {
            (Some(_), None) if is_zero(self.measured) => {
                Err("setup.streams.measured is 0, but must be a time".to_owned())
            }
            (Some(_), None) if self.direction == Direction::Read => {
                Err("setup.streams.direction is read, which needs size in the place of measured".to_owned())
            }
            (None, Some(Bytes(0))) => Err("setup.streams.size is 0, but must be 1 byte or more".to_owned()),
            (None, Some(_)) if is_zero(self.expected_time) => {
                Err("setup.streams.expected_time must be a time, because there is a size".to_owned())
            }
            (None, Some(_)) if !warm_up.0.is_zero() => {
                Err("setup.warm_up must be 0, because setup.streams.size counts from the beginning"
                    .to_owned())
            }
            (Some(_), None) | (None, Some(_)) => Ok(()),
            _ => Err("setup.streams needs measured or size, one of the two".to_owned()),
        }
    }

    /// When they end.
    #[must_use]
    pub fn end(&self) -> StreamsEnd {
        match self.size {
            Some(size) => StreamsEnd::Size(size, self.direction),
            None => StreamsEnd::Time(self.time()),
        }
    }

    /// The time that they take after the warm-up, exactly or approximately.
    pub(super) fn time(&self) -> Span {
        self.measured.or(self.expected_time).unwrap_or_default()
    }

    /// The direction of their data.
    pub(super) fn direction(&self) -> Direction {
        self.direction
    }
}
