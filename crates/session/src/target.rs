//! The target's side of a session in full feature phase (RFC 7143 §4.2.5).
//!
//! The path of a write, top to bottom: `session` takes the header, `scsi_command` makes it a task and `data_out` says
//! where its data goes; `request` brings it through the `command_order` to the driver; the driver solicits the rest,
//! and `r2t` requests it; when the driver responds, `scsi_response` queues the response on the task's `lane`, and
//! `transmit` hands it out. A read's data leaves by `data_in`.

mod async_message;
mod command_order;
mod connection_recovery;
mod counters;
mod data_in;
mod data_out;
mod departures;
mod event;
mod immediate;
mod lane;
mod logout;
mod multi_task;
mod nop;
mod order_waits;
mod r2t;
mod recovery_r2t;
mod registry;
mod reject;
mod reminder;
mod request;
mod response_fence;
mod retention;
mod scsi_command;
mod scsi_response;
mod sent_status;
mod session;
mod snack;
#[cfg(test)]
mod split_routes;
mod status;
mod task;
mod task_management;
mod task_reassign;
mod text;
mod timer;
mod transmit;

pub use counters::Counters;
pub use event::{
    AsyncMessage, Command, DataOut, Event, LogicalUnitFunction, Response, SendTargets, TargetRecord, TaskId,
    TaskManagement, TaskManagementId,
};
pub use order_waits::OrderWaits;
pub use registry::{Admission, Applicant, Registry};
pub use session::Session;
