//! The logical units of a target (SPC-4 §6.33).

use super::{u32_at, u64_at};

/// The eight-byte LUNs of a REPORT LUNS answer, as many as it contains.
#[must_use]
pub fn lun_list(bytes: &[u8]) -> Option<Vec<u64>> {
    const HEADER_BYTES: usize = 8;
    const LUN_BYTES: usize = 8;
    let told = usize::try_from(u32_at(bytes, 0)?).ok()?.checked_add(HEADER_BYTES)?;
    let body = bytes.get(HEADER_BYTES..told.min(bytes.len()))?;
    Some(body.chunks_exact(LUN_BYTES).filter_map(|lun| u64_at(lun, 0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_longer_than_its_bytes_is_cut() {
        let mut bytes = vec![0, 0, 1, 0, 0, 0, 0, 0];
        bytes.extend(7u64.to_be_bytes());
        bytes.extend([1, 2, 3]);
        assert_eq!(lun_list(&bytes), Some(vec![7]));
    }
}
