//! Times in which a condition held, such as a blocked socket.

use serde::{Deserialize, Serialize};

/// Further intervals are only counted.
const KEPT_MAX: usize = 1 << 16;

/// Intervals, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intervals {
    /// The number of ended intervals.
    pub count: u64,
    /// Their total time.
    pub total_ns: u64,
    /// The duration of the longest.
    pub longest_ns: u64,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Interval>,
    /// The start of the open interval.
    #[serde(skip)]
    open_since_ns: Option<u64>,
}

/// One interval, by [`monotonic_ns`](crate::monotonic_ns).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say what the times are")]
pub struct Interval {
    pub begun_ns: u64,
    pub duration_ns: u64,
}

impl Intervals {
    /// Records whether the condition holds now, which starts or ends an interval.
    pub(crate) fn note(&mut self, now_ns: u64, holds: bool) {
        match (self.open_since_ns, holds) {
            (None, true) => self.open_since_ns = Some(now_ns),
            (Some(begun_ns), false) => {
                self.open_since_ns = None;
                self.add(Interval { begun_ns, duration_ns: now_ns.saturating_sub(begun_ns) });
            }
            (None, false) | (Some(_), true) => {}
        }
    }

    fn add(&mut self, interval: Interval) {
        self.count += 1;
        self.total_ns += interval.duration_ns;
        self.longest_ns = self.longest_ns.max(interval.duration_ns);
        if self.kept.len() < KEPT_MAX {
            self.kept.push(interval);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_lasts_from_when_it_holds_until_it_does_not() {
        let mut intervals = Intervals::default();
        for (now_ns, holds) in
            [(5, false), (10, true), (15, true), (30, false), (31, false), (40, true), (41, false)]
        {
            intervals.note(now_ns, holds);
        }
        assert_eq!((intervals.count, intervals.total_ns, intervals.longest_ns), (2, 21, 20));
        assert_eq!(intervals.kept[0], Interval { begun_ns: 10, duration_ns: 20 });
    }
}
