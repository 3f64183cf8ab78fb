//! The commands' needs of the medium, which may be absent or protected (SBC-3).

use crate::operation_code as code;

/// A command's need of the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MediumAccess {
    /// None: it concerns the unit, not the medium.
    None,
    /// A medium: it reads blocks or queries them.
    Read,
    /// A writable medium.
    Write,
}

impl MediumAccess {
    /// The need of this command. A command that no disk here implements needs none, since it is refused.
    #[must_use]
    pub fn of(cdb: &[u8]) -> Self {
        let Some(operation_code) = cdb.first() else { return Self::None };
        match *operation_code {
            code::TEST_UNIT_READY
            | code::READ_6
            | code::READ_CAPACITY_10
            | code::READ_10
            | code::VERIFY_10
            | code::PRE_FETCH_10
            | code::SYNCHRONIZE_CACHE_10
            | code::READ_DEFECT_DATA_10
            | code::READ_16
            | code::VERIFY_16
            | code::PRE_FETCH_16
            | code::SYNCHRONIZE_CACHE_16
            | code::SERVICE_ACTION_IN_16
            | code::READ_12
            | code::VERIFY_12
            | code::READ_DEFECT_DATA_12
            // It may write to another unit, whose protection its executor checks.
            | code::EXTENDED_COPY => Self::Read,
            code::WRITE_6
            | code::WRITE_10
            | code::WRITE_AND_VERIFY_10
            | code::WRITE_SAME_10
            | code::UNMAP
            | code::COMPARE_AND_WRITE
            | code::WRITE_16
            | code::OR_WRITE_16
            | code::WRITE_AND_VERIFY_16
            | code::WRITE_SAME_16
            | code::WRITE_12
            | code::WRITE_AND_VERIFY_12 => Self::Write,
            _ => Self::None,
        }
    }
}
