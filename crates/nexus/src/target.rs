//! The target's side: the state of a logical unit that the sessions of all initiators share.

mod away;
mod i_t_nexus;
mod logical_unit;
mod medium;
mod percent_encoding;
mod persisted_reservations;
mod persistent_reserve_out;
mod reservations;
mod reserve;
mod task_set;
mod unit_attention;
mod untold;

pub use i_t_nexus::{InitiatorPort, Ports, RelativePort};
pub use logical_unit::{Cleared, LogicalUnit, NexusId, Reset, TASKS_MAX};
pub use persisted_reservations::{InvalidSnapshot, PersistedReservations};
pub use reservations::REGISTRATIONS_MAX;
pub use reserve::{ReservationChange, Settled};
pub use task_set::{Admission, NexusTask};
pub use unit_attention::UnitAttention;
