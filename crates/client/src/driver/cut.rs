//! Cuts a command in two when it is placed, so that each connection gets what it moves in a bounded time.
//!
//! A command is bound to its connection with all its data. How much a connection can carry is known only when the
//! command is about to leave, so a READ or WRITE is as long as its operation until then.

use super::Driver;
use super::request::Request;
use super::slots::RequestId;
use pdu::Cdb;
use scsi::Extent;
use scsi::client::{CdbBytes, with_blocks};
use session::initiator::Data;
use session::seam::PayloadRef;

/// A command's blocks, and its memory for them.
#[derive(Clone, Copy)]
struct Part {
    extent: Extent,
    data: Data,
}

impl Driver {
    /// Shortens a command to at most `bytes_max` of data, and at least one block. Returns a new command for the rest;
    /// `None` if there is no rest, or if the command cannot be cut.
    pub(super) fn cut(&mut self, key: RequestId, bytes_max: u64) -> Option<RequestId> {
        let request = &self.requests[key];
        let (first, rest) = parts(request, bytes_max)?;
        let (first_cdb, rest_cdb) = (cdb_for(request, first.extent)?, cdb_for(request, rest.extent)?);
        let rest = Request { cdb: rest_cdb, data: rest.data, extent: rest.extent, ..request.clone() };
        self.operations[rest.operation].pieces += 1;
        let request = &mut self.requests[key];
        (request.cdb, request.data, request.extent) = (first_cdb, first.data, first.extent);
        Some(self.requests.insert(rest))
    }
}

/// Whether a command reads or writes several consecutive blocks over any path.
pub(super) fn may_be_cut(request: &Request) -> bool {
    request.exact && request.path.is_none() && request.extent.blocks.0 > 1
}

fn parts(request: &Request, bytes_max: u64) -> Option<(Part, Part)> {
    let bytes = request.data.out_bytes() + request.data.in_bytes();
    if !may_be_cut(request) || u64::from(bytes) <= bytes_max {
        return None;
    }
    let Extent { lba, blocks } = request.extent;
    let block_bytes = u64::from(bytes) / blocks.0;
    let first_blocks = (bytes_max / block_bytes.max(1)).clamp(1, blocks.0 - 1);
    let first_bytes = u32::try_from(first_blocks * block_bytes).ok()?;
    let (first, rest) = halves(request.data, first_bytes);
    Some((
        Part { extent: Extent::new(lba.0, first_blocks), data: first },
        Part { extent: Extent::new(lba.0 + first_blocks, blocks.0 - first_blocks), data: rest },
    ))
}

fn halves(data: Data, first_bytes: u32) -> (Data, Data) {
    let split = |whole: PayloadRef| {
        let first = PayloadRef { bytes: first_bytes, ..whole };
        let offset_bytes = whole.offset_bytes + first_bytes;
        (first, PayloadRef { offset_bytes, bytes: whole.bytes - first_bytes, ..whole })
    };
    match data {
        Data::In(whole) => {
            let (first, rest) = split(whole);
            (Data::In(first), Data::In(rest))
        }
        Data::Out(whole) => {
            let (first, rest) = split(whole);
            (Data::Out(first), Data::Out(rest))
        }
        Data::None => (Data::None, Data::None),
    }
}

fn cdb_for(request: &Request, extent: Extent) -> Option<Cdb> {
    let cdb: CdbBytes = request.cdb.bytes().try_into().ok()?;
    with_blocks(cdb, extent).map(Cdb::from)
}

#[cfg(test)]
mod tests {
    use super::super::slots::OperationId;
    use super::*;
    use pdu::{BufferId, Lun};
    use scsi::client;

    /// A write of the blocks 10 to 25, of 512 bytes each, from byte 1000 of a buffer.
    fn write() -> Request {
        let memory = PayloadRef { buffer: BufferId(1), offset_bytes: 1000, bytes: 16 * 512 };
        Request {
            cdb: client::write_16(scsi::Lba(10), 16, true).into(),
            data: Data::Out(memory),
            extent: Extent::new(10, 16),
            exact: true,
            ..Request::new(OperationId::from(0), Lun(0))
        }
    }

    /// First block and number of blocks, offset and length in memory.
    type Numbers = (u64, u64, u32, u32);

    fn numbers(part: &Part) -> Numbers {
        let Data::Out(memory) = part.data else { panic!("a write moves data out") };
        (part.extent.lba.0, part.extent.blocks.0, memory.offset_bytes, memory.bytes)
    }

    fn cut(bytes_max: u64) -> Option<(Numbers, Numbers)> {
        parts(&write(), bytes_max).map(|(first, rest)| (numbers(&first), numbers(&rest)))
    }

    #[test]
    fn a_command_is_cut_between_two_blocks_and_in_memory_at_the_same_place() {
        assert_eq!(cut(3000), Some(((10, 5, 1000, 2560), (15, 11, 3560, 5632))));
    }

    #[test]
    fn at_least_one_block_goes() {
        assert_eq!(cut(0), Some(((10, 1, 1000, 512), (11, 15, 1512, 7680))));
    }

    #[test]
    fn a_command_that_fits_stays_whole() {
        assert_eq!(cut(16 * 512), None);
        assert_eq!(cut(u64::MAX), None);
    }

    #[test]
    fn each_part_keeps_the_rest_of_its_command() {
        let part = cdb_for(&write(), Extent::new(15, 11));
        assert_eq!(part, Some(client::write_16(scsi::Lba(15), 11, true).into()));
    }

    #[test]
    fn a_command_whose_data_is_more_than_its_blocks_is_not_cut() {
        assert!(!may_be_cut(&Request { exact: false, ..write() }));
    }
}
