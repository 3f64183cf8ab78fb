//! The logical block provisioning log page (SBC-3): the space of a thin disk.

use crate::{Blocks, FieldPointer, Outcome, Sense, Step, Threshold};

/// The code of the page.
pub const CODE: u8 = 0x0c;

/// The THRESHOLD RESOURCE of the first parameter, equal to the parameter's number.
pub const AVAILABLE_RESOURCE: u8 = 0x01;

const AVAILABLE_LBA_MAPPING_RESOURCE_COUNT: u16 = AVAILABLE_RESOURCE as u16;
const USED_LBA_MAPPING_RESOURCE_COUNT: u16 = 0x0002;

/// A request for the log page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvisioningLog {
    threshold: Threshold,
    parameter_pointer: u16,
    allocation_bytes: u32,
}

pub fn begin(threshold: Threshold, parameter_pointer: u16, allocation_bytes: u32) -> Result<Step, Sense> {
    if parameter_pointer > USED_LBA_MAPPING_RESOURCE_COUNT {
        return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb(5)));
    }
    Ok(Step::ProvisioningLog(ProvisioningLog { threshold, parameter_pointer, allocation_bytes }))
}

impl ProvisioningLog {
    /// Answers for a disk with these used and available blocks.
    #[must_use]
    pub fn respond(&self, used: Blocks, available: Blocks) -> Outcome {
        /// FORMAT AND LINKING 11b: a binary list.
        const BINARY_LIST: u8 = 0x03;
        /// The parameter's own bytes.
        const PARAMETER_BYTES: u8 = 8;
        /// SCOPE: dedicated to this unit; a filesystem's free space would be shared with others.
        const DEDICATED: u8 = 0b01;
        const SHARED: u8 = 0b10;
        let parameters = [
            (AVAILABLE_LBA_MAPPING_RESOURCE_COUNT, available, SHARED),
            (USED_LBA_MAPPING_RESOURCE_COUNT, used, DEDICATED),
        ];
        let mut contents = Vec::new();
        for (code, blocks, scope) in
            parameters.into_iter().filter(|(code, ..)| *code >= self.parameter_pointer)
        {
            contents.extend(code.to_be_bytes());
            contents.extend([BINARY_LIST, PARAMETER_BYTES]);
            contents.extend(self.threshold.sets(blocks).to_be_bytes());
            contents.extend([scope, 0, 0, 0]);
        }
        let [high, low] = u16::try_from(contents.len()).unwrap_or(u16::MAX).to_be_bytes();
        Outcome::parameter_data([&[CODE, 0, high, low], &contents[..]].concat(), self.allocation_bytes)
    }
}
