//! Asymmetric logical unit access (SPC-4 §5.15, §6.37).

use super::{u16_at, u32_at};
use core::fmt;

/// The access to a unit through a group of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AsymmetricAccessState {
    /// The best path.
    ActiveOptimized,
    /// A path through another controller.
    ActiveNonOptimized,
    /// Only a few commands are answered.
    Standby,
    /// Hardly any command is answered.
    Unavailable,
    /// Changing to another state.
    Transitioning,
    /// A state that this crate does not know.
    Other(u8),
}

impl fmt::Display for AsymmetricAccessState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ActiveOptimized => "active/optimized",
            Self::ActiveNonOptimized => "active/non-optimized",
            Self::Standby => "standby",
            Self::Unavailable => "unavailable",
            Self::Transitioning => "transitioning",
            Self::Other(state) => return write!(formatter, "in state {state:#x}"),
        })
    }
}

/// One group of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetPortGroup {
    /// Its number, by which designators on page 83h name it.
    pub group: u16,
    /// The access to the unit through it.
    pub state: AsymmetricAccessState,
}

/// Parses the answer to REPORT TARGET PORT GROUPS.
#[must_use]
pub fn target_port_groups(bytes: &[u8]) -> Option<Vec<TargetPortGroup>> {
    const HEADER_BYTES: usize = 4;
    const DESCRIPTOR_BYTES: usize = 8;
    const PORT_BYTES: usize = 4;
    let told = usize::try_from(u32_at(bytes, 0)?).ok()?.checked_add(HEADER_BYTES)?;
    let mut rest = bytes.get(HEADER_BYTES..told.min(bytes.len()))?;
    let mut groups = Vec::new();
    while let Some([state, _, _, _, _, _, _, ports]) = super::array_at(rest, 0) {
        groups.push(TargetPortGroup {
            group: u16_at(rest, 2)?,
            state: match state & 0x0f {
                0x0 => AsymmetricAccessState::ActiveOptimized,
                0x1 => AsymmetricAccessState::ActiveNonOptimized,
                0x2 => AsymmetricAccessState::Standby,
                0x3 => AsymmetricAccessState::Unavailable,
                0xf => AsymmetricAccessState::Transitioning,
                other => AsymmetricAccessState::Other(other),
            },
        });
        rest = rest.get(DESCRIPTOR_BYTES + PORT_BYTES * usize::from(ports)..).unwrap_or_default();
    }
    Some(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_several_ports_are_read_one_after_another() {
        let mut bytes = vec![0, 0, 0, 28];
        bytes.extend([0x80, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]);
        bytes.extend([0x02, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 3]);
        let expected = vec![
            TargetPortGroup { group: 1, state: AsymmetricAccessState::ActiveOptimized },
            TargetPortGroup { group: 7, state: AsymmetricAccessState::Standby },
        ];
        assert_eq!(target_port_groups(&bytes), Some(expected));
    }
}
