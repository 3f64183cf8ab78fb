//! The target's side of a session in full feature phase.

mod event;

pub use event::{
    Command, DataOut, Event, LogicalUnitFunction, Response, SendTargets, TargetRecord, TaskId, TaskManagement,
    TaskManagementId,
};
