//! Block backends with owned, aligned buffers.
//!
//! A [`Slab`] hands out [`Buffer`]s from a budget; a [`Backend`] takes [`Operation`]s with those buffers and
//! answers by [`Pending`] futures, which need no particular executor. Buffers are owned by whoever works with
//! them (the caller, then the device, then the caller again), so an operation may outlive its caller's interest.
//!
//! ```
//! use ropewalk_block::{Backend, Operation, Ram, Slab};
//!
//! # fn main() -> Result<(), ropewalk_block::BlockError> {
//! let disk = Ram::new(512, 1 << 32)?; // 2 TiB that cost nothing yet
//! let slab = Slab::new(16 << 20);
//! let Some(mut buffer) = slab.allocate(4096) else { return Ok(()) };
//! buffer.fill(7);
//! let write = disk.submit(Operation::Write { offset: 8192, payload: buffer.share(), fua: false });
//! // RAM is done at once; any other device wakes the executor that waits: `write.await.result?`.
//! let Ok(completion) = write.try_take() else { return Ok(()) };
//! completion.result?;
//! # Ok(())
//! # }
//! ```

mod backend;
mod detached;
mod dirty;
mod error;
mod extent;
#[cfg(feature = "file")]
mod file;
mod mapping;
mod paced;
mod payload;
mod pending;
mod ram;
mod rewriting;
mod slab;
mod turn;
mod volatile;
mod writers;

pub use backend::{Backend, Completion, Done, Operation, Properties, Space, Thin};
pub use error::{BlockError, BlockErrorKind};
pub use extent::{ByteRange, Extent, ExtentState};
#[cfg(feature = "file")]
pub use file::{ENGINE_VARIABLE, Engine, EngineChoice, File, FileOptions};
pub use paced::{Pace, Paced, Timer};
pub use payload::Payload;
pub use pending::{Completer, Pending};
pub use ram::Ram;
pub use rewriting::Rewriting;
pub use slab::{BUFFER_ALIGNMENT_BYTES, BUFFER_BYTES_MAX, Buffer, Reservation, Slab};
pub use volatile::Volatile;
