//! Surveys a device without changing it.

use crate::disk::Disk;
use crate::signature::Contents;
use crate::{Error, signature};
use block::{BUFFER_ALIGNMENT_BYTES, Backend, ByteRange, ExtentState, Operation, Slab};
use futures_util::future::try_join_all;

/// The most requests for extents, each of which may take a round trip.
const QUESTIONS_MAX: usize = 256;

/// How much of a source holds data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Bytes that may hold data.
    pub data_bytes: u64,
    /// Bytes known to be zero.
    pub zero_bytes: u64,
    /// Bytes whose state is unknown, because the source is too fragmented or cannot report its extents.
    pub unknown_bytes: u64,
}

/// How much of a disk is allocated.
pub(crate) async fn extents(disk: &Disk) -> Survey {
    let end = disk.backend.properties().bytes();
    let mut survey = Survey { data_bytes: disk.tail.len() as u64, ..Survey::default() };
    let mut offset = 0;
    for _ in 0..QUESTIONS_MAX {
        let answer = disk.backend.submit(Operation::Extents { offset, bytes: end - offset }).await;
        let Ok(extents) = answer.into_extents() else { break };
        for extent in &extents {
            match extent.state {
                ExtentState::Zero => survey.zero_bytes += extent.range.bytes,
                ExtentState::Data | ExtentState::Unspecified => survey.data_bytes += extent.range.bytes,
            }
        }
        match extents.last() {
            Some(last) if last.range.end() > offset && last.range.end() < end => offset = last.range.end(),
            Some(last) => {
                offset = last.range.end().min(end);
                break;
            }
            None => break,
        }
    }
    survey.unknown_bytes = end - offset;
    survey
}

/// The longest read of a survey. Several connections share the reads of a long window, and each of them brings its part
/// in the first window that TCP sends (RFC 6928: 14 600 bytes).
const PART_BYTES: u64 = 8 << 10;

/// The format whose signature the device bears. All windows are read at once, because reading them in turn would take a
/// round trip each.
pub(crate) async fn occupant(disk: &Disk) -> Result<Option<&'static str>, Error> {
    let windows = signature::windows(disk.bytes(), disk.block_bytes());
    let charged_bytes = |part: ByteRange| part.bytes.next_power_of_two().max(BUFFER_ALIGNMENT_BYTES as u64);
    let parts: Vec<_> = windows.iter().map(|window| parts(disk, *window)).collect();
    // A part that reaches beyond the last block needs a second buffer.
    let budget_bytes = parts.iter().flatten().map(|part| charged_bytes(*part) * 2).sum::<u64>();
    let slab = Slab::new(usize::try_from(budget_bytes).unwrap_or(0));
    let read = try_join_all(parts.iter().map(|parts| read_all(disk, &slab, parts))).await?;
    let contents = windows.into_iter().zip(read.iter().map(Vec::as_slice)).collect();
    let found = signature::find(&Contents::new(disk.bytes(), contents));
    Ok(found.map(|signature| signature.name))
}

/// Reads parts that follow each other.
async fn read_all(disk: &Disk, slab: &Slab, parts: &[ByteRange]) -> Result<Vec<u8>, Error> {
    let read = try_join_all(parts.iter().map(|part| disk.read(slab, *part))).await?;
    Ok(read.iter().map(|part| &part[..]).collect::<Vec<_>>().concat())
}

/// The reads of a window, of whole blocks.
fn parts(disk: &Disk, window: ByteRange) -> Vec<ByteRange> {
    let part_bytes = PART_BYTES.next_multiple_of(disk.block_bytes().max(1));
    let offsets = (window.offset..window.end()).step_by(usize::try_from(part_bytes).unwrap_or(usize::MAX));
    offsets.map(|offset| ByteRange { offset, bytes: part_bytes.min(window.end() - offset) }).collect()
}

/// Whether the backend can deallocate and then reads zeroes there.
pub(crate) fn deallocates_to_zero(backend: &dyn Backend) -> bool {
    backend.properties().thin.is_some_and(|thin| thin.reads_zero)
}
