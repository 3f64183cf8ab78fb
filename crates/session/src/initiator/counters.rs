//! The numbers that an observer may read of a session.

use pdu::CmdSn;

/// Observable numbers of one session. Totals count from the session's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The number of the next command.
    pub cmd_sn: CmdSn,
    /// The first command that the target has not acknowledged.
    pub exp_cmd_sn: CmdSn,
    /// The last command that the target's window admits.
    pub max_cmd_sn: CmdSn,
    /// Lanes in full feature phase.
    pub lanes: u32,
    /// Commands that have not been started.
    pub queued_commands: u32,
    /// Commands that were started and have not been answered.
    pub outstanding_commands: u32,
    /// Commands started, total.
    pub commands: u64,
    /// R2Ts received, total.
    pub r2ts: u64,
    /// Bytes of Data-Out pulled, immediate data included, total.
    pub data_out_bytes: u64,
    /// Bytes of Data-In given a place in a buffer, total.
    pub data_in_bytes: u64,
    /// Bytes of data that arrived for ended tasks and were discarded, total.
    pub discarded_bytes: u64,
    /// Pings sent, total.
    pub pings: u64,
    /// Commands sent again because they were lost on their way, total.
    pub retries: u64,
    /// Tasks that were given another lane, total.
    pub reassignments: u64,
    /// Broken lanes whose tasks have all moved to other lanes, total.
    pub recovered_lanes: u64,
    /// PDUs of commands and data that were sent again, or that the target was asked to send again, total.
    pub retransmissions: u64,
    /// Rejects received, total.
    pub rejects: u64,
}
