//! What an observer may read of a session.

use pdu::CmdSn;

/// Observable numbers of one session. Totals count from the session's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The next command in order.
    pub exp_cmd_sn: CmdSn,
    /// The last command that the window admits.
    pub max_cmd_sn: CmdSn,
    /// Lanes in full feature phase.
    pub lanes: u32,
    /// SCSI tasks known, early ones included.
    pub tasks: u32,
    /// Commands that wait for one before them.
    pub early_commands: u32,
    /// Immediate commands being executed.
    pub immediate_commands: u32,
    /// SCSI commands handed to the driver, total.
    pub commands: u64,
    /// Commands ignored because they were outside the window or there already, total.
    pub ignored_commands: u64,
    /// Rejects sent, total.
    pub rejects: u64,
    /// Bytes of Data-Out placed in buffers, immediate data included, total.
    pub data_out_bytes: u64,
    /// Bytes of Data-Out read and forgotten, total.
    pub discarded_bytes: u64,
    /// Bytes of Data-In pulled, total.
    pub data_in_bytes: u64,
    /// PDUs that were lost because their header's digest was wrong, total.
    pub header_digest_errors: u64,
    /// PDUs that were lost because their data's digest was wrong, total.
    pub data_digest_errors: u64,
    /// R2Ts for data that was lost, total.
    pub recovery_r2ts: u64,
    /// Tasks taken over by another connection than their own, total.
    pub reassigned_tasks: u64,
    /// Connections that are gone and whose tasks are kept.
    pub departed_lanes: u32,
    /// SNACKs taken, total.
    pub snacks: u64,
    /// PDUs sent again because the initiator asked for them, total.
    pub retransmitted_pdus: u64,
    /// Bytes of Data-In that were sent and are kept until they are acknowledged.
    pub retained_bytes: u64,
}
