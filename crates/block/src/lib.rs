//! Block backends with owned, aligned buffers.
//!
//! A [`Slab`] hands out [`Buffer`]s from a budget; a [`Backend`] takes [`Operation`]s with those buffers and
//! answers by [`Pending`] futures, which need no particular executor. Buffers are owned by whoever works with
//! them (the caller, then the device, then the caller again), so an operation may outlive its caller's interest.

mod backend;
mod error;
mod mapping;
mod payload;
mod pending;
mod slab;

pub use backend::{Backend, ByteRange, Completion, Done, Extent, ExtentState, Operation, Properties, Thin};
pub use error::{BlockError, BlockErrorKind};
pub use payload::Payload;
pub use pending::{Completer, Pending};
pub use slab::{BUFFER_ALIGNMENT_BYTES, BUFFER_BYTES_MAX, Buffer, Slab};
