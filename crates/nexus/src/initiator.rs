//! State that an initiator keeps across the sessions ("paths") that lead it to one target.
//!
//! Nothing orders the commands of different sessions, and a lost session leaves writes with unknown outcomes. These
//! rules keep that from corrupting data.

mod durability;
mod path_acceptance;
mod retry;
mod write_fence;

pub use durability::{CacheLosses, Durability, FlushMark, Generation};
pub use path_acceptance::{Change, PathRefusal, UnitView, accept_path, change_told};
pub use retry::{CommandKind, Ending, Retry};
pub use write_fence::{Entry, Sealing, WriteFence, WriteId};

/// One session to the target, by the initiator's number. A path keeps its number when its session is reinstated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u32);

impl core::fmt::Display for PathId {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(formatter)
    }
}
