//! Both directions of the relay, and the work of a thread that serves them.

use super::direction::{Direction, Next, Tools, Turn};
use super::packet_socket::{Batch, PacketSocket};
use super::report::RelayReport;
use super::wakefulness::Wakefulness;
use super::watch::{Looker, Watch};
use rustix::thread::sched_getcpu;
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
    /// The time of the last look.
    pub looked_at: Duration,
    /// The processor of the relay's thread at that time.
    pub processor: usize,
    pub round_trip: Duration,
    /// `None` if processors may halt.
    pub wakefulness: Option<Wakefulness>,
    pub has_priority: bool,
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
        self.watch.look_at_processor(looker, ended);
        self.due = [forward, backward].into_iter().filter_map(|turn| turn.next.time(ended)).min();
        self.looked_at = ended;
        if looker == Looker::Relay {
            self.processor = sched_getcpu();
        }
        Look { forward, backward, due: self.due, ended }
    }

    /// For the thread that stands by: looks if nobody has for `patience`. Returns whether that has changed anything.
    pub fn stand_in(&mut self, patience: Duration) -> bool {
        let now = self.tools.clock.now();
        self.watch.look_at_processor(Looker::Standby, now);
        now.saturating_sub(self.looked_at) >= patience && self.look(Looker::Standby).has_moved()
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
            keeps_processors_awake: self.wakefulness.is_some(),
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
