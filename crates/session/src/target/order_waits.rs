//! How long commands wait for their turn: with several connections, a command can arrive before one with a smaller
//! CmdSN (RFC 7143 §4.2.2.1).

use core::fmt;
use pdu::{Duration, nanoseconds};

/// Waits shorter than this are counted together: 2¹⁰ ns, about a microsecond.
const SHORTEST_BITS: u32 = 10;
/// Waits of 2⁴⁰ ns, about 18 minutes, and more are counted together.
const LONGEST_BITS: u32 = 40;
/// Each doubling has four buckets, so the bounds of a bucket differ by a quarter at most.
const PARTS_BITS: u32 = 2;
const BUCKETS: usize = ((LONGEST_BITS - SHORTEST_BITS) << PARTS_BITS) as usize + 2;

/// The waits of numbered SCSI commands, from their arrival with their immediate data to their turn. A command that
/// arrives in order has waited 0. The size is fixed, and percentiles are too long by a quarter at most.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OrderWaits {
    /// Commands that did not wait.
    prompt: u64,
    /// Commands that waited, by the lengths of their waits.
    waited: [u64; BUCKETS],
    max: Duration,
}

impl Default for OrderWaits {
    fn default() -> Self {
        Self { prompt: 0, waited: [0; BUCKETS], max: Duration::ZERO }
    }
}

impl OrderWaits {
    /// Counts a command.
    pub fn record(&mut self, wait: Duration) {
        match wait {
            Duration::ZERO => self.prompt += 1,
            _ => self.waited[bucket(nanoseconds(wait))] += 1,
        }
        self.max = self.max.max(wait);
    }

    /// Counts the commands of `others` too.
    pub fn merge(&mut self, others: &Self) {
        self.prompt += others.prompt;
        for (count, more) in self.waited.iter_mut().zip(others.waited) {
            *count += more;
        }
        self.max = self.max.max(others.max);
    }

    /// The number of commands.
    #[must_use]
    pub fn commands(&self) -> u64 {
        self.prompt + self.waited()
    }

    /// The number of commands that waited.
    #[must_use]
    pub fn waited(&self) -> u64 {
        self.waited.iter().sum()
    }

    /// The wait that `percent` of all commands, including those that did not wait, did not exceed. At most a quarter
    /// too long (waits below a microsecond count as one); 0 without commands.
    #[must_use]
    pub fn percentile(&self, percent: u8) -> Duration {
        let rank = (u128::from(self.commands()) * u128::from(percent)).div_ceil(100);
        let mut counted = u128::from(self.prompt);
        if counted >= rank {
            return Duration::ZERO;
        }
        for (bucket, count) in self.waited.iter().enumerate() {
            counted += u128::from(*count);
            if counted >= rank {
                return end(bucket).min(self.max);
            }
        }
        self.max
    }

    /// The longest wait, exactly.
    #[must_use]
    pub fn max(&self) -> Duration {
        self.max
    }
}

impl fmt::Debug for OrderWaits {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OrderWaits")
            .field("commands", &self.commands())
            .field("waited", &self.waited())
            .field("p50", &self.percentile(50))
            .field("p99", &self.percentile(99))
            .field("max", &self.max)
            .finish()
    }
}

/// The bucket of a wait. The first and the last have the waits beyond the bounds.
fn bucket(wait_ns: u64) -> usize {
    let bits = wait_ns.max(1).ilog2();
    match bits {
        ..SHORTEST_BITS => 0,
        LONGEST_BITS.. => BUCKETS - 1,
        _ => {
            let part = ((wait_ns >> (bits - PARTS_BITS)) & ((1 << PARTS_BITS) - 1)) as usize;
            1 + ((bits - SHORTEST_BITS) << PARTS_BITS) as usize + part
        }
    }
}

/// The end of a bucket, which is the beginning of the next.
fn end(bucket: usize) -> Duration {
    if bucket == BUCKETS - 1 {
        return Duration::MAX;
    }
    let (octave, part) = (bucket >> PARTS_BITS, bucket & ((1 << PARTS_BITS) - 1));
    let parts = 1 << PARTS_BITS;
    Duration::from_nanos(((parts + part as u64) << SHORTEST_BITS >> PARTS_BITS) << octave)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(waits_ns: &[u64]) -> OrderWaits {
        let mut waits = OrderWaits::default();
        waits_ns.iter().for_each(|wait_ns| waits.record(Duration::from_nanos(*wait_ns)));
        waits
    }

    #[test]
    fn commands_that_did_not_wait_count() {
        let mut waits = of(&[0; 98]);
        assert_eq!((waits.percentile(99), waits.max()), (Duration::ZERO, Duration::ZERO));
        waits.merge(&of(&[5_000_000, 80_000_000]));
        assert_eq!((waits.commands(), waits.waited()), (100, 2));
        assert_eq!(waits.percentile(98), Duration::ZERO);
        assert!((5..=6).contains(&waits.percentile(99).as_millis()), "{waits:?}");
        assert_eq!(waits.percentile(100), Duration::from_millis(80));
        assert_eq!(waits.max(), Duration::from_millis(80));
    }

    #[test]
    fn without_commands_nothing_waited() {
        assert_eq!(of(&[]).percentile(99), Duration::ZERO);
    }

    #[test]
    fn the_longest_waits_have_a_place_too() {
        assert_eq!(of(&[u64::MAX]).percentile(50), Duration::from_nanos(u64::MAX));
    }

    proptest! {
        #[test]
        fn a_percentile_is_at_most_a_quarter_too_long(mut waits_ns in prop::collection::vec(1_u64..1 << 40, 1..50)) {
            let waits = of(&waits_ns);
            waits_ns.sort_unstable();
            for percent in [1, 50, 99, 100] {
                let exact = waits_ns[(waits_ns.len() * usize::from(percent)).div_ceil(100) - 1];
                let told = nanoseconds(waits.percentile(percent));
                prop_assert!(told >= exact && told <= (exact + exact / 4 + 1).max(1 << 10), "{} {}", told, exact);
            }
        }
    }
}
