//! What was promised, and whether it was kept.
//!
//! [`BlockHistory`] knows which value each block may have. [`Tap`] listens to both ends of every connection and knows
//! what each side may send. [`Stamp`] is what the blocks are filled with, so that a value names its writer.

mod asked_again;
mod attention_watch;
mod block_history;
mod claims;
mod command_order;
mod lane_watch;
mod medium_watch;
mod number_map;
mod numbered;
mod presence;
mod reject_watch;
mod reservation_history;
mod session_watch;
mod stamp;
mod tap;
mod task_watch;
mod transfer_length;

pub use attention_watch::{Attention, AttentionWatch};
pub use block_history::{BlockHistory, Order, ReadId, WriteId};
pub use claims::Claims;
pub use medium_watch::MediumWatch;
pub(crate) use number_map::NumberMap;
pub use reservation_history::{Access, Answer, Change, Port, ReservationHistory, Version};
pub use stamp::Stamp;
pub use tap::{SessionKey, Tap, TargetSession};

/// A promise that was broken, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);
