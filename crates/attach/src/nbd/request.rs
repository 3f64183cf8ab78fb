//! Requests of the transmission phase ("Request message", "Request types").

use rustix::io::Errno;

use super::negotiation::OPERATION_BYTES_MAX;

const MAGIC: u32 = 0x2560_9513;

pub(crate) const REQUEST_BYTES: usize = 28;

/// Command flags.
mod flag {
    pub(super) const FUA: u16 = 1;
    pub(super) const NO_HOLE: u16 = 1 << 1;
    pub(super) const DONT_FRAGMENT: u16 = 1 << 2;
    pub(super) const ONE_EXTENT: u16 = 1 << 3;
}

/// A request, as it stands on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    flags: u16,
    kind: u16,
    /// The client's name for the request.
    pub(crate) cookie: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
}

/// What a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Read,
    Write { durable: bool },
    Disconnect,
    Flush,
    Trim { durable: bool },
    Cache,
    WriteZeroes { may_unmap: bool, durable: bool },
    BlockStatus { one: bool },
}

impl Request {
    /// `None` if this is no request: the client has lost its place in the stream.
    pub(crate) fn parse(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        let [m0, m1, m2, m3, f0, f1, k0, k1, rest @ ..] = *bytes;
        let [c0, c1, c2, c3, c4, c5, c6, c7, o0, o1, o2, o3, o4, o5, o6, o7, l0, l1, l2, l3] = rest;
        (u32::from_be_bytes([m0, m1, m2, m3]) == MAGIC).then_some(Self {
            flags: u16::from_be_bytes([f0, f1]),
            kind: u16::from_be_bytes([k0, k1]),
            cookie: u64::from_be_bytes([c0, c1, c2, c3, c4, c5, c6, c7]),
            offset: u64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]),
            bytes: u32::from_be_bytes([l0, l1, l2, l3]),
        })
    }

    /// What it wants.
    ///
    /// # Errors
    /// [`Errno::INVAL`] for an unknown command, a flag that does not belong to it, and a length that was not offered.
    pub(crate) fn command(&self) -> Result<Command, Errno> {
        let durable = self.has(flag::FUA);
        let (command, flags) = match self.kind {
            0 => (Command::Read, flag::DONT_FRAGMENT),
            1 => (Command::Write { durable }, 0),
            2 => (Command::Disconnect, 0),
            3 => (Command::Flush, 0),
            4 => (Command::Trim { durable }, 0),
            5 => (Command::Cache, 0),
            6 => (Command::WriteZeroes { may_unmap: !self.has(flag::NO_HOLE), durable }, flag::NO_HOLE),
            7 => (Command::BlockStatus { one: self.has(flag::ONE_EXTENT) }, flag::ONE_EXTENT),
            _ => return Err(Errno::INVAL),
        };
        // Clients are known to set FUA anywhere.
        let allowed = flags | flag::FUA;
        let moves_data = matches!(command, Command::Read | Command::Write { .. });
        let too_long = moves_data && self.bytes > OPERATION_BYTES_MAX;
        if self.flags & !allowed != 0 || too_long { Err(Errno::INVAL) } else { Ok(command) }
    }

    /// Bytes that follow it in the stream, whether it makes sense or not.
    pub(crate) fn payload_bytes(&self) -> u32 {
        if self.kind == 1 { self.bytes } else { 0 }
    }

    fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}
