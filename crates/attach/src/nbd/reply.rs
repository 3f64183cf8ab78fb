//! Replies of the transmission phase ("Simple reply message", "Structured reply chunk message").

use super::negotiation::{ALLOCATION_ID, Agreed};
use block::{Extent, ExtentState, Payload};
use rustix::io::Errno;

const SIMPLE_MAGIC: u32 = 0x6744_6698;
const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// This chunk is the last of its reply.
const DONE: u16 = 1;

/// Types of chunks.
mod chunk {
    pub(super) const NONE: u16 = 0;
    pub(super) const OFFSET_DATA: u16 = 1;
    pub(super) const BLOCK_STATUS: u16 = 5;
    pub(super) const ERROR: u16 = 1 << 15 | 1;
}

/// States of blocks in `base:allocation`.
mod state {
    pub(super) const HOLE: u32 = 1;
    pub(super) const ZERO: u32 = 2;
}

/// A reply, ready to be sent.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) head: Vec<u8>,
    /// What a read has found.
    pub(crate) data: Option<Payload>,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) enum Done {
    Nothing,
    Data {
        offset: u64,
        payload: Payload,
    },
    /// At least one.
    Extents(Vec<Extent>),
}

impl Reply {
    pub(crate) fn new(agreed: Agreed, cookie: u64, result: Result<Done, Errno>) -> Self {
        if agreed.structured { Self::structured(cookie, result) } else { Self::simple(cookie, result) }
    }

    fn simple(cookie: u64, result: Result<Done, Errno>) -> Self {
        let (error, data) = match result {
            Ok(Done::Data { payload, .. }) => (0, Some(payload)),
            Ok(_) => (0, None),
            Err(error) => (wire(error), None),
        };
        let head = [&SIMPLE_MAGIC.to_be_bytes()[..], &error.to_be_bytes(), &cookie.to_be_bytes()].concat();
        Self { head, data }
    }

    fn structured(cookie: u64, result: Result<Done, Errno>) -> Self {
        match result {
            Ok(Done::Nothing) => Self::chunk(cookie, chunk::NONE, &[], None),
            Ok(Done::Data { offset, payload }) => {
                Self::chunk(cookie, chunk::OFFSET_DATA, &offset.to_be_bytes(), Some(payload))
            }
            Ok(Done::Extents(extents)) => {
                let descriptors = extents.iter().flat_map(|extent| {
                    let bytes = u32::try_from(extent.range.bytes).unwrap_or(u32::MAX);
                    [bytes.to_be_bytes(), status(extent.state).to_be_bytes()].concat()
                });
                let fields: Vec<_> = ALLOCATION_ID.to_be_bytes().into_iter().chain(descriptors).collect();
                Self::chunk(cookie, chunk::BLOCK_STATUS, &fields, None)
            }
            Err(error) => {
                // No words beside the number: it says all that is known here; the log says more.
                let fields = [&wire(error).to_be_bytes()[..], &0_u16.to_be_bytes()].concat();
                Self::chunk(cookie, chunk::ERROR, &fields, None)
            }
        }
    }

    fn chunk(cookie: u64, kind: u16, fields: &[u8], data: Option<Payload>) -> Self {
        let bytes = fields.len() + data.as_ref().map_or(0, |data| data.len());
        // At most 32 MiB and a few bytes.
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let mut head = Vec::with_capacity(20 + fields.len());
        head.extend(CHUNK_MAGIC.to_be_bytes());
        head.extend(DONE.to_be_bytes());
        head.extend(kind.to_be_bytes());
        head.extend(cookie.to_be_bytes());
        head.extend(bytes.to_be_bytes());
        head.extend(fields);
        Self { head, data }
    }
}

/// "Error values": the protocol's own numbers, which are those of Linux where it has one.
fn wire(error: Errno) -> u32 {
    match error {
        Errno::PERM | Errno::ROFS => 1,
        Errno::NOMEM => 12,
        Errno::INVAL => 22,
        Errno::NOSPC => 28,
        Errno::OPNOTSUPP => 95,
        Errno::SHUTDOWN => 108,
        _ => 5,
    }
}

fn status(state: ExtentState) -> u32 {
    match state {
        ExtentState::Data => 0,
        ExtentState::Zero => state::HOLE | state::ZERO,
        ExtentState::Unspecified => state::HOLE,
    }
}
