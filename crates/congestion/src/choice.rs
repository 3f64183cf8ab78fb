//! A congestion control as people write it.

use crate::Control;
use framing::Congestion;
use policy::law::{AggregateLaw, GroupTerms, InvalidTerms, Mode, Sharing};

/// A choice that cannot be read, or that means nothing. Its author is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidChoice {
    /// A term is none.
    #[error(transparent)]
    Terms(#[from] InvalidTerms),
    /// It has no groups, and so no terms.
    #[error("{0} has no groups of connections, and takes no terms")]
    NoGroups(String),
    /// A term of another control.
    #[error("of {name}, {terms:?} says nothing: it takes {known}")]
    Unknown {
        /// The control.
        name: &'static str,
        /// What was written.
        terms: String,
        /// What can be.
        known: &'static str,
    },
}

/// Reads `NAME` or `NAME:TERM,...`, as in `rw_fair:single,cubic`.
///
/// # Errors
/// If the control takes no such terms. Whether the kernel has it is not asked.
pub fn parse(text: &str) -> Result<Congestion, InvalidChoice> {
    let congestion: Congestion = text.parse()?;
    check(&congestion)?;
    Ok(congestion)
}

/// Whether the control takes these terms.
///
/// # Errors
/// If not.
pub fn check(congestion: &Congestion) -> Result<(), InvalidChoice> {
    let terms = &congestion.terms;
    let unknown = |name, known| Err(InvalidChoice::Unknown { name, terms: terms.to_string(), known });
    match Control::named(&congestion.name) {
        Some(Control::Fair) if terms.alpha.is_some() => {
            unknown("rw_fair", "fair, weight=M, single, conservative, reno, cubic, equal and host")
        }
        Some(Control::Fast) if !is_for_fast(terms) => unknown("rw_fast", "alpha=SEGMENTS and host"),
        Some(Control::Fair | Control::Fast) => Ok(()),
        _ if *terms != GroupTerms::default() => Err(InvalidChoice::NoGroups(congestion.name.clone())),
        _ => Ok(()),
    }
}

fn is_for_fast(terms: &GroupTerms) -> bool {
    terms.mode == Mode::Fair && terms.law == AggregateLaw::Reno && terms.sharing == Sharing::ByActivity
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn controls_take_the_terms_that_mean_something_to_them() {
        for text in ["cubic", "rw_fair:single,cubic,host", "rw_fast:alpha=100"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn terms_that_would_do_nothing_are_refused() {
        assert_eq!(problem("cubic:single"), "cubic has no groups of connections, and takes no terms");
        assert_eq!(problem("rw_htcp:weight=2"), "rw_htcp has no groups of connections, and takes no terms");
        assert_eq!(
            problem("rw_fast:single"),
            "of rw_fast, \"single\" says nothing: it takes alpha=SEGMENTS and host"
        );
        assert!(problem("rw_fair:alpha=9").starts_with("of rw_fair, \"alpha=9\" says nothing"));
    }
}
