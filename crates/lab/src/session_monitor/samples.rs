//! The samples of a monitor of sessions. All times are those of [`monotonic_ns`](crate::monotonic_ns).

use super::intervals::Intervals;
use crate::workload::Direction;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The sessions of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSamples {
    /// SCSI commands that have ended, in the order of their ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandSample>,
    /// Commands that ended when there was no room left.
    pub commands_lost: u64,
    /// Commands that were sent and have not ended.
    pub commands_open: u64,
    /// Connections at both ends, in the order of their logins.
    pub connections: Vec<ConnectionSample>,
    /// The times in which MaxCmdSN was reached, whether or not a command waited. For all sessions, by TSIH.
    pub window_closed: Vec<Intervals>,
    /// The times in which commands at the target waited for an earlier one. For all sessions, by TSIH.
    pub cmd_sn_holes: Vec<Intervals>,
}

/// One SCSI command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandSample {
    /// TSIH of its session.
    pub session: u16,
    /// CID of the connection on which it was sent.
    pub connection: u16,
    /// Initiator Task Tag.
    pub task_tag: u32,
    /// `CmdSN`: its place in the command order.
    pub cmd_sn: u32,
    /// The first byte of its CDB.
    pub operation_code: u8,
    /// The direction of its data; missing without data.
    pub direction: Option<Direction>,
    /// The first block, of a READ or a WRITE.
    pub lba: Option<u64>,
    /// `Expected Data Transfer Length`.
    pub bytes: u32,
    /// The time at which it got its connection.
    pub pulled_ns: u64,
    /// The time at which the socket had accepted its PDU.
    pub sent_ns: Option<u64>,
    /// The arrival of its first R2T.
    pub first_r2t_ns: Option<u64>,
    /// The number of its R2Ts.
    pub r2ts: u32,
    /// The time at which the socket had accepted the last byte of its Data-Out, including immediate data.
    pub data_sent_ns: Option<u64>,
    /// The arrival of the header of its first Data-In.
    pub first_data_ns: Option<u64>,
    /// The arrival of its last Data-In.
    pub data_received_ns: Option<u64>,
    /// The arrival of its status, and of its data.
    pub ended_ns: u64,
    /// The SCSI status byte (SAM-5).
    pub status: u8,
    /// The target's view of it.
    pub target: Option<AtTarget>,
}

/// A command at the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtTarget {
    /// The arrival of its header.
    pub arrived_ns: u64,
    /// The time of its turn among the session's commands.
    pub begun_ns: u64,
    /// Its wait for that turn, since its immediate data had arrived.
    #[serde(default)]
    pub order_wait_ns: u64,
    /// The time at which all its data was there and it went to the medium.
    pub started_ns: Option<u64>,
    /// The time at which it was carried out. A long read waits for the network before that.
    pub carried_out_ns: u64,
}

impl AtTarget {
    /// The medium's time.
    #[must_use]
    pub fn medium_ns(&self) -> Option<u64> {
        Some(self.carried_out_ns.saturating_sub(self.started_ns?))
    }
}

/// The end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The initiator's end.
    Initiator,
    /// The target's end.
    Target,
}

/// One end of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionSample {
    /// The initiator's or the target's.
    pub end: End,
    /// TSIH of its session.
    pub session: u16,
    /// CID of the connection.
    pub connection: u16,
    /// Its address at this end.
    pub local: Option<SocketAddr>,
    /// The congestion control of its socket after the login, by the kernel's name.
    pub congestion_control: Option<String>,
    /// `SO_SNDBUF` after the login: twice the requested length, or the result of the kernel's tuning.
    pub send_buffer_bytes: Option<u64>,
    /// `SO_RCVBUF` after the login, likewise.
    pub receive_buffer_bytes: Option<u64>,
    /// Bytes that the socket accepted.
    pub sent_bytes: u64,
    /// PDUs that it accepted completely.
    pub sent_pdus: u64,
    /// PDUs that arrived.
    pub received_pdus: u64,
    /// The times in which there was more to send and the socket accepted nothing.
    pub blocked: Intervals,
}
