//! The times of a command: the model of Ta, Tb, Tc and RTT for captures taken anywhere on the path.
//!
//! The model is that of a sequential write, T = Ta + RTT + Tb + Tc (paper 004, figure 9), measured there beside the
//! initiator. A capture elsewhere sees the same events shifted by a part of the round trip. It knows the smallest round
//! trips from the point of capture to the target and back (`to_target`) and to the initiator and back (`to_initiator`),
//! whose sum is RTT:
//!
//! | time | of a write | of a read |
//! |---|---|---|
//! | Ta, transfer | first byte of the command to last byte of its data | first to last byte of data |
//! | Tb, target | last byte of data to the status, less `to_target` | end of the command to first data, less `to_target` |
//! | Tc, initiator | status to the next command, less `to_initiator`; only if nothing was outstanding between | the same |
//! | turnaround | first byte to status, and `to_initiator`: Ta + RTT + Tb | the same; time after the last data is no part of Ta |
//! | R2T wait | sum of times in which no data was left that it was allowed to send | none |
//! | R2T delay | end of the command to the first R2T, less `to_target` | none |
//!
//! A command without data counts as a write of nothing. Ta of a write includes R2T waits and pauses. Queues in the
//! network beyond the smallest round trip count for Tb, as does a part of the retransmitted data.

use crate::command::{Command, Gap, Kind};
use pdu::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// Round trips between the point of capture and both ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RttParts {
    pub(crate) to_target: Option<Duration>,
    pub(crate) to_initiator: Option<Duration>,
}

impl RttParts {
    fn to_target_ns(self) -> u64 {
        nanoseconds(self.to_target)
    }

    fn to_initiator_ns(self) -> u64 {
        nanoseconds(self.to_initiator)
    }

    /// The whole path's, if both parts are known.
    pub(crate) fn whole(self) -> Option<Duration> {
        Some(self.to_target? + self.to_initiator?)
    }
}

fn nanoseconds(duration: Option<Duration>) -> u64 {
    duration.map_or(0, pdu::nanoseconds)
}

/// A command with a status, and its times in nanoseconds ([`timing`](self) defines them).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandReport {
    /// Initiator Task Tag.
    pub task_tag: u32,
    /// `CmdSN`: its place in the command order.
    pub cmd_sn: u32,
    /// The unit's number, if its address is of a simple form.
    pub lun: Option<u16>,
    /// The first byte of its CDB.
    pub operation_code: u8,
    /// The direction of its data.
    pub kind: Kind,
    /// `Expected Data Transfer Length`.
    pub expected_bytes: u32,
    /// Its data in the capture, including truncated bytes.
    pub data_bytes: u64,
    /// The SCSI status byte (SAM-5).
    pub status: u8,
    /// The capture time of its first byte, since 1970-01-01 UTC.
    pub begun_ns: u64,
    /// The number of the connection's commands without a status when it began, including itself.
    pub depth: usize,
    /// Ta: the transfer of its data.
    pub ta_ns: u64,
    /// Tb: the target's time.
    pub tb_ns: u64,
    /// Tc: the initiator's time until the next command, if nothing was outstanding in between.
    pub tc_ns: Option<u64>,
    /// From its first byte to its status, at the initiator.
    pub turnaround_ns: u64,
    /// The number of R2Ts.
    pub r2ts: u32,
    /// The time without data that it was allowed to send.
    pub r2t_wait_ns: u64,
    /// The target's time until the first R2T.
    pub r2t_delay_ns: Option<u64>,
    /// The first pauses in the middle of its data.
    pub gaps: Vec<Gap>,
    /// The number of pauses.
    pub gap_count: u32,
    /// The total time of its pauses.
    pub gap_ns: u64,
    /// Whether the capture has everything that may belong to it. If not, its times are bounds at best, and no statistic
    /// includes them.
    pub whole: bool,
}

impl CommandReport {
    /// The report on a command that has ended; `None` if it has not.
    pub(crate) fn new(command: &Command, rtt: RttParts) -> Option<Self> {
        let (ended, status) = command.ended?;
        let (ta_ns, tb_raw_ns) = transfer(command, ended);
        Some(Self {
            task_tag: command.itt.0,
            cmd_sn: command.cmd_sn,
            lun: command.lun.index(),
            operation_code: command.operation_code,
            kind: command.kind,
            expected_bytes: command.expected_bytes,
            data_bytes: command.data_bytes,
            status,
            begun_ns: command.begun.0,
            depth: command.depth,
            ta_ns,
            tb_ns: tb_raw_ns.saturating_sub(rtt.to_target_ns()),
            tc_ns: command.until_next_ns.map(|raw_ns| raw_ns.saturating_sub(rtt.to_initiator_ns())),
            turnaround_ns: between(command.begun, ended).saturating_add(rtt.to_initiator_ns()),
            r2ts: command.r2ts,
            r2t_wait_ns: command.r2t_wait_ns,
            r2t_delay_ns: command
                .first_r2t
                .map(|r2t| between(command.sent, r2t).saturating_sub(rtt.to_target_ns())),
            gaps: command.gaps.clone(),
            gap_count: command.gap_count,
            gap_ns: command.gap_ns,
            whole: command.whole,
        })
    }
}

/// Ta, and Tb before the round trip is subtracted.
fn transfer(command: &Command, ended: Instant) -> (u64, u64) {
    match command.data_in {
        Some((first, last)) if command.kind == Kind::Read => {
            (between(first, last), between(command.sent, first))
        }
        _ => {
            let sent = command.data_out_end.unwrap_or(command.sent).max(command.sent);
            (between(command.begun, sent), between(sent, ended))
        }
    }
}

fn between(earlier: Instant, later: Instant) -> u64 {
    later.0.saturating_sub(earlier.0)
}
