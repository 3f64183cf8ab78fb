//! The numbers that an observer may read of a session.

use pdu::CmdSn;

/// Observable numbers of one session. Totals count from the session's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The CmdSN of the next command in order.
    pub exp_cmd_sn: CmdSn,
    /// The last CmdSN that the window admits.
    pub max_cmd_sn: CmdSn,
    /// Lanes in full feature phase.
    pub lanes: u32,
    /// SCSI tasks of the session, early ones included.
    pub tasks: u32,
    /// Commands that wait for an earlier one.
    pub early_commands: u32,
    /// Immediate commands being executed.
    pub immediate_commands: u32,
    /// SCSI commands handed to the driver, total.
    pub commands: u64,
    /// Commands ignored because they were outside the window or had arrived before, total.
    pub ignored_commands: u64,
    /// Rejects sent, total.
    pub rejects: u64,
    /// Bytes of Data-Out placed in buffers, immediate data included, total.
    pub data_out_bytes: u64,
    /// Bytes of Data-Out read and discarded, total.
    pub discarded_bytes: u64,
    /// Bytes of Data-In pulled, total.
    pub data_in_bytes: u64,
    /// PDUs dropped because their header's digest was wrong, total.
    pub header_digest_errors: u64,
    /// PDUs dropped because their data's digest was wrong, total.
    pub data_digest_errors: u64,
    /// R2Ts for data that was lost, total.
    pub recovery_r2ts: u64,
    /// Tasks that moved to another connection, total.
    pub reassigned_tasks: u64,
    /// Lost connections whose tasks are kept.
    pub departed_lanes: u32,
    /// SNACKs accepted, total.
    pub snacks: u64,
    /// PDUs sent again because the initiator asked for them, total.
    pub retransmitted_pdus: u64,
    /// Bytes of Data-In that were sent and are kept until they are acknowledged.
    pub retained_bytes: u64,
}
