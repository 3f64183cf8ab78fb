//! The relay's thread: it sleeps until a frame comes or is due.

use super::clock::processor_time;
use super::direction::{Direction, Next, Tools};
use super::packet_socket::{Batch, PacketSocket};
use super::report::{Durations, RelayReport};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

/// What others ask of the relay's thread.
pub(crate) enum Request {
    Report(SyncSender<RelayReport>),
    Stop,
}

pub(crate) struct EventLoop {
    pub tools: Tools,
    pub client: PacketSocket,
    pub server: PacketSocket,
    pub forward: Direction,
    pub backward: Direction,
    pub requests: Receiver<Request>,
    /// Readable when there is a request.
    pub bell: Arc<OwnedFd>,
    pub watch: Watch,
    pub round_trip: Duration,
    pub nap: Duration,
    pub has_priority: bool,
}

/// After some work more comes soon, and is cheaper together: at 900 Mbit/s this saves a quarter of the relay's time.
/// Frames are not noticed late for it, since the kernel says when they came.
const NAP_MAX: Duration = Duration::from_micros(50);

/// Of the round trip: of a short one no part is slept away.
const NAP_SHARE: u32 = 200;

/// How long a relay sleeps after some work.
pub(crate) fn nap(round_trip: Duration) -> Duration {
    NAP_MAX.min(round_trip / NAP_SHARE)
}

/// A processor that has slept wakes late: by 0.1 ms and more in a virtual machine. So the relay has itself woken too early,
/// and looks at the clock for the rest.
const WAKE_EARLY: Duration = Duration::from_micros(200);

/// Only after longer sleeps. Processors sleep less deeply if they sleep often, and looking at the clock is work.
const LONG_SLEEP: Duration = Duration::from_millis(4);

/// For how long to sleep, if something is due after that time.
fn sleep_for(left: Duration) -> Duration {
    if left < LONG_SLEEP { left } else { left - WAKE_EARLY }
}

/// Watches over the relay itself.
pub(crate) struct Watch {
    gaps: Durations,
    second_begun: Duration,
    second_work: Duration,
    share_max: f64,
}

impl EventLoop {
    /// Runs until it is asked to stop.
    pub fn run(mut self) -> RelayReport {
        let mut batch = Batch::new();
        loop {
            let begun = self.tools.clock.now();
            let forward = self.forward.turn(&self.tools, &mut batch, &self.client, &self.server);
            let backward = self.backward.turn(&self.tools, &mut batch, &self.server, &self.client);
            if self.is_asked_to_stop() {
                return self.report();
            }
            let ended = self.tools.clock.now();
            let work = ended.saturating_sub(begun);
            self.watch.gaps.record(work.max(forward.waited).max(backward.waited));
            self.watch.look_at_processor(ended);
            match forward.next == Next::Now || backward.next == Next::Now {
                true => {}
                false if forward.has_moved || backward.has_moved => std::thread::sleep(self.nap),
                false => self.sleep(forward.next, backward.next, ended),
            }
        }
    }

    /// Until a frame comes, or is due.
    fn sleep(&mut self, forward: Next, backward: Next, now: Duration) {
        let next = [forward, backward].into_iter().filter_map(|next| match next {
            Next::At(time) => time,
            Next::Now | Next::Room => None,
        });
        let next = next.min();
        let wanted =
            |next: Next| if next == Next::Room { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut descriptors = [
            PollFd::new(&self.client, wanted(backward)),
            PollFd::new(&self.server, wanted(forward)),
            PollFd::new(&self.bell, PollFlags::IN),
        ];
        let timeout = next.map(|next| sleep_for(next.saturating_sub(now)).try_into().unwrap_or_default());
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(0) => self.await_time(next.unwrap_or_default()),
            Ok(_) | Err(Errno::INTR) => {}
            // Nothing that a relay does makes this call fail; looking again at once is busy, but right.
            Err(error) => debug_assert!(false, "poll: {error}"),
        }
        if let Some(next) = next {
            self.watch.gaps.record(self.tools.clock.now().saturating_sub(next));
        }
    }

    /// For at most [`WAKE_EARLY`].
    fn await_time(&self, time: Duration) {
        while self.tools.clock.now() < time {
            std::hint::spin_loop();
        }
    }

    fn is_asked_to_stop(&mut self) -> bool {
        while let Ok(request) = self.requests.try_recv() {
            // Until it is read, it rings.
            let _ = rustix::io::read(&self.bell, &mut [0; 8]);
            match request {
                Request::Stop => return true,
                Request::Report(to) => {
                    let report = self.report();
                    // Who asked may have stopped waiting.
                    let _ = to.send(report);
                }
            }
        }
        false
    }

    fn report(&mut self) -> RelayReport {
        let elapsed = self.tools.clock.now();
        self.watch.look_at_processor(elapsed);
        // A question about statistics of an open packet socket does not fail.
        let dropped = |socket: &mut PacketSocket| socket.dropped().unwrap_or(u64::MAX);
        RelayReport {
            begun_at: self.tools.clock.begun_at,
            begun_ns: self.tools.clock.begun_ns(),
            elapsed,
            has_priority: self.has_priority,
            has_large_buffers: self.client.has_large_buffers && self.server.has_large_buffers,
            round_trip: self.round_trip,
            forward: self.forward.report(dropped(&mut self.client)),
            backward: self.backward.report(dropped(&mut self.server)),
            gaps: self.watch.gaps.distribution(),
            processor_share: processor_time().div_duration_f64(elapsed.max(Duration::from_nanos(1))),
            processor_share_max: self.watch.share_max,
            sightings_lost: self.forward.sightings_lost() + self.backward.sightings_lost(),
        }
    }
}

/// Of processor time this much must have passed for a share to mean anything.
const SECOND: Duration = Duration::from_secs(1);

impl Watch {
    pub fn new() -> Self {
        Self {
            gaps: Durations::new(),
            second_begun: Duration::ZERO,
            second_work: Duration::ZERO,
            share_max: 0.0,
        }
    }

    /// Ends the current second, if it is over.
    fn look_at_processor(&mut self, now: Duration) {
        let elapsed = now.saturating_sub(self.second_begun);
        if elapsed < SECOND {
            return;
        }
        let work = processor_time();
        let share = work.saturating_sub(self.second_work).div_duration_f64(elapsed);
        self.share_max = self.share_max.max(share);
        (self.second_begun, self.second_work) = (now, work);
    }
}
