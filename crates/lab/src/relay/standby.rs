//! A second thread that serves the relay when the relay's own thread does not.
//!
//! A hypervisor takes processors away for milliseconds, mostly one at a time. This thread therefore stays on another
//! processor than the relay's, wakes regularly, and does the relay's work if nobody has for a moment.

use super::forwarder::Forwarder;
use super::scheduling;
use super::watch::Looker;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The inverse of the share of the round trip that this thread sleeps. If nobody looked meanwhile, it does; frames are
/// then late by at most twice that.
const PERIOD_SHARE: u32 = 80;
/// A wake-up costs a virtual machine about 20 µs.
const PERIOD_MIN: Duration = Duration::from_micros(250);
const PERIOD_MAX: Duration = Duration::from_micros(500);

/// A thread that stands by until this is dropped.
#[derive(Debug)]
pub(crate) struct Standby {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Standby {
    /// Starts the thread. `bell` wakes the relay's thread, whose plans are outdated after another has looked. On a
    /// machine with one processor there is no standby.
    pub fn start(
        forwarder: Arc<Mutex<Forwarder>>,
        bell: Arc<OwnedFd>,
        round_trip: Duration,
    ) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let processors = sched_getaffinity(None)?;
        if processors.count() < 2 {
            return Ok(Self { is_over, thread: None });
        }
        let period = (round_trip / PERIOD_SHARE).clamp(PERIOD_MIN, PERIOD_MAX);
        let place = Place { processors, beside: None };
        let duty = Duty { forwarder, bell, is_over: is_over.clone(), period, place };
        let thread = thread::Builder::new().name("relay-standby".to_owned()).spawn(move || duty.run())?;
        Ok(Self { is_over, thread: Some(thread) })
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its panic poisons the forwarder's lock, which tells the relay's thread.
            let _ = thread.join();
        }
    }
}

/// The thread's work.
struct Duty {
    forwarder: Arc<Mutex<Forwarder>>,
    bell: Arc<OwnedFd>,
    is_over: Arc<AtomicBool>,
    period: Duration,
    place: Place,
}

impl Duty {
    fn run(mut self) {
        scheduling::be_punctual();
        while !self.is_over.load(Ordering::Relaxed) {
            thread::sleep(self.period);
            // The holder of the lock is looking.
            let Ok(mut forwarder) = self.forwarder.try_lock() else { continue };
            self.place.leave(forwarder.last_look.processor());
            if forwarder.stand_in(Looker::Standby, self.period) {
                drop(forwarder);
                let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
            }
        }
    }
}

/// The processors of the calling thread.
struct Place {
    /// The processors that the program may use.
    processors: CpuSet,
    /// The processors except this one.
    beside: Option<usize>,
}

impl Place {
    /// Moves to another processor than this one, which is the relay's.
    fn leave(&mut self, processor: usize) {
        if self.beside == Some(processor) {
            return;
        }
        let mut others = self.processors;
        others.unset(processor);
        // If refused, it stays where it is, and is less useful.
        let _ = sched_setaffinity(None, &others);
        self.beside = Some(processor);
    }
}
