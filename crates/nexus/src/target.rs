//! The target's side: what the sessions of all initiators share at a logical unit.

mod logical_unit;
mod medium;
mod task_set;
mod unit_attention;

pub use logical_unit::{Cleared, Contact, LogicalUnit, NexusId, Reset, TASKS_MAX};
pub use task_set::{Admission, NexusTask};
pub use unit_attention::UnitAttention;
