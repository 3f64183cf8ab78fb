//! Whether somebody holds a persistent reservation (SPC-4 §6.15.3).

use super::u32_at;

/// Whether the answer to READ RESERVATION tells of one: its ADDITIONAL LENGTH is not zero then.
#[must_use]
pub fn is_reserved(bytes: &[u8]) -> Option<bool> {
    const ADDITIONAL_LENGTH: usize = 4;
    u32_at(bytes, ADDITIONAL_LENGTH).map(|length| length != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_makes_the_answer_longer() {
        assert_eq!(is_reserved(&[0, 0, 0, 9, 0, 0, 0, 0]), Some(false));
        assert_eq!(is_reserved(&[0, 0, 0, 9, 0, 0, 0, 16, 1]), Some(true));
        assert_eq!(is_reserved(&[0, 0]), None);
    }
}
