//! How connections behave that share one congestion state.

use std::fmt;
use std::str::FromStr;

/// How a group of connections behaves that share one congestion state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GroupTerms {
    /// How aggressive it is.
    pub mode: Mode,
    /// How its window grows and shrinks.
    pub law: AggregateLaw,
    /// Who has a share of it.
    pub sharing: Sharing,
    /// All the user's connections between the same two addresses are one group (paper 000), whatever number they have.
    pub is_of_host: bool,
    /// Under FAST: the segments that each connection keeps in the queue; `None`: [`Fast::ALPHA`](super::Fast::ALPHA).
    pub alpha: Option<u32>,
}

/// How aggressive a group is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// As so many connections on their own as send: a loss takes half of one share (paper 000).
    #[default]
    Fair,
    /// As so many flows, but no more than the connections that send; in parts, of which [`PARTS`] are one.
    Weight(u32),
    /// As one connection: a loss takes half of the window, once per round trip.
    Single,
    /// RFC 8699 §5.3.2: grows as so many connections, but a loss takes half of the window, once in two round trips.
    Conservative,
}

/// The law of the aggregate window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AggregateLaw {
    /// RFC 5681.
    #[default]
    Reno,
    /// RFC 9438.
    Cubic,
}

/// Parts of one, in fixed point.
pub const PARTS: u32 = 1024;

/// Who has a share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// Those that send.
    #[default]
    ByActivity,
    /// All (paper 000).
    Equal,
}

/// Terms that cannot be read. Their author is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is none of fair, single, conservative, weight=M, reno, cubic, equal, host and alpha=SEGMENTS, separated by commas"
)]
pub struct InvalidTerms(String);

impl FromStr for GroupTerms {
    type Err = InvalidTerms;

    fn from_str(text: &str) -> Result<Self, InvalidTerms> {
        let mut terms = Self::default();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let invalid = || InvalidTerms(word.to_owned());
            match word.split_once('=') {
                None if word == "fair" => terms.mode = Mode::Fair,
                None if word == "single" => terms.mode = Mode::Single,
                None if word == "conservative" => terms.mode = Mode::Conservative,
                None if word == "reno" => terms.law = AggregateLaw::Reno,
                None if word == "cubic" => terms.law = AggregateLaw::Cubic,
                None if word == "equal" => terms.sharing = Sharing::Equal,
                None if word == "host" => terms.is_of_host = true,
                Some(("weight", flows)) => terms.mode = Mode::Weight(parts(flows).ok_or_else(invalid)?),
                Some(("alpha", segments)) => {
                    let segments =
                        segments.parse().ok().filter(|segments| (1..=ALPHA_MAX).contains(segments));
                    terms.alpha = Some(segments.ok_or_else(invalid)?);
                }
                _ => return Err(invalid()),
            }
        }
        Ok(terms)
    }
}

/// The most segments that a connection under FAST may keep in the queue.
const ALPHA_MAX: u32 = 1 << 20;

/// A number of flows, in parts.
fn parts(flows: &str) -> Option<u32> {
    const FLOWS_MAX: f64 = 4096.0;
    let flows: f64 = flows.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in these bounds")]
    let parts = (1.0..=FLOWS_MAX).contains(&flows).then(|| (flows * f64::from(PARTS)).round() as u32);
    parts
}

/// Terms that are not the usual ones; `fair` if all are.
impl fmt::Display for GroupTerms {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        match self.mode {
            Mode::Fair => {}
            Mode::Single => words.push("single".to_owned()),
            Mode::Conservative => words.push("conservative".to_owned()),
            Mode::Weight(parts) => words.push(format!("weight={}", f64::from(parts) / f64::from(PARTS))),
        }
        words.extend((self.law == AggregateLaw::Cubic).then(|| "cubic".to_owned()));
        words.extend((self.sharing == Sharing::Equal).then(|| "equal".to_owned()));
        words.extend(self.is_of_host.then(|| "host".to_owned()));
        words.extend(self.alpha.map(|alpha| format!("alpha={alpha}")));
        if words.is_empty() { formatter.write_str("fair") } else { formatter.write_str(&words.join(",")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_told_as_they_are_read() {
        for text in ["fair", "single,cubic", "weight=2.5,equal,host", "conservative,alpha=100"] {
            assert_eq!(text.parse::<GroupTerms>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn without_words_a_group_is_as_in_the_paper_but_shared_by_activity() {
        assert_eq!("".parse(), Ok(GroupTerms::default()));
    }

    #[test]
    fn a_word_that_means_nothing_is_named() {
        let problem = "fair,warp=9".parse::<GroupTerms>().unwrap_err().to_string();
        assert!(problem.starts_with("\"warp=9\" is none of fair, single"), "{problem}");
        assert!("weight=0.5".parse::<GroupTerms>().is_err() && "alpha=0".parse::<GroupTerms>().is_err());
    }
}
