//! `CoDel`: drops packets of a queue whose waiting time has been above a target for too long (RFC 8289).

use crate::model::InvalidModel;
use crate::time::nanoseconds;
use crate::units::Span;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The parameters of `CoDel`. The defaults are those of RFC 8289 §4.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CoDel {
    /// The waiting time that must not be exceeded for longer than `interval`.
    pub target: Span,
    /// How long the waiting time may be above the target: the worst round trip of most connections.
    pub interval: Span,
    /// Mark packets whose senders support ECN, and drop only the others.
    pub ecn: bool,
}

impl Default for CoDel {
    fn default() -> Self {
        Self {
            target: Span(Duration::from_millis(5)),
            interval: Span(Duration::from_millis(100)),
            ecn: false,
        }
    }
}

impl CoDel {
    pub(crate) fn validate(&self) -> Result<(), InvalidModel> {
        match self.interval > Span::default() && self.target < self.interval {
            true => Ok(()),
            false => Err(InvalidModel::new("codel.target", self.target, "below codel.interval")),
        }
    }
}

/// The state of the control law. The queue asks it about its head, repeatedly until it lets one pass.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    target_ns: u64,
    interval_ns: u64,
    /// Whether to try marks before drops.
    pub marks: bool,
    /// When the waiting time will have been above the target for an interval; `None` while it is not above.
    patience_ends_ns: Option<u64>,
    is_dropping: bool,
    next_drop_ns: u64,
    /// Drops since dropping began.
    count: u64,
    /// The value of `count` when dropping began: 1, or the rate found before.
    first_count: u64,
}

impl Controller {
    pub fn new(codel: &CoDel) -> Self {
        Self {
            target_ns: nanoseconds(codel.target.0),
            interval_ns: nanoseconds(codel.interval.0),
            marks: codel.ecn,
            patience_ends_ns: None,
            is_dropping: false,
            next_drop_ns: 0,
            count: 0,
            first_count: 0,
        }
    }

    /// Whether to drop or mark the head of the queue, which has waited for `sojourn_ns`. `is_last` says that less than
    /// a packet is behind it.
    pub fn judge(&mut self, now_ns: u64, sojourn_ns: u64, is_last: bool) -> bool {
        if !self.is_patience_over(now_ns, sojourn_ns, is_last) {
            self.is_dropping = false;
            return false;
        }
        if !self.is_dropping {
            self.begin(now_ns);
            return true;
        }
        if now_ns < self.next_drop_ns {
            return false;
        }
        self.count += 1;
        self.next_drop_ns = self.after(self.next_drop_ns);
        true
    }

    fn is_patience_over(&mut self, now_ns: u64, sojourn_ns: u64, is_last: bool) -> bool {
        if sojourn_ns < self.target_ns || is_last {
            self.patience_ends_ns = None;
            return false;
        }
        let patience_ends_ns = *self.patience_ends_ns.get_or_insert(now_ns.saturating_add(self.interval_ns));
        patience_ends_ns <= now_ns
    }

    /// Begins dropping. If dropping ended only recently, it resumes at the rate that was found then (§5.5).
    fn begin(&mut self, now_ns: u64) {
        let drops = self.count - self.first_count;
        let is_recent = now_ns.saturating_sub(self.next_drop_ns) < self.interval_ns.saturating_mul(16);
        self.count = if drops > 1 && is_recent { drops } else { 1 };
        self.first_count = self.count;
        self.is_dropping = true;
        self.next_drop_ns = self.after(now_ns);
    }

    /// The time plus the interval divided by the square root of the count (§5.3), computed with 16 fractional bits.
    fn after(&self, time_ns: u64) -> u64 {
        let root = (u128::from(self.count) << 32).isqrt();
        let step = (u128::from(self.interval_ns) << 16) / root.max(1);
        time_ns.saturating_add(u64::try_from(step).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    /// Asks every millisecond about a head that has waited for `sojourn_ms`; returns the times of drops in
    /// milliseconds.
    fn drops(controller: &mut Controller, milliseconds: std::ops::Range<u64>, sojourn_ms: u64) -> Vec<u64> {
        let is_dropped = |now: &u64| controller.judge(now * MILLISECOND, sojourn_ms * MILLISECOND, false);
        milliseconds.filter(is_dropped).collect()
    }

    #[test]
    fn waiting_below_the_target_is_never_held_against_a_queue() {
        assert!(drops(&mut Controller::new(&CoDel::default()), 0..10_000, 4).is_empty());
    }

    #[test]
    fn the_first_drop_comes_after_an_interval_and_the_next_ever_sooner() {
        let mut controller = Controller::new(&CoDel::default());
        // 100 ms, then steps of 100/√1, 100/√2, 100/√3, 100/√4.
        assert_eq!(drops(&mut controller, 0..480, 20), [100, 200, 271, 329, 379, 424, 464]);
    }

    #[test]
    fn one_packet_that_waits_briefly_ends_the_patience_anew() {
        let mut controller = Controller::new(&CoDel::default());
        assert!(drops(&mut controller, 0..99, 20).is_empty());
        assert!(drops(&mut controller, 99..100, 1).is_empty());
        assert_eq!(drops(&mut controller, 100..250, 20), [200]);
    }

    #[test]
    fn dropping_that_ended_recently_goes_on_where_it_was() {
        let mut controller = Controller::new(&CoDel::default());
        let before = drops(&mut controller, 0..1000, 20).len();
        drops(&mut controller, 1000..1001, 1);
        let again = drops(&mut controller, 1001..1300, 20);
        assert!(before > 10 && again[1] - again[0] < 40, "{again:?}");
    }

    #[test]
    fn the_last_packet_is_not_dropped() {
        let mut controller = Controller::new(&CoDel::default());
        assert!((0..1000).all(|now| !controller.judge(now * MILLISECOND, 20 * MILLISECOND, true)));
    }
}
