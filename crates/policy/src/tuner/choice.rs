//! The tuners that there are, by the names that a user gives.

use super::{Apt2010, Guided, Terms, Tuner};
use core::fmt;
use core::str::FromStr;

/// A tuner by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TunerChoice {
    /// [`Guided`].
    #[default]
    Guided,
    /// [`Apt2010`], for comparison.
    Apt2010,
}

const NAMES: [(TunerChoice, &str); 2] = [(TunerChoice::Guided, "guided"), (TunerChoice::Apt2010, "apt2010")];

/// A name that no tuner has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no tuner {0:?}: use \"guided\" or \"apt2010\"")]
pub struct UnknownTuner(String);

impl TunerChoice {
    /// The tuner, without any experience.
    #[must_use]
    pub fn begin(self, terms: Terms) -> Box<dyn Tuner> {
        match self {
            Self::Guided => Box::new(Guided::new(terms)),
            Self::Apt2010 => Box::new(Apt2010::new(terms)),
        }
    }
}

impl FromStr for TunerChoice {
    type Err = UnknownTuner;

    fn from_str(name: &str) -> Result<Self, UnknownTuner> {
        let known = NAMES.iter().find(|(_, known)| known.eq_ignore_ascii_case(name));
        known.map(|(choice, _)| *choice).ok_or_else(|| UnknownTuner(name.to_owned()))
    }
}

impl fmt::Display for TunerChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(choice, _)| choice == self).map_or("", |(_, name)| name);
        formatter.write_str(name)
    }
}
