//! The initiators: hosts with one or several sessions to the target, each of some connections.
//!
//! A [`Host`] does what a careful driver does with the real `session::initiator` and `nexus::initiator`: it keeps
//! overlapping writes apart, sends again what may be sent again, and takes a write of unknown outcome for dead only
//! when its session has been reinstated. Everything it asks for and is told goes to the checker.

mod completion;
mod context;
mod host;
mod operation;
mod path;
mod reserving;
mod workload;

pub use context::{Context, Excuses, Tally};
pub use host::{Host, HostPlan, MEMORY_BYTES, port_of};
pub use path::{PathPlan, TARGET_NAME};
pub use workload::Mix;
