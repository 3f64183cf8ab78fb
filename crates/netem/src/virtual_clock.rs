//! A server of constant rate, represented by the time at which it will have finished its work.

use crate::units::Rate;

/// The time at which a server will have finished its work. It carries the remainders of divisions as long as the server
/// is busy, so nothing is rounded away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VirtualClock {
    rate: Rate,
    done_ns: u64,
    /// The fraction of a nanosecond by which the server is done later, times the rate.
    remainder: u64,
}

/// Bits of a byte times nanoseconds of a second.
const BIT_NANOSECONDS: u64 = 8_000_000_000;

impl VirtualClock {
    /// An idle server.
    pub fn new(rate: Rate) -> Self {
        Self { rate, done_ns: 0, remainder: 0 }
    }

    /// Serves at `rate` from now on.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
        self.remainder = 0;
    }

    /// Gives the server `bytes` more at `now_ns`. Returns the time at which it will be done with them.
    pub fn serve(&mut self, now_ns: u64, bytes: u64) -> u64 {
        if self.done_ns < now_ns {
            self.done_ns = now_ns;
            self.remainder = 0;
        }
        let rate = self.rate.bits().get();
        let work = bytes.saturating_mul(BIT_NANOSECONDS).saturating_add(self.remainder);
        self.done_ns = self.done_ns.saturating_add(work / rate);
        self.remainder = work % rate;
        self.done_ns
    }

    /// The time at which the server will be done with all its work.
    pub fn done_ns(&self) -> u64 {
        self.done_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_exact_over_a_billion_bytes() {
        // 8 · 1518 bits at 144 Mbit/s are 84333.3 ns.
        let mut clock = VirtualClock::new(Rate::megabits_per_second(144));
        let done = (0..660_000).map(|_| clock.serve(0, 1518)).last();
        assert_eq!(done, Some(660_000 * 1518 * 8 * 1000 / 144));
    }

    #[test]
    fn a_server_that_was_idle_begins_anew() {
        let mut clock = VirtualClock::new(Rate::megabits_per_second(8));
        assert_eq!(clock.serve(0, 1000), 1_000_000);
        assert_eq!(clock.serve(500_000, 1000), 2_000_000);
        assert_eq!(clock.serve(5_000_000, 1000), 6_000_000);
    }

    #[test]
    fn a_new_rate_holds_for_what_comes_later() {
        let mut clock = VirtualClock::new(Rate::megabits_per_second(8));
        clock.serve(0, 1000);
        clock.set_rate(Rate::megabits_per_second(80));
        assert_eq!(clock.serve(0, 1000), 1_100_000);
    }
}
