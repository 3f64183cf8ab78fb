//! One SCSI command at the point of capture, from its first byte to its status.
//!
//! Times are those of the capture; [`crate::timing`] converts them to both ends.

use pdu::{Duration, Instant, Itt, Lun, ScsiCommand};
use serde::{Deserialize, Serialize};

/// The most gaps of one command that are reported; further ones are only counted.
const GAPS_MAX: usize = 16;

/// A pause in the middle of a command's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The time of the last bytes before it, in nanoseconds since 1970-01-01 UTC.
    pub at_ns: u64,
    /// The time without bytes in the direction of the data.
    pub duration_ns: u64,
    /// The sender's data in flight when it paused. Less than the network or the peer's window allow indicates a send
    /// buffer that is too small.
    pub in_flight_bytes: u64,
    /// The peer's largest window so far, if its scale is known.
    pub window_bytes: Option<u64>,
    /// Whether the command had no data that it was allowed to send, because an R2T was missing.
    pub waiting_for_r2t: bool,
}

impl Gap {
    /// The shortest pause that counts as one over this round trip: half of it, and at least a millisecond.
    #[must_use]
    pub fn duration_min(rtt: Duration) -> Duration {
        (rtt / 2).max(Duration::from_millis(1))
    }
}

/// The direction of a command's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// To the target, or in both directions.
    Write,
    /// To the initiator.
    Read,
    /// The command moves no data.
    NoData,
}

#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) itt: Itt,
    pub(crate) cmd_sn: u32,
    pub(crate) lun: Lun,
    pub(crate) operation_code: u8,
    pub(crate) kind: Kind,
    pub(crate) expected_bytes: u32,
    /// The time of its first byte.
    pub(crate) begun: Instant,
    pub(crate) sent: Instant,
    /// The last byte of data that the initiator sent for it.
    pub(crate) data_out_end: Option<Instant>,
    pub(crate) data_in: Option<(Instant, Instant)>,
    pub(crate) data_bytes: u64,
    pub(crate) r2ts: u32,
    pub(crate) first_r2t: Option<Instant>,
    /// The time in which it had no data that it was allowed to send.
    pub(crate) r2t_wait_ns: u64,
    pub(crate) ended: Option<(Instant, u8)>,
    /// The number of commands without a status when it began, including itself.
    pub(crate) depth: usize,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) gap_count: u32,
    pub(crate) gap_ns: u64,
    /// The start of the latest gap.
    latest_gap_ns: Option<u64>,
    /// Whether the capture has everything that may belong to it.
    pub(crate) whole: bool,
    /// The time from its status to the next command, if none was outstanding in between.
    pub(crate) until_next_ns: Option<u64>,
    /// Unfinished sequences of data that it is allowed to send: the unsolicited one, and one for each R2T.
    sequences: u32,
    /// The time since which there is none.
    stalled_since: Option<Instant>,
}

impl Command {
    pub(crate) fn begin(pdu: &ScsiCommand, at: Instant, depth: usize) -> Self {
        Self {
            itt: pdu.itt,
            cmd_sn: pdu.cmd_sn.0,
            lun: pdu.lun,
            operation_code: pdu.cdb.bytes().first().copied().unwrap_or_default(),
            kind: match (pdu.write, pdu.read) {
                (true, _) => Kind::Write,
                (false, true) => Kind::Read,
                (false, false) => Kind::NoData,
            },
            expected_bytes: pdu.expected_data_bytes,
            begun: at,
            sent: at,
            data_out_end: None,
            data_in: None,
            data_bytes: 0,
            r2ts: 0,
            first_r2t: None,
            r2t_wait_ns: 0,
            ended: None,
            depth,
            gaps: Vec::new(),
            gap_count: 0,
            gap_ns: 0,
            latest_gap_ns: None,
            whole: true,
            until_next_ns: None,
            sequences: 1,
            stalled_since: None,
        }
    }

    /// The whole command was sent, with its immediate data. `final_`: no unsolicited data follows.
    pub(crate) fn command_sent(&mut self, at: Instant, immediate_bytes: u32, final_: bool) {
        self.sent = at;
        self.data_sent(at, immediate_bytes, final_);
    }

    /// The header of a Data-Out was sent.
    pub(crate) fn data_out_begun(&mut self, at: Instant) {
        if let Some(since) = self.stalled_since.take() {
            self.r2t_wait_ns += at.0.saturating_sub(since.0);
        }
    }

    /// A whole Data-Out, or immediate data, was sent; `final_` if it ends a sequence.
    pub(crate) fn data_sent(&mut self, at: Instant, bytes: u32, final_: bool) {
        if bytes > 0 {
            self.data_out_end = Some(at);
            self.data_bytes += u64::from(bytes);
        }
        if final_ {
            self.sequences = self.sequences.saturating_sub(1);
        }
        if self.sequences == 0 && self.kind == Kind::Write && self.data_bytes < self.expected_bytes.into() {
            self.stalled_since = Some(at);
        }
    }

    /// The target asked for data.
    pub(crate) fn r2t(&mut self, at: Instant) {
        self.r2ts += 1;
        self.sequences += 1;
        self.first_r2t.get_or_insert(at);
    }

    /// A whole Data-In was sent.
    pub(crate) fn data_in(&mut self, first: Instant, last: Instant, bytes: u32) {
        self.data_bytes += u64::from(bytes);
        self.data_in = Some((self.data_in.map_or(first, |(begun, _)| begun), last));
    }

    /// Whether it is in the middle of its data, so that a pause is a gap.
    pub(crate) fn is_moving(&self) -> bool {
        match self.kind {
            Kind::Write => true,
            Kind::Read => self.data_in.is_some(),
            Kind::NoData => false,
        }
    }

    pub(crate) fn is_waiting_for_r2t(&self) -> bool {
        self.stalled_since.is_some()
    }

    /// Data followed a pause. Parts of several PDUs may end the same pause, which counts once.
    pub(crate) fn gap(&mut self, gap: Gap) {
        if self.latest_gap_ns.replace(gap.at_ns) == Some(gap.at_ns) {
            return;
        }
        self.gap_count = self.gap_count.saturating_add(1);
        self.gap_ns = self.gap_ns.saturating_add(gap.duration_ns);
        if self.gaps.len() < GAPS_MAX {
            self.gaps.push(gap);
        }
    }
}
