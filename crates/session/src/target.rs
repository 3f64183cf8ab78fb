//! The target's side of a session in full feature phase (RFC 7143 §4.2.5).
//!
//! The path of a write, top to bottom: [`session`] sees the header and asks [`command_window`] whether its turn
//! has come, [`data_out`] says where its data goes, [`r2t`] asks for the rest, the driver executes it, and
//! [`status`] queues its response on its [`lane`]. A read's data leaves by [`data_in`].

mod counters;
mod event;
mod registry;
mod session;

pub use counters::Counters;
pub use event::{
    AsyncMessage, Command, DataOut, Event, LogicalUnitFunction, Response, SendTargets, TargetRecord, TaskId,
    TaskManagement, TaskManagementId,
};
pub use registry::{Admission, Applicant, Registry};
pub use session::Session;
