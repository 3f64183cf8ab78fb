//! Memory of a client's budget.

use crate::UsageError;
use block::{Buffer, Payload, Slab};

/// The longest buffer of zeroes. Longer ranges are written with it again and again.
const ZEROES_BYTES_MAX: usize = 1 << 20;

/// A buffer of this length.
pub(crate) fn allocate(slab: &Slab, bytes: usize) -> Result<Buffer, UsageError> {
    let budget_bytes = slab.budget_bytes();
    slab.allocate(bytes).ok_or(UsageError::NoBuffer { bytes, budget_bytes })
}

/// As many zeroes as this, or as the longest buffer has.
pub(crate) fn zeroes(slab: &Slab, bytes: u64) -> Result<Payload, UsageError> {
    let bytes = usize::try_from(bytes).unwrap_or(ZEROES_BYTES_MAX).min(ZEROES_BYTES_MAX);
    let mut buffer = allocate(slab, bytes)?;
    buffer.fill(0);
    Ok(buffer.share())
}
