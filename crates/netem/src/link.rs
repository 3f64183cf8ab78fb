//! One direction of a path: packets go in at one end and come out at the other.

use crate::cap::FlowCap;
use crate::counters::Counters;
use crate::model::{InvalidModel, LinkModel};
use crate::packet::Packet;
use crate::parallel_path::ParallelPath;
use crate::random::{Random, scaled};
use crate::schedule::{Change, Schedule};
use crate::time::{NEVER, nanoseconds};
use std::time::Duration;

/// One direction of a path. `now` is the time since the beginning; a caller never goes back.
///
/// Nothing happens by itself: each call first does everything that was due until `now`, as if it had been done in time.
/// Arrivals therefore depend only on what was sent when, and not on how often a caller polls the link. Cross traffic
/// that came meanwhile is processed then, packet by packet.
#[derive(Debug)]
pub struct Link<P> {
    mtu: u32,
    framing: u32,
    is_tunnel: bool,
    cap: FlowCap<P>,
    paths: Vec<ParallelPath<P>>,
    /// Makes the choice of a path depend on the seed.
    salt: u64,
    schedule: Schedule,
    /// The counters of the stages before the parallel paths.
    counters: Counters,
}

impl<P: Packet> Link<P> {
    /// A link on a path whose round trip, without queues, takes `round_trip`.
    ///
    /// # Errors
    /// [`InvalidModel`] names the first impossible part of the model.
    pub fn new(model: &LinkModel, round_trip: Duration, seed: u64) -> Result<Self, InvalidModel> {
        model.validate(round_trip)?;
        let paths =
            (0..usize::from(model.parallel)).map(|path| ParallelPath::new(model, round_trip, seed, path));
        Ok(Self {
            mtu: model.mtu,
            framing: model.framing,
            is_tunnel: model.tunnel,
            cap: FlowCap::new(model.cap, model.framing),
            paths: paths.collect(),
            salt: Random::new(seed, "choice of a path", 0).word(),
            schedule: Schedule::new(model.schedule.clone()),
            counters: Counters::default(),
        })
    }

    /// Sends a packet.
    pub fn send(&mut self, now: Duration, packet: P) {
        let now_ns = nanoseconds(now);
        self.advance(now_ns);
        let size = packet.size();
        self.counters.sent += size.traffic(self.framing);
        if size.segment_bytes() > self.mtu {
            self.counters.dropped.oversize += size.traffic(self.framing);
            return;
        }
        let flow = if self.is_tunnel { 0 } else { packet.flow() };
        if let Some(packet) = self.cap.admit(now_ns, flow, packet, &mut self.counters.dropped) {
            self.send_on(now_ns, flow, packet);
        }
    }

    /// The next packet that has arrived by `now`, in the order of arrival. Call it until there is none.
    pub fn receive(&mut self, now: Duration) -> Option<P> {
        self.receive_with_time(now).map(|(_, packet)| packet)
    }

    /// As [`Self::receive`], with the time of arrival, which is `now` or before.
    pub fn receive_with_time(&mut self, now: Duration) -> Option<(Duration, P)> {
        let now_ns = nanoseconds(now);
        self.advance(now_ns);
        for path in &mut self.paths {
            path.advance(now_ns);
        }
        let first = self.paths.iter_mut().min_by_key(|path| path.next_arrival_ns())?;
        let arrived_ns = first.next_arrival_ns();
        Some((Duration::from_nanos(arrived_ns), first.receive(now_ns)?))
    }

    /// When to poll again if nothing is sent before: no packet arrives earlier, though none need have arrived even
    /// then. `None` if nothing is under way.
    #[must_use]
    pub fn next_event(&self) -> Option<Duration> {
        let arrivals = self.paths.iter().map(ParallelPath::earliest_arrival_ns);
        let shortest_ns = self.paths.iter().map(ParallelPath::delay_ns).min().unwrap_or(0);
        let shaped_ns = self.cap.next_leaves_ns().saturating_add(shortest_ns);
        let earliest_ns = arrivals.fold(shaped_ns, u64::min);
        // A change of the schedule may shorten a delay. It matters only while packets are under way.
        (earliest_ns != NEVER).then(|| Duration::from_nanos(earliest_ns.min(self.schedule.next_ns())))
    }

    /// Counts of the packets that went in, came out and were lost, until the last call.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut sum = Counters { in_flight: self.cap.waiting(), ..self.counters };
        for path in &self.paths {
            sum.add_path(&path.counters());
        }
        sum
    }

    /// The counters of each parallel path, without packets that were lost or wait before it.
    pub fn path_counters(&self) -> impl Iterator<Item = Counters> {
        self.paths.iter().map(ParallelPath::counters)
    }

    /// Packets waiting for the bottleneck on all parallel paths together, cross traffic included, until the last call.
    #[must_use]
    pub fn queue_bytes(&self) -> u64 {
        self.paths.iter().map(ParallelPath::queue_bytes).sum()
    }

    /// Does everything that is due by `now_ns` before the parallel paths, and on these whatever must come first.
    fn advance(&mut self, now_ns: u64) {
        loop {
            let (change_ns, leaves_ns) = (self.schedule.next_ns(), self.cap.next_leaves_ns());
            if change_ns.min(leaves_ns) > now_ns {
                return;
            }
            if change_ns <= leaves_ns {
                self.schedule.take().into_iter().for_each(|change| self.apply(change_ns, &change));
            } else if let Some((flow, packet)) = self.cap.leave() {
                self.send_on(leaves_ns, flow, packet);
            }
        }
    }

    fn apply(&mut self, now_ns: u64, change: &Change) {
        let (first, count) = change.path.map_or((0, self.paths.len()), |path| (usize::from(path), 1));
        self.paths.iter_mut().skip(first).take(count).for_each(|path| path.apply(now_ns, change));
    }

    /// Sends a packet on to the parallel path of its flow.
    fn send_on(&mut self, now_ns: u64, flow: u64, packet: P) {
        let path = choose(flow ^ self.salt, self.paths.len());
        self.paths[path].send(now_ns, packet);
    }
}

/// Chooses one of `count` paths. The flow's hash is mixed once more (with the finalizer of `SplitMix64`), in case it is
/// a poor one.
fn choose(flow: u64, count: usize) -> usize {
    let mixed = (flow ^ (flow >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let mixed = mixed ^ (mixed >> 31);
    usize::try_from(scaled(mixed, count as u64)).unwrap_or(0)
}
