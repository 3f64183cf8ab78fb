//! Both directions of the relay, and the work of a thread that serves them.

use super::direction::{Direction, Next, Tools, Turn};
use super::packet_socket::{Batch, PacketSocket};
use super::report::RelayReport;
use super::watch::{Looker, Watch};
use rustix::thread::sched_getcpu;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) struct Forwarder {
    pub tools: Tools,
    pub batch: Batch,
    pub client: PacketSocket,
    pub server: PacketSocket,
    pub forward: Direction,
    pub backward: Direction,
    pub watch: Watch,
    /// The time of the next look, if no frame arrives before.
    pub due: Option<Duration>,
    pub last_look: Arc<LastLook>,
    pub round_trip: Duration,
    pub keeps_processors_awake: bool,
    pub has_priority: bool,
}

/// The last look, also for threads that do not hold the forwarder.
#[derive(Debug, Default)]
pub(crate) struct LastLook {
    ended_ns: AtomicU64,
    /// Of the relay's thread, when it looked last.
    processor: AtomicUsize,
}

/// The result of a look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub forward: Turn,
    pub backward: Turn,
    /// The time of the next look, if no frame arrives before.
    pub due: Option<Duration>,
    pub ended: Duration,
}

impl Forwarder {
    /// Reads arrived frames, and writes due ones.
    pub fn look(&mut self, looker: Looker) -> Look {
        let begun = self.tools.clock.now();
        let overdue = self.due.map_or(Duration::ZERO, |due| begun.saturating_sub(due));
        let forward = self.forward.turn(&self.tools, &mut self.batch, &self.client, &self.server);
        let backward = self.backward.turn(&self.tools, &mut self.batch, &self.server, &self.client);
        let ended = self.tools.clock.now();
        let work = ended.saturating_sub(begun);
        self.watch.gap(work.max(overdue).max(forward.waited).max(backward.waited));
        self.watch.count_work(looker, work, ended);
        self.due = [forward, backward].into_iter().filter_map(|turn| turn.next.time(ended)).min();
        self.last_look.note(looker, ended);
        Look { forward, backward, due: self.due, ended }
    }

    /// For a thread that stands in for the relay's: looks if nobody has for `patience`. Returns whether that has changed
    /// anything.
    pub fn stand_in(&mut self, looker: Looker, patience: Duration) -> bool {
        let now = self.tools.clock.now();
        self.watch.count_work(looker, Duration::ZERO, now);
        self.last_look.is_past(now, patience) && self.look(looker).has_moved()
    }

    /// The relay's report so far.
    pub fn report(&mut self) -> RelayReport {
        let elapsed = self.tools.clock.now();
        // The query for statistics of an open packet socket does not fail.
        let dropped = |socket: &mut PacketSocket| socket.dropped().unwrap_or(u64::MAX);
        RelayReport {
            begun_at: self.tools.clock.begun_at,
            begun_ns: self.tools.clock.begun_ns(),
            elapsed,
            has_priority: self.has_priority,
            keeps_processors_awake: self.keeps_processors_awake,
            has_large_buffers: self.client.has_large_buffers && self.server.has_large_buffers,
            round_trip: self.round_trip,
            forward: self.forward.report(dropped(&mut self.client)),
            backward: self.backward.report(dropped(&mut self.server)),
            gaps: self.watch.gaps(),
            processor_share: self.watch.share(elapsed),
            processor_share_max: self.watch.share_max(),
            sightings_lost: self.forward.sightings_lost() + self.backward.sightings_lost(),
        }
    }
}

impl LastLook {
    fn note(&self, looker: Looker, ended: Duration) {
        self.ended_ns.store(pdu::nanoseconds(ended), Ordering::Relaxed);
        if looker == Looker::Relay {
            self.processor.store(sched_getcpu(), Ordering::Relaxed);
        }
    }

    /// Whether nobody has looked for `patience`.
    pub fn is_past(&self, now: Duration, patience: Duration) -> bool {
        let ended = Duration::from_nanos(self.ended_ns.load(Ordering::Relaxed));
        now.saturating_sub(ended) >= patience
    }

    /// The processor of the relay's thread, when it looked last.
    pub fn processor(&self) -> usize {
        self.processor.load(Ordering::Relaxed)
    }
}

impl Look {
    /// Whether there is more to do at once.
    pub fn has_more(&self) -> bool {
        self.forward.next == Next::Now || self.backward.next == Next::Now
    }

    /// Whether anything was done.
    pub fn has_moved(&self) -> bool {
        self.forward.has_moved || self.backward.has_moved
    }
}
