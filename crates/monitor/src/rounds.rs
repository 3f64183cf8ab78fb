//! Work that is due at regular times.

/// Times that are an interval apart. A late round is done once, and the rounds missed meanwhile are skipped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    interval_ns: u64,
    next_ns: u64,
    missed: u64,
}

impl Rounds {
    /// Rounds of which the first is due at once.
    pub fn new(begun_ns: u64, interval_ns: u64) -> Self {
        Self { interval_ns: interval_ns.max(1), next_ns: begun_ns, missed: 0 }
    }

    /// Whether a round is due. If so, the next one due is the first that is still in the future.
    pub fn is_due(&mut self, now_ns: u64) -> bool {
        let Some(late_ns) = now_ns.checked_sub(self.next_ns) else { return false };
        let missed = late_ns / self.interval_ns;
        self.missed += missed;
        self.next_ns = self.next_ns.saturating_add(self.interval_ns.saturating_mul(missed + 1));
        true
    }

    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    pub fn missed(&self) -> u64 {
        self.missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_an_interval_apart_however_late_each_is() {
        let mut rounds = Rounds::new(1000, 100);
        let due: Vec<bool> = [1000, 1099, 1150, 1199, 1200].map(|now_ns| rounds.is_due(now_ns)).into();
        assert_eq!(due, [true, false, true, false, true]);
        assert_eq!(rounds.missed(), 0);
    }

    #[test]
    fn rounds_that_were_missed_are_left_out_and_counted() {
        let mut rounds = Rounds::new(0, 100);
        assert!(rounds.is_due(350));
        assert_eq!((rounds.next_ns(), rounds.missed()), (400, 3));
    }
}
