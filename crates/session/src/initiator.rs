//! The initiator's side of a session in full feature phase (RFC 7143 §4.2.5).
//!
//! The path of a write, top to bottom: `scsi_command` queues it, lets it start when the `command_window` is open, and
//! sends it on a `lane` with immediate data; `data_out` cuts unsolicited data and the data that an `r2t` asks for into
//! PDUs, which take turns in `outgoing`; `scsi_response` completes it. A read's data comes by `data_in`.
//!
//! Above error recovery level 0, gaps in the numbering reveal lost PDUs, and `snack` asks for them again: a task's
//! `data_sequence` numbers Data-In and R2Ts, a lane's `status_sequence` numbers responses. `command_retry` and
//! `request_retry` repeat PDUs that were lost on the way to the target. When a lane breaks, `connection_recovery` logs
//! it out over another (`lost_connections` says when), and `task_reassign` moves its tasks (`reassignments` says how
//! many at a time).

mod ask;
mod async_message;
mod command_retry;
mod command_window;
mod connection_recovery;
mod counters;
mod data_coverage;
mod data_in;
mod data_out;
mod data_sequence;
mod event;
mod lane;
mod load;
mod logout;
mod lost_connections;
mod outgoing;
mod ping;
mod r2t;
mod reassignments;
mod reject;
mod request_retry;
mod scsi_command;
mod scsi_response;
mod session;
mod snack;
#[cfg(test)]
mod split_routes;
mod status_sequence;
mod task;
mod task_management;
mod task_reassign;
mod text;
mod timer;

pub use crate::liveness::PING_BYTES_MAX;
pub use counters::Counters;
pub use event::{
    AsyncEvent, Command, Completion, Data, Demand, Event, FunctionId, LaneState, SendTargets,
    SendTargetsError, SubmitError, TaskFunction, TaskId,
};
pub use session::Session;
