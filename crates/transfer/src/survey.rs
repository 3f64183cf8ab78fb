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

/// The format whose signature the device bears. All windows are read at once, because reading them in turn would take a
/// round trip each.
pub(crate) async fn occupant(disk: &Disk) -> Result<Option<&'static str>, Error> {
    let windows = signature::windows(disk.bytes(), disk.block_bytes());
    let charged_bytes =
        |window: &ByteRange| window.bytes.next_power_of_two().max(BUFFER_ALIGNMENT_BYTES as u64);
    // A window that reaches beyond the last block needs a second buffer.
    let budget_bytes = windows.iter().map(|window| charged_bytes(window) * 2).sum::<u64>();
    let slab = Slab::new(usize::try_from(budget_bytes).unwrap_or(0));
    let buffers = try_join_all(windows.iter().map(|window| disk.read(&slab, *window))).await?;
    let contents = windows.into_iter().zip(buffers.iter().map(|buffer| &buffer[..])).collect();
    let found = signature::find(&Contents::new(disk.bytes(), contents));
    Ok(found.map(|signature| signature.name))
}

/// Whether the backend can deallocate and then reads zeroes there.
pub(crate) fn deallocates_to_zero(backend: &dyn Backend) -> bool {
    backend.properties().thin.is_some_and(|thin| thin.reads_zero)
}
