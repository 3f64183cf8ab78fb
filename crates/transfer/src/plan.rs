//! The plan of a copy, made before it does anything. Pure.

use crate::depth::Depth;
use crate::{Identity, ImageFormat, Refusal, Verify, worker::Zeroing};
use block::BUFFER_BYTES_MAX;

/// The user's options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Requests under way at the same time.
    pub requests: usize,
    /// The most of them, if there may be as many as hold twice the path's bandwidth-delay product.
    pub requests_max: Option<usize>,
    /// Bytes of a request; rounded up to whole blocks of both ends.
    pub request_bytes: u64,
    /// Bytes that may be acknowledged and not yet flushed; a flush begins at half of it. Bounds what is written twice
    /// after a loss, and the memory that keeps the data of a stream.
    pub unflushed_bytes_max: u64,
    /// Limit on bandwidth.
    pub limit: Option<crate::Schedule>,
    /// The length that the source must have, if the user gave it.
    pub source_bytes: Option<u64>,
    /// How much is read back.
    pub verify: Verify,
    /// The seed that chooses the sample to verify.
    pub verify_seed: u64,
    /// Allows the copy to destroy what the destination holds.
    pub overwrite: bool,
    /// The user's promise that the destination reads as zeroes everywhere.
    pub destination_is_zero: bool,
    /// The designator that the destination must have, or the source if the destination is a file or a stream.
    pub expect_id: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            // 64 requests of 1 MiB hold the bandwidth-delay product of 10 Gbit/s over 50 ms.
            requests: 64,
            requests_max: None,
            request_bytes: 1 << 20,
            unflushed_bytes_max: 256 << 20,
            limit: None,
            source_bytes: None,
            verify: Verify::Sample,
            verify_seed: 0,
            overwrite: false,
            destination_is_zero: false,
            expect_id: None,
        }
    }
}

/// The facts about both ends from which a plan is made.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) source: Identity,
    pub(crate) destination: Identity,
    /// The length of the source; `None` for a stream.
    pub(crate) source_bytes: Option<u64>,
    pub(crate) source_block_bytes: u64,
    pub(crate) source_format: Option<ImageFormat>,
    /// The size of the destination; `None` if it grows as needed.
    pub(crate) capacity_bytes: Option<u64>,
    pub(crate) destination_block_bytes: u64,
    pub(crate) read_only: bool,
    /// Whether the destination can deallocate and then reads zeroes there.
    pub(crate) deallocates_to_zero: bool,
    /// Whether the destination is a file that does not exist, or is empty.
    pub(crate) is_new: bool,
    /// Whether the destination is a stream.
    pub(crate) is_stream: bool,
    /// Whether the copy can be read back.
    pub(crate) can_verify: bool,
}

/// The plan of a copy.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The disk or stream that is read.
    pub source: Identity,
    /// The disk, file or stream that is written.
    pub destination: Identity,
    /// The known or expected length of the source.
    pub bytes: Option<u64>,
    /// Size of the destination, unless it grows as needed.
    pub capacity_bytes: Option<u64>,
    /// Length of a request.
    pub request_bytes: u64,
    /// Requests under way at the same time, at first.
    pub requests: usize,
    /// The most of them.
    pub requests_max: usize,
    /// How ranges are zeroed; `None` for a stream, to which zeroes are written.
    pub zeroing: Option<Zeroing>,
    /// How much is read back; [`Verify::Off`] if the destination cannot be read.
    pub verify: Verify,
    /// The source's image format, if it is known and not raw.
    pub source_format: Option<ImageFormat>,
    /// The destination's unit of writing, in bytes.
    pub(crate) unit_bytes: u64,
    pub(crate) unflushed_bytes_max: u64,
}

impl Plan {
    pub(crate) fn depth(&self) -> Depth {
        Depth::new(self.requests, self.requests_max)
    }

    pub(crate) fn make(facts: &Facts, options: &Options) -> Result<Self, Refusal> {
        if facts.read_only {
            return Err(Refusal::ReadOnly(facts.destination.clone()));
        }
        let bytes = check_length(facts, options.source_bytes)?;
        let unit_bytes = facts.source_block_bytes.max(facts.destination_block_bytes);
        check_room(facts, bytes)?;
        // The unit and the longest buffer are powers of two, so the buffer holds whole units.
        let request_bytes =
            options.request_bytes.clamp(1, BUFFER_BYTES_MAX as u64).next_multiple_of(unit_bytes);
        let zeroing = match facts {
            Facts { is_stream: true, .. } => None,
            Facts { is_new, .. } if *is_new || options.destination_is_zero => Some(Zeroing::Skip),
            Facts { deallocates_to_zero: true, .. } => Some(Zeroing::Deallocate),
            _ => Some(Zeroing::Write),
        };
        Ok(Self {
            source: facts.source.clone(),
            destination: facts.destination.clone(),
            bytes,
            capacity_bytes: facts.capacity_bytes,
            request_bytes,
            requests: options.requests.max(1),
            requests_max: options.requests_max.unwrap_or(0).max(options.requests).max(1),
            zeroing,
            verify: if facts.can_verify { options.verify } else { Verify::Off },
            source_format: facts.source_format,
            unit_bytes,
            unflushed_bytes_max: options.unflushed_bytes_max.max(1),
        })
    }

    /// Bytes at the end of the destination that keep what they hold: the last block of the copy is filled up with
    /// zeroes.
    #[must_use]
    pub fn untouched_bytes(&self) -> u64 {
        match (self.bytes, self.capacity_bytes) {
            (Some(bytes), Some(capacity_bytes)) => {
                capacity_bytes.saturating_sub(bytes.next_multiple_of(self.unit_bytes))
            }
            _ => 0,
        }
    }
}

/// The length of the source, or the expected length of a stream.
fn check_length(facts: &Facts, expected_bytes: Option<u64>) -> Result<Option<u64>, Refusal> {
    match (facts.source_bytes, expected_bytes) {
        (Some(bytes), Some(expected_bytes)) if bytes != expected_bytes => {
            Err(Refusal::OtherLength { source_name: facts.source.clone(), bytes, expected_bytes })
        }
        (bytes, expected_bytes) => Ok(bytes.or(expected_bytes)),
    }
}

fn check_room(facts: &Facts, bytes: Option<u64>) -> Result<(), Refusal> {
    let needed_bytes = bytes.unwrap_or(0).next_multiple_of(facts.destination_block_bytes);
    match facts.capacity_bytes {
        Some(capacity_bytes) if needed_bytes > capacity_bytes => {
            Err(Refusal::TooSmall { destination: facts.destination.clone(), capacity_bytes, needed_bytes })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            source: Identity::named("a.img"),
            destination: Identity::named("b.img"),
            source_bytes: Some(1 << 20),
            source_block_bytes: 512,
            source_format: None,
            capacity_bytes: Some(1 << 20),
            destination_block_bytes: 512,
            read_only: false,
            deallocates_to_zero: false,
            is_new: false,
            is_stream: false,
            can_verify: true,
        }
    }

    fn zeroing(facts: &Facts, options: &Options) -> Option<Zeroing> {
        Plan::make(facts, options).unwrap().zeroing
    }

    #[test]
    fn a_destination_one_byte_too_small_is_refused() {
        let facts = Facts { source_bytes: Some((1 << 20) + 1), ..facts() };
        let refusal = Plan::make(&facts, &Options::default()).unwrap_err();
        assert!(matches!(
            refusal,
            Refusal::TooSmall { needed_bytes: 1_049_088, capacity_bytes: 1_048_576, .. }
        ));
    }

    #[test]
    fn a_source_of_another_length_than_expected_is_refused() {
        let options = Options { source_bytes: Some(1 << 19), ..Options::default() };
        let refusal = Plan::make(&facts(), &options).unwrap_err();
        assert!(matches!(refusal, Refusal::OtherLength { bytes: 0x10_0000, expected_bytes: 0x8_0000, .. }));
    }

    #[test]
    fn a_stream_that_must_be_longer_than_the_destination_is_refused() {
        let options = Options { source_bytes: Some(1 << 21), ..Options::default() };
        let refusal = Plan::make(&Facts { source_bytes: None, ..facts() }, &options).unwrap_err();
        assert!(matches!(refusal, Refusal::TooSmall { .. }));
    }

    #[test]
    fn a_read_only_destination_is_refused() {
        let refusal = Plan::make(&Facts { read_only: true, ..facts() }, &Options::default()).unwrap_err();
        assert!(matches!(refusal, Refusal::ReadOnly(_)));
    }

    #[test]
    fn zeroes_are_deallocated_only_where_that_reads_as_zero() {
        let options = Options::default();
        assert_eq!(zeroing(&facts(), &options), Some(Zeroing::Write));
        assert_eq!(
            zeroing(&Facts { deallocates_to_zero: true, ..facts() }, &options),
            Some(Zeroing::Deallocate)
        );
    }

    #[test]
    fn zeroes_are_skipped_only_where_the_user_or_the_filesystem_says_so() {
        let trusting = Options { destination_is_zero: true, ..Options::default() };
        assert_eq!(zeroing(&facts(), &trusting), Some(Zeroing::Skip));
        assert_eq!(zeroing(&Facts { is_new: true, ..facts() }, &Options::default()), Some(Zeroing::Skip));
        assert_eq!(zeroing(&Facts { is_stream: true, ..facts() }, &trusting), None);
    }

    #[test]
    fn requests_are_whole_blocks_of_both_ends() {
        let facts = Facts { destination_block_bytes: 4096, ..facts() };
        let options = Options { request_bytes: 5000, ..Options::default() };
        let plan = Plan::make(&facts, &options).unwrap();
        assert_eq!((plan.request_bytes, plan.unit_bytes), (8192, 4096));
    }

    #[test]
    fn what_cannot_be_read_back_is_not_verified() {
        let plan = Plan::make(&Facts { can_verify: false, ..facts() }, &Options::default()).unwrap();
        assert_eq!(plan.verify, Verify::Off);
    }
}
