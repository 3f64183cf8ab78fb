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
    /// The time at which something is due, if no frame arrives before.
    pub due: Option<Duration>,
    /// When the relay's thread looks next, if no frame arrives before.
    pub wakes_at: Option<Duration>,
    /// Whether the last look was that of a thread which watches for what is due.
    pub is_watched: bool,
    pub last_look: Arc<LastLook>,
    pub round_trip: Duration,
    pub keeps_processors_awake: bool,
    pub has_priority: bool,
}

/// The lead of threads that watch. A timer costs a virtual machine 30 µs, even if another thread has done its work.
const WATCHERS_LEAD: Duration = Duration::from_micros(50);

/// No time.
const NEVER_NS: u64 = u64::MAX;

/// The last look, also for threads that do not hold the forwarder.
#[derive(Debug, Default)]
pub(crate) struct LastLook {
    ended_ns: AtomicU64,
    /// When something is due. While somebody looks, nothing is.
    due_ns: AtomicU64,
    /// Of the relay's thread, when it looked last.
    processor: AtomicUsize,
}

/// The result of a look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub forward: Turn,
    pub backward: Turn,
    /// When the relay's thread looks next, if no frame arrives before.
    pub wakes_at: Option<Duration>,
    pub ended: Duration,
}

impl Forwarder {
    /// Reads arrived frames, and writes due ones.
    pub fn look(&mut self, looker: Looker) -> Look {
        self.last_look.begin();
        let begun = self.tools.clock.now();
        let overdue = self.due.map_or(Duration::ZERO, |due| begun.saturating_sub(due));
        let forward = self.forward.turn(&self.tools, &mut self.batch, &self.client, &self.server);
        let backward = self.backward.turn(&self.tools, &mut self.batch, &self.server, &self.client);
        let ended = self.tools.clock.now();
        let work = ended.saturating_sub(begun);
        self.watch.gap(work.max(overdue).max(forward.waited).max(backward.waited));
        self.watch.count_work(looker, work, ended);
        self.due = [forward, backward].into_iter().filter_map(|turn| turn.next.time(ended)).min();
        if looker == Looker::Relay {
            let lead = if self.is_watched { WATCHERS_LEAD } else { Duration::ZERO };
            self.wakes_at = self.due.map(|due| due + lead);
        }
        self.is_watched = looker == Looker::Awake;
        self.last_look.end(looker, ended, self.due);
        Look { forward, backward, wakes_at: self.wakes_at, ended }
    }

    /// For a thread that stands in for the relay's: looks if something is due, or if nobody has looked for `patience`.
    /// Returns whether the relay's thread would wake too late now.
    pub fn stand_in(&mut self, looker: Looker, patience: Duration) -> bool {
        let now = self.tools.clock.now();
        self.watch.count_work(looker, Duration::ZERO, now);
        if !self.last_look.is_due(now) && !self.last_look.is_past(now, patience) {
            return false;
        }
        let look = self.look(looker);
        let in_time = |due| self.wakes_at.is_some_and(|wakes_at| wakes_at <= due + WATCHERS_LEAD);
        look.waits_for_room() || self.due.is_some_and(|due| !in_time(due))
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
    fn begin(&self) {
        self.due_ns.store(NEVER_NS, Ordering::Relaxed);
    }

    fn end(&self, looker: Looker, ended: Duration, due: Option<Duration>) {
        self.ended_ns.store(pdu::nanoseconds(ended), Ordering::Relaxed);
        self.due_ns.store(due.map_or(NEVER_NS, pdu::nanoseconds), Ordering::Relaxed);
        if looker == Looker::Relay {
            self.processor.store(sched_getcpu(), Ordering::Relaxed);
        }
    }

    /// Whether something is due, and nobody looks.
    pub fn is_due(&self, now: Duration) -> bool {
        pdu::nanoseconds(now) >= self.due_ns.load(Ordering::Relaxed)
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

    /// Whether a far end has to make room.
    fn waits_for_room(&self) -> bool {
        self.forward.next == Next::Room || self.backward.next == Next::Room
    }

    /// Whether anything was done.
    pub fn has_moved(&self) -> bool {
        self.forward.has_moved || self.backward.has_moved
    }
}
