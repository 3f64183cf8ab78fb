//! Whether a path may carry I/O to a logical unit, and when that must be asked again.

use crate::ReservationHolder;
use core::fmt;
use scsi::AdditionalSense;
use scsi::client::{AsymmetricAccessState, Designator, SenseData};

/// A logical unit as one path shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitView {
    /// Its identity (VPD page 83h).
    pub designator: Option<Designator>,
    /// Its capacity in blocks.
    pub blocks: u64,
    /// The length of a block.
    pub block_bytes: u32,
    /// The access state of this path; `None` where access is symmetric.
    pub access: Option<AsymmetricAccessState>,
    /// The holder of a persistent reservation, unless this path is registered for one of this initiator's own.
    pub reserved: Option<ReservationHolder>,
}

/// The reason why a path carries no I/O.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathRefusal {
    /// It leads elsewhere.
    #[error("the path leads to another logical unit: {} instead of {}", Name(found), Name(expected))]
    OtherUnit { found: Option<Designator>, expected: Option<Designator> },
    /// The unit has changed, or one of the two views is wrong.
    #[error("the path shows {found} blocks of {found_bytes} bytes instead of {expected} of {expected_bytes}")]
    OtherCapacity { found: u64, found_bytes: u32, expected: u64, expected_bytes: u32 },
    /// The unit is reserved by another initiator, or for another path of this one: whoever holds it shuts the others
    /// out.
    #[error("the logical unit is reserved by {0}")]
    Reserved(ReservationHolder),
    /// The path leads to the right unit, but not optimally (SPC-4 §5.15).
    #[error("the path is not active/optimized but {0}")]
    NotOptimized(AsymmetricAccessState),
}

/// A unit's name, for messages.
pub(crate) struct Name<'a>(pub &'a Option<Designator>);

impl fmt::Display for Name<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => name.fmt(formatter),
            None => formatter.write_str("a unit without a name"),
        }
    }
}

/// Compares a path's view with the first path's. A reinstated path must match it too.
///
/// A unit with a designator may have grown. The size of one without is all that is known of it, and must be equal.
///
/// # Errors
/// The reason why the path must not carry I/O to this unit.
pub fn accept_path(first: &UnitView, offered: &UnitView) -> Result<(), PathRefusal> {
    if offered.designator != first.designator {
        let (found, expected) = (offered.designator.clone(), first.designator.clone());
        return Err(PathRefusal::OtherUnit { found, expected });
    }
    let may_grow = first.designator.is_some();
    let is_large_enough =
        if may_grow { offered.blocks >= first.blocks } else { offered.blocks == first.blocks };
    if !is_large_enough || offered.block_bytes != first.block_bytes {
        return Err(PathRefusal::OtherCapacity {
            found: offered.blocks,
            found_bytes: offered.block_bytes,
            expected: first.blocks,
            expected_bytes: first.block_bytes,
        });
    }
    if let Some(holder) = &offered.reserved {
        return Err(PathRefusal::Reserved(holder.clone()));
    }
    match offered.access {
        None | Some(AsymmetricAccessState::ActiveOptimized) => Ok(()),
        Some(state) => Err(PathRefusal::NotOptimized(state)),
    }
}

/// The logical units of one path that may no longer be the ones they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// The unit that says so.
    Unit,
    /// The reservations of the unit that says so.
    Reservations,
    /// Every unit of the target: LUNs may lead to other units.
    AllUnits,
}

/// What a unit attention says about the identity, the size or the reservation of units (SPC-4 annex F). `None` if
/// nothing.
#[must_use]
pub fn change_told(sense: &SenseData) -> Option<Change> {
    if !sense.is_unit_attention() {
        return None;
    }
    match sense.additional {
        AdditionalSense::RESERVATIONS_PREEMPTED
        | AdditionalSense::RESERVATIONS_RELEASED
        | AdditionalSense::REGISTRATIONS_PREEMPTED => Some(Change::Reservations),
        AdditionalSense::NOT_READY_TO_READY_CHANGE_MEDIUM_MAY_HAVE_CHANGED
        | AdditionalSense::CAPACITY_DATA_HAS_CHANGED
        | AdditionalSense::INQUIRY_DATA_HAS_CHANGED
        | AdditionalSense::DEVICE_IDENTIFIER_CHANGED => Some(Change::Unit),
        AdditionalSense::REPORTED_LUNS_DATA_HAS_CHANGED => Some(Change::AllUnits),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scsi::client::{Association, DesignatorKind};

    fn view() -> UnitView {
        let designator = Designator {
            association: Association::LogicalUnit,
            kind: DesignatorKind::Naa,
            bytes: vec![0x60, 1],
        };
        UnitView { designator: Some(designator), blocks: 100, block_bytes: 512, access: None, reserved: None }
    }

    #[test]
    fn a_path_to_the_same_unit_is_taken() {
        let optimized = UnitView { access: Some(AsymmetricAccessState::ActiveOptimized), ..view() };
        assert_eq!(accept_path(&view(), &optimized), Ok(()));
    }

    #[test]
    fn a_path_to_another_unit_is_refused() {
        let mut other = view();
        other.designator.as_mut().unwrap().bytes[1] = 2;
        let refusal = accept_path(&view(), &other).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "the path leads to another logical unit: naa.6002 instead of naa.6001"
        );
    }

    #[test]
    fn paths_to_a_unit_without_a_name_must_show_the_same_size() {
        let nameless = UnitView { designator: None, ..view() };
        assert_eq!(accept_path(&nameless, &nameless), Ok(()));
        for other in [
            UnitView { blocks: 101, ..nameless.clone() },
            UnitView { blocks: 99, ..nameless.clone() },
            UnitView { block_bytes: 4096, ..nameless.clone() },
        ] {
            assert!(matches!(accept_path(&nameless, &other), Err(PathRefusal::OtherCapacity { .. })));
        }
    }

    #[test]
    fn a_unit_that_lost_its_name_is_another() {
        let nameless = UnitView { designator: None, ..view() };
        assert!(matches!(accept_path(&view(), &nameless), Err(PathRefusal::OtherUnit { .. })));
    }

    #[test]
    fn a_named_unit_may_grow_and_not_shrink() {
        let grown = UnitView { blocks: 101, ..view() };
        assert_eq!(accept_path(&view(), &grown), Ok(()));
        let shrunk = UnitView { blocks: 99, ..view() };
        assert!(matches!(accept_path(&view(), &shrunk), Err(PathRefusal::OtherCapacity { .. })));
        let longer = UnitView { block_bytes: 4096, ..view() };
        assert!(matches!(accept_path(&view(), &longer), Err(PathRefusal::OtherCapacity { .. })));
    }

    #[test]
    fn a_unit_attention_about_identity_or_size_puts_units_in_doubt() {
        let told = |key, code, qualifier| {
            let additional = AdditionalSense { code, qualifier };
            change_told(&SenseData { key, additional, information: None, deferred: false })
        };
        for (code, qualifier) in [(0x28, 0), (0x2a, 9), (0x3f, 3), (0x3f, 5)] {
            assert_eq!(told(6, code, qualifier), Some(Change::Unit));
            assert_eq!(told(5, code, qualifier), None, "no unit attention");
        }
        assert_eq!(told(6, 0x3f, 0x0e), Some(Change::AllUnits));
        assert_eq!(told(6, 0x29, 0), None);
    }

    #[test]
    fn a_reserved_unit_has_one_path() {
        let holder = ReservationHolder { key: scsi::ReservationKey(1), port: None };
        let reserved = UnitView { reserved: Some(holder.clone()), ..view() };
        assert_eq!(accept_path(&view(), &reserved), Err(PathRefusal::Reserved(holder)));
    }

    #[test]
    fn a_path_through_the_wrong_controller_is_refused() {
        let standby = UnitView { access: Some(AsymmetricAccessState::Standby), ..view() };
        let expected = PathRefusal::NotOptimized(AsymmetricAccessState::Standby);
        assert_eq!(accept_path(&view(), &standby), Err(expected));
    }
}
