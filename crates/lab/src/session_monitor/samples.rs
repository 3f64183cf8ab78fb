//! What a monitor of sessions has seen. All times are those of [`monotonic_ns`](crate::monotonic_ns).

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
    /// Those that ended when there was no room left.
    pub commands_lost: u64,
    /// Those that were sent and have not ended.
    pub commands_open: u64,
    /// Connections at both ends, in the order of their logins.
    pub connections: Vec<ConnectionSample>,
    /// When no further command was let go, whether one waited or not: MaxCmdSN had been reached. Of all
    /// sessions, by TSIH.
    pub window_closed: Vec<Intervals>,
    /// When commands had arrived at the target that waited for one before them. Of all sessions, by TSIH.
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
    /// `CmdSN`.
    pub cmd_sn: u32,
    /// The first byte of its CDB.
    pub operation_code: u8,
    /// Which way its data goes; missing if there is none.
    pub direction: Option<Direction>,
    /// The first block, of a READ or a WRITE.
    pub lba: Option<u64>,
    /// `Expected Data Transfer Length`.
    pub bytes: u32,
    /// When it got its connection.
    pub pulled_ns: u64,
    /// When the socket had taken its PDU.
    pub sent_ns: Option<u64>,
    /// When the first R2T had arrived.
    pub first_r2t_ns: Option<u64>,
    /// How often data was asked for.
    pub r2ts: u32,
    /// When the socket had taken the last byte of its Data-Out, immediate data included.
    pub data_sent_ns: Option<u64>,
    /// When the header of its first Data-In had arrived.
    pub first_data_ns: Option<u64>,
    /// When its last Data-In had arrived.
    pub data_received_ns: Option<u64>,
    /// When its status had arrived, and the data with it.
    pub ended_ns: u64,
    /// SCSI status.
    pub status: u8,
    /// What the target saw of it.
    pub target: Option<AtTarget>,
}

/// A command at the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtTarget {
    /// When its header had arrived.
    pub arrived_ns: u64,
    /// When its turn among the session's commands had come.
    pub begun_ns: u64,
    /// When all its data was there, and it went to the medium.
    pub started_ns: Option<u64>,
    /// When it had been carried out. A long read waits for the network before that.
    pub carried_out_ns: u64,
}

impl AtTarget {
    /// What it waited for immediate data, and for commands before it.
    #[must_use]
    pub fn order_wait_ns(&self) -> u64 {
        self.begun_ns.saturating_sub(self.arrived_ns)
    }

    /// The medium's time.
    #[must_use]
    pub fn medium_ns(&self) -> Option<u64> {
        Some(self.carried_out_ns.saturating_sub(self.started_ns?))
    }
}

/// Whose end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The initiator's.
    Initiator,
    /// The target's.
    Target,
}

/// One end of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionSample {
    /// Which.
    pub end: End,
    /// TSIH of its session.
    pub session: u16,
    /// CID.
    pub connection: u16,
    /// Its address there.
    pub local: Option<SocketAddr>,
    /// The congestion control of its socket when its login was done, as the kernel names it.
    pub congestion_control: Option<String>,
    /// `SO_SNDBUF` then: twice what was asked for, or what the kernel's tuning had come to.
    pub send_buffer_bytes: Option<u64>,
    /// `SO_RCVBUF`, likewise.
    pub receive_buffer_bytes: Option<u64>,
    /// Bytes that the socket took.
    pub sent_bytes: u64,
    /// PDUs that it took whole.
    pub sent_pdus: u64,
    /// PDUs that arrived.
    pub received_pdus: u64,
    /// When there was more to send and the socket took nothing.
    pub blocked: Intervals,
}
