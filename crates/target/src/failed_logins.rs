//! Delays authentication from sources that fail repeatedly, by growing times.

use device::PeerHost;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The most sources that are remembered; beyond it, the source with the oldest failure is forgotten. A peer with so
/// many addresses escapes the delays, and must not use up the memory.
const SOURCES_MAX: usize = 1024;

/// Failures without a delay: people mistype, and initiators try all their portals.
const FREE_FAILURES: u32 = 3;

/// The first delay; it doubles with each further failure.
const WAIT_MIN: Duration = Duration::from_millis(100);

/// The longest delay. Well below the time limit of a login, so that an honest neighbour at the same address gets in.
const WAIT_MAX: Duration = Duration::from_secs(3);

/// The time without a failure after which a source is forgotten.
const MEMORY: Duration = Duration::from_secs(60);

/// The sources of recent failures.
#[derive(Debug, Default)]
pub(crate) struct FailedLogins {
    sources: HashMap<PeerHost, Failures>,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last: Instant,
}

impl FailedLogins {
    /// Records a failure, whether the name or the secret was wrong.
    pub(crate) fn note(&mut self, source: PeerHost, now: Instant) {
        if !self.sources.contains_key(&source) && self.sources.len() >= SOURCES_MAX {
            self.forget(now);
        }
        let failures = self.sources.entry(source).or_insert(Failures { count: 0, last: now });
        if now.duration_since(failures.last) >= MEMORY {
            failures.count = 0;
        }
        *failures = Failures { count: failures.count.saturating_add(1), last: now };
    }

    /// The delay before a proof from this source is checked, right or wrong.
    pub(crate) fn wait(&self, source: PeerHost, now: Instant) -> Duration {
        let failures = self.sources.get(&source);
        let recent = failures.filter(|failures| now.duration_since(failures.last) < MEMORY);
        let excess = recent.map_or(0, |failures| failures.count.saturating_sub(FREE_FAILURES));
        match excess.checked_sub(1) {
            Some(doublings) => {
                WAIT_MIN.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(WAIT_MAX)
            }
            None => Duration::ZERO,
        }
    }

    /// Makes room for one more source.
    fn forget(&mut self, now: Instant) {
        self.sources.retain(|_, failures| now.duration_since(failures.last) < MEMORY);
        if self.sources.len() >= SOURCES_MAX {
            let oldest = self.sources.iter().min_by_key(|(_, failures)| failures.last);
            if let Some(oldest) = oldest.map(|(source, _)| *source) {
                self.sources.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::Ipv6Prefix;
    use std::net::IpAddr;

    fn source(text: &str) -> PeerHost {
        Ipv6Prefix::LINK.host_of(text.parse().unwrap())
    }

    #[test]
    fn the_wait_grows_with_failures_up_to_its_limit_and_only_for_their_source() {
        let (mut failed, now) = (FailedLogins::default(), Instant::now());
        let (guessing, honest) = (source("192.0.2.1"), source("192.0.2.2"));
        let mut waits = Vec::new();
        for _ in 0..1000 {
            waits.push(failed.wait(guessing, now));
            failed.note(guessing, now);
        }
        assert_eq!(waits[..=3], [Duration::ZERO; 4]);
        assert_eq!(waits[4..7], [WAIT_MIN, WAIT_MIN * 2, WAIT_MIN * 4]);
        assert!(waits.is_sorted());
        assert_eq!(waits[999], WAIT_MAX);
        assert_eq!(failed.wait(honest, now), Duration::ZERO);
    }

    #[test]
    fn failures_are_forgotten() {
        let (mut failed, now) = (FailedLogins::default(), Instant::now());
        (0..10).for_each(|_| failed.note(source("192.0.2.1"), now));
        assert_eq!(failed.wait(source("192.0.2.1"), now + MEMORY), Duration::ZERO);
        failed.note(source("192.0.2.1"), now + MEMORY);
        assert_eq!(failed.wait(source("192.0.2.1"), now + MEMORY), Duration::ZERO);
    }

    #[test]
    fn the_addresses_of_one_host_are_one_source() {
        let (mut failed, now) = (FailedLogins::default(), Instant::now());
        for host in 1..=10 {
            failed.note(source(&format!("2001:db8::{host}")), now);
        }
        assert_eq!(failed.wait(source("2001:db8::77"), now), WAIT_MAX);
        assert_eq!(failed.wait(source("2001:db8:0:1::1"), now), Duration::ZERO);
        (0..10).for_each(|_| failed.note(source("::ffff:192.0.2.1"), now));
        assert_eq!(failed.wait(source("192.0.2.1"), now), WAIT_MAX);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_source_is_forgotten_first() {
        let (mut failed, now) = (FailedLogins::default(), Instant::now());
        (0..10).for_each(|_| failed.note(source("192.0.2.1"), now));
        for number in 0..100_000_u32 {
            let address = IpAddr::from((0x0a00_0000 + number).to_be_bytes());
            failed
                .note(Ipv6Prefix::LINK.host_of(address), now + Duration::from_micros(u64::from(number) + 1));
            assert!(failed.sources.len() <= SOURCES_MAX);
        }
        assert_eq!(failed.wait(source("192.0.2.1"), now), Duration::ZERO);
    }
}
