//! The places of a copy's data on its disk.

use crate::scsi_run::DiskModel;
use netem::Bytes;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Data in equal parts, with holes between them: a disk that is much larger than its contents, for programs that share
/// out a disk by its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extents {
    /// The number of parts.
    pub count: u32,
    /// The distance from the start of one to that of the next.
    pub every: Bytes,
}

impl Extents {
    /// Checks that parts of `size` fit.
    pub(super) fn check(self, size: Bytes) -> Result<(), String> {
        let block_bytes = u64::from(DiskModel::BLOCK_BYTES);
        let Self { count, every } = self;
        if count == 0 || !size.0.is_multiple_of(u64::from(count) * block_bytes) {
            return Err(format!(
                "setup.program.extents.count is {count}, but must divide size, {size}, into parts of whole blocks of \
                 {block_bytes} bytes"
            ));
        }
        if !every.0.is_multiple_of(block_bytes) || every.0 < size.0 / u64::from(count) {
            return Err(format!(
                "setup.program.extents.every is {every}, but must be whole blocks of {block_bytes} bytes, and no less \
                 than a part of size"
            ));
        }
        Ok(())
    }
}

/// The extents of `size` bytes, ascending; one from the beginning if there is no other wish.
pub(super) fn extents_of(size: Bytes, wish: Option<Extents>) -> Vec<Range<u64>> {
    let Extents { count, every } = wish.unwrap_or(Extents { count: 1, every: size });
    let part = size.0 / u64::from(count);
    (0..u64::from(count)).map(|number| number * every.0..number * every.0 + part).collect()
}

/// The holes between extents.
pub(super) fn gaps(extents: &[Range<u64>]) -> impl Iterator<Item = Range<u64>> {
    extents.windows(2).map(|pair| pair[0].end..pair[1].start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_equal_and_their_holes_lie_between_them() {
        let wish = Extents { count: 3, every: Bytes(4096) };
        assert_eq!(wish.check(Bytes(3072)), Ok(()));
        let extents = extents_of(Bytes(3072), Some(wish));
        assert_eq!(extents, [0..1024, 4096..5120, 8192..9216]);
        assert_eq!(gaps(&extents).collect::<Vec<_>>(), [1024..4096, 5120..8192]);
        assert_eq!(extents_of(Bytes(3072), None).first(), Some(&(0..3072)));
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let refusal = |count, every| Extents { count, every: Bytes(every) }.check(Bytes(4096)).unwrap_err();
        assert!(refusal(3, 4096).contains("extents.count is 3"));
        assert!(refusal(0, 4096).contains("extents.count is 0"));
        assert!(refusal(2, 1024).contains("extents.every is 1024B"));
    }
}
