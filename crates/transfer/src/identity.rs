//! The identity of a source or destination.

use std::fmt;

/// The name by which the user calls a device, and the device's own designator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// A path, a URL, or `-`.
    pub name: String,
    /// The device's own designator, `naa.…` or `eui.…` in lower case, if it has one (SPC-4 §7.8.6, VPD page 83h).
    pub designator: Option<String>,
}

/// A file or device of this machine by its number, whatever path leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Device { major: u32, minor: u32 },
    File { device: u64, inode: u64 },
}

impl Identity {
    /// An identity with a name only.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), designator: None }
    }

    /// Whether the device is the one that `expected` names; letter case does not matter.
    #[must_use]
    pub fn is(&self, expected: &str) -> bool {
        self.designator.as_ref().is_some_and(|designator| designator.eq_ignore_ascii_case(expected.trim()))
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        match &self.designator {
            Some(designator) => write!(formatter, " ({designator})"),
            None => Ok(()),
        }
    }
}
