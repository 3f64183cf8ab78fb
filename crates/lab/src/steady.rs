//! What connections moved and sent again after the warm-up, while the workload went on: neither slow start nor the end counts.

use crate::experiment::Quantity;
use observe::{SocketSample, SocketSeries, SocketsReport};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// What the samples of the chosen connections tell of this time. Nothing, if none was looked at twice.
pub(crate) fn quantities(
    report: &SocketsReport,
    counted_ns: &RangeInclusive<u64>,
    is_chosen: impl Fn(&SocketSeries) -> bool,
) -> BTreeMap<Quantity, f64> {
    let mut seen = Seen::default();
    for socket in report.sockets.iter().filter(|socket| is_chosen(socket)) {
        let mut counted = socket.samples.iter().filter(|sample| counted_ns.contains(&sample.at_ns));
        if let Some(first) = counted.next() {
            seen.add(Look::at(first), Look::at(counted.next_back().unwrap_or(first)));
        }
    }
    seen.quantities()
}

/// A connection at one moment, since it began.
#[derive(Clone, Copy)]
struct Look {
    at_ns: u64,
    bytes: u64,
    segments_sent_again: u32,
}

impl Look {
    fn at(sample: &SocketSample) -> Self {
        let tcp = &sample.tcp;
        Self {
            at_ns: sample.at_ns,
            bytes: tcp.bytes_acked + tcp.bytes_received,
            segments_sent_again: tcp.total_retrans,
        }
    }
}

/// Sums over connections, and the time from the first look to the last.
#[derive(Default)]
struct Seen {
    time_ns: Option<(u64, u64)>,
    bytes: u64,
    segments_sent_again: u32,
}

impl Seen {
    fn add(&mut self, first: Look, last: Look) {
        let (from_ns, to_ns) = self.time_ns.unwrap_or((first.at_ns, last.at_ns));
        self.time_ns = Some((from_ns.min(first.at_ns), to_ns.max(last.at_ns)));
        self.bytes += last.bytes.saturating_sub(first.bytes);
        self.segments_sent_again += last.segments_sent_again.saturating_sub(first.segments_sent_again);
    }

    fn quantities(&self) -> BTreeMap<Quantity, f64> {
        let Some((from_ns, to_ns)) = self.time_ns.filter(|(from_ns, to_ns)| to_ns > from_ns) else {
            return BTreeMap::new();
        };
        let seconds = (to_ns - from_ns) as f64 / 1e9;
        BTreeMap::from([
            (Quantity::SteadyThroughput, self.bytes as f64 * 8.0 / seconds),
            (Quantity::SteadyRetransmitted, f64::from(self.segments_sent_again)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at_ms: u64, bytes: u64, segments_sent_again: u32) -> Look {
        Look { at_ns: at_ms * 1_000_000, bytes, segments_sent_again }
    }

    #[test]
    fn what_was_moved_and_sent_again_in_between_counts_for_all_connections() {
        let mut seen = Seen::default();
        seen.add(look(1000, 1000, 7), look(2900, 5000, 9));
        seen.add(look(1100, 0, 0), look(3000, 1000, 1));
        let told = seen.quantities();
        assert_eq!(told[&Quantity::SteadyThroughput], 20_000.0);
        assert_eq!(told[&Quantity::SteadyRetransmitted], 3.0);
    }

    #[test]
    fn one_look_tells_nothing() {
        let mut seen = Seen::default();
        seen.add(look(1000, 1, 1), look(1000, 1, 1));
        assert!(seen.quantities().is_empty());
    }
}
