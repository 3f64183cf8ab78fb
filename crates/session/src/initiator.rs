//! The initiator's side of a session in full feature phase.

mod event;

pub use event::{
    AsyncEvent, Command, Completion, Data, Demand, Event, FunctionId, SubmitError, TaskFunction, TaskId,
};
