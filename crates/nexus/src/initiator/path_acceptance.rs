//! Whether a path may carry I/O to a logical unit.

use core::fmt;
use scsi::client::{AsymmetricAccessState, Designator};

/// A logical unit as one path shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitView {
    /// Who it is (VPD page 83h).
    pub designator: Option<Designator>,
    /// Its capacity in blocks.
    pub blocks: u64,
    /// Length of a block.
    pub block_bytes: u32,
    /// How well this path reaches it; `None` where access is symmetric.
    pub access: Option<AsymmetricAccessState>,
    /// Somebody, perhaps this initiator, holds a persistent reservation: it belongs to one nexus.
    pub reserved: bool,
}

/// Why a path carries no I/O.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathRefusal {
    /// A second path cannot be proven to lead to the same unit.
    #[error("the logical unit has no designator (VPD page 83h) that could prove the path")]
    NoDesignator,
    /// It leads elsewhere.
    #[error("the path leads to another logical unit: {} instead of {}", Name(found), Name(expected))]
    OtherUnit {
        /// Who is there.
        found: Option<Designator>,
        /// Who should be.
        expected: Option<Designator>,
    },
    /// The unit has changed, or one of the two views is wrong.
    #[error("the path shows {found} blocks of {found_bytes} bytes instead of {expected} of {expected_bytes}")]
    OtherCapacity {
        /// Blocks on this path.
        found: u64,
        /// Their length.
        found_bytes: u32,
        /// Blocks expected.
        expected: u64,
        /// Their length.
        expected_bytes: u32,
    },
    /// The unit is reserved for one nexus, so that another path would be shut out, or shut the first one out.
    #[error("the logical unit has a persistent reservation, which holds for one path")]
    Reserved,
    /// It leads to the right unit, but badly (SPC-4 §5.15).
    #[error("the path is not active/optimized but {0:?}")]
    NotOptimized(AsymmetricAccessState),
}

struct Name<'a>(&'a Option<Designator>);

impl fmt::Display for Name<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => name.fmt(formatter),
            None => formatter.write_str("a unit without name"),
        }
    }
}

/// Compares what a path shows with what the first path showed. A path that was reinstated is held to the same.
///
/// # Errors
/// Why the path must not carry I/O to this unit.
pub fn accept_path(first: &UnitView, offered: &UnitView) -> Result<(), PathRefusal> {
    if offered.designator != first.designator {
        let (found, expected) = (offered.designator.clone(), first.designator.clone());
        return Err(PathRefusal::OtherUnit { found, expected });
    }
    if offered.designator.is_none() {
        return Err(PathRefusal::NoDesignator);
    }
    if (offered.blocks, offered.block_bytes) != (first.blocks, first.block_bytes) {
        return Err(PathRefusal::OtherCapacity {
            found: offered.blocks,
            found_bytes: offered.block_bytes,
            expected: first.blocks,
            expected_bytes: first.block_bytes,
        });
    }
    if offered.reserved {
        return Err(PathRefusal::Reserved);
    }
    match offered.access {
        None | Some(AsymmetricAccessState::ActiveOptimized) => Ok(()),
        Some(state) => Err(PathRefusal::NotOptimized(state)),
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
        UnitView {
            designator: Some(designator),
            blocks: 100,
            block_bytes: 512,
            access: None,
            reserved: false,
        }
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
    fn a_unit_without_a_name_has_one_path() {
        let nameless = UnitView { designator: None, ..view() };
        assert_eq!(accept_path(&nameless, &nameless), Err(PathRefusal::NoDesignator));
    }

    #[test]
    fn a_path_that_shows_another_size_is_refused() {
        let grown = UnitView { blocks: 101, ..view() };
        assert!(matches!(accept_path(&view(), &grown), Err(PathRefusal::OtherCapacity { .. })));
        let longer = UnitView { block_bytes: 4096, ..view() };
        assert!(matches!(accept_path(&view(), &longer), Err(PathRefusal::OtherCapacity { .. })));
    }

    #[test]
    fn a_reserved_unit_has_one_path() {
        let reserved = UnitView { reserved: true, ..view() };
        assert_eq!(accept_path(&view(), &reserved), Err(PathRefusal::Reserved));
    }

    #[test]
    fn a_path_through_the_wrong_controller_is_refused() {
        let standby = UnitView { access: Some(AsymmetricAccessState::Standby), ..view() };
        let expected = PathRefusal::NotOptimized(AsymmetricAccessState::Standby);
        assert_eq!(accept_path(&view(), &standby), Err(expected));
    }
}
