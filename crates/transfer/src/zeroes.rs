//! Tests whether data is all zero.

/// The size of a lump in bytes, which the compiler compares with a few vector instructions.
const LUMP_BYTES: usize = 64;

/// Whether every byte is zero. Decides within the first lump for nearly all data.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    let (lumps, rest) = bytes.as_chunks::<LUMP_BYTES>();
    lumps.iter().all(|lump| lump.iter().fold(0, |sum, byte| sum | byte) == 0)
        && rest.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::is_zero;

    #[test]
    fn one_bit_anywhere_is_something() {
        let mut bytes = [0; 3 * 64 + 5];
        assert!(is_zero(&bytes));
        for at in 0..bytes.len() {
            bytes[at] = 0x80;
            assert!(!is_zero(&bytes));
            bytes[at] = 0;
        }
    }
}
