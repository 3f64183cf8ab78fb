//! What the kernel offers.

use crate::{Control, Error, kernel};
use framing::Congestion;
use std::fmt;
use std::fs;

/// The congestion controls of a network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// What a socket has if nothing is chosen.
    pub default: String,
    /// What any user may choose.
    pub allowed: Vec<String>,
    /// What root may choose.
    pub available: Vec<String>,
}

impl Offered {
    /// Those of this thread's network namespace; none if that cannot be read.
    #[must_use]
    pub fn here() -> Self {
        let setting = |name| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
        let list = |name| setting(name).split_whitespace().map(str::to_owned).collect();
        Self {
            default: setting("tcp_congestion_control").trim().to_owned(),
            allowed: list("tcp_allowed_congestion_control"),
            available: list("tcp_available_congestion_control"),
        }
    }

    /// Whether any user may choose the one of this name.
    #[must_use]
    pub fn is_allowed(&self, name: &str) -> bool {
        self.allowed.iter().any(|allowed| allowed == name)
    }

    /// Whether there is one of this name.
    #[must_use]
    pub fn is_available(&self, name: &str) -> bool {
        self.available.iter().any(|available| available == name)
    }

    /// Puts one of the kernel's own in the place of one of ours that cannot be used here, and warns.
    pub fn settle(&self, chosen: &mut Option<Congestion>) {
        let Some(congestion) = chosen.take() else { return };
        let (congestion, instead) = self.or_instead(congestion);
        if let Some(instead) = instead {
            tracing::warn!("{instead}");
        }
        *chosen = Some(congestion);
    }

    fn or_instead(&self, chosen: Congestion) -> (Congestion, Option<Instead>) {
        let Some(control) = Control::named(&chosen.name) else { return (chosen, None) };
        let usable = match self.is_available(control.name()) {
            true if control.has_groups() => kernel::check_groups(),
            true => Ok(()),
            false => Err(Error::NotLoaded(control)),
        };
        match usable {
            Ok(()) => (chosen, None),
            Err(error) => {
                let instead = Instead { control, error, instead: self.instead_of(control) };
                (Congestion::named(instead.instead), Some(instead))
            }
        }
    }

    fn instead_of(&self, control: Control) -> &'static str {
        if control != Control::Reno && self.is_available(CUBIC) { CUBIC } else { RENO }
    }
}

const CUBIC: &str = "cubic";
const RENO: &str = "reno";

/// Another congestion control than the one that was chosen. For people.
#[derive(Debug)]
struct Instead {
    control: Control,
    error: Error,
    instead: &'static str,
}

impl fmt::Display for Instead {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { control, error, instead } = self;
        write!(formatter, "using {instead} instead of {}: {error}", control.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instead_of(name: &str, available: &str) -> (String, Option<String>) {
        let available = available.split(' ').map(str::to_owned).collect();
        let offered = Offered { available, ..Offered::default() };
        let (congestion, instead) = offered.or_instead(Congestion::named(name));
        (congestion.name, instead.map(|instead| instead.to_string()))
    }

    #[test]
    fn what_is_not_ours_is_the_kernels_to_refuse() {
        assert_eq!(instead_of("warp", "reno cubic"), ("warp".to_owned(), None));
    }

    #[test]
    fn in_place_of_one_that_nobody_has_loaded_the_kernels_own_is_used_and_the_user_is_told_what_helps() {
        let (name, told) = instead_of("rw_htcp", "reno cubic");
        assert_eq!(name, "cubic");
        assert_eq!(
            told.unwrap(),
            "using cubic instead of rw_htcp: rw_htcp is not loaded: \"ropewalk cc load rw_htcp\", as root, loads it"
        );
        assert_eq!(instead_of("rw_htcp", "reno").0, "reno");
        assert_eq!(instead_of("rw_reno", "reno cubic").0, "reno");
    }

    #[test]
    fn one_that_is_loaded_is_used() {
        assert_eq!(instead_of("rw_htcp", "reno rw_htcp"), ("rw_htcp".to_owned(), None));
    }
}
