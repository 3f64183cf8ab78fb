//! iSCSI names of targets (RFC 7143 §4.2.7).

use serde::Deserialize;
use session::name::InvalidName;
use std::fmt;
use std::str::FromStr;

/// A valid iSCSI name, in lower case as comparisons require.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct IscsiName(String);

impl FromStr for IscsiName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        session::name::well_formed(text).map(Self)
    }
}

impl TryFrom<String> for IscsiName {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl IscsiName {
    /// The name in lower case, as it is compared and sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IscsiName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
