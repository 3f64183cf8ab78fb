//! Keeps processors from halting while a relay works, and watches the relay meanwhile.
//!
//! A hypervisor takes back a processor that halts, and may be milliseconds late to return it, for all of them at once. So
//! each processor has a thread that loops whenever nothing else wants to run there. (The kernel's own request for that,
//! `Documentation/power/pm_qos_interface.rst`, takes root, and does nothing where no driver manages idle processors, as in
//! many virtual machines.) Looping, it sees at once if the relay's thread, on another processor, does not look, and looks
//! instead: a timer, which the thread that stands by waits for, costs a virtual machine too much to be as quick.

use super::clock::Clock;
use super::forwarder::{Forwarder, LastLook};
use super::report::lateness_max;
use super::scheduling;
use super::watch::Looker;
use std::hint::spin_loop;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The longest time after which a look is missing. On shorter paths it is half of what the verdict allows.
const PATIENCE_MAX: Duration = Duration::from_micros(500);

/// Processors stay awake until this is dropped.
#[derive(Debug)]
pub(crate) struct Wakefulness {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Wakefulness {
    /// `bell` wakes the relay's thread, whose plans are outdated after another has looked.
    /// Fails if the system refuses a thread or its place.
    pub fn begin(forwarder: &Arc<Mutex<Forwarder>>, bell: &Arc<OwnedFd>) -> io::Result<Self> {
        let mut wakefulness = Self { is_over: Arc::default(), threads: Vec::new() };
        for processor in scheduling::processors()? {
            let is_over = Arc::clone(&wakefulness.is_over);
            let waker = Waker::new(processor, Arc::clone(forwarder), Arc::clone(bell), is_over);
            wakefulness.threads.push(waker.start()?);
        }
        forwarder.lock().unwrap_or_else(PoisonError::into_inner).keeps_processors_awake = true;
        Ok(wakefulness)
    }
}

impl Drop for Wakefulness {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // Its panic poisons the forwarder's lock, which tells the relay's thread.
            let _ = thread.join();
        }
    }
}

/// The work of one thread.
struct Waker {
    processor: usize,
    forwarder: Arc<Mutex<Forwarder>>,
    bell: Arc<OwnedFd>,
    is_over: Arc<AtomicBool>,
    clock: Clock,
    last_look: Arc<LastLook>,
    patience: Duration,
    /// Whoever holds the forwarder must not give way to others.
    may_look: bool,
}

impl Waker {
    fn new(
        processor: usize,
        forwarder: Arc<Mutex<Forwarder>>,
        bell: Arc<OwnedFd>,
        is_over: Arc<AtomicBool>,
    ) -> Self {
        let of_relay = forwarder.lock().unwrap_or_else(PoisonError::into_inner);
        let (clock, last_look) = (of_relay.tools.clock, Arc::clone(&of_relay.last_look));
        let patience = (lateness_max(of_relay.round_trip) / 2).min(PATIENCE_MAX);
        let may_look = of_relay.has_priority;
        drop(of_relay);
        Self { processor, forwarder, bell, is_over, clock, last_look, patience, may_look }
    }

    /// Returns when the thread gives way to all others.
    fn start(self) -> io::Result<JoinHandle<()>> {
        let (settled, has_settled) = sync_channel(1);
        let thread = thread::Builder::new().name("relay-awake".to_owned()).spawn(move || {
            let is_settled = scheduling::stay_at(self.processor).and_then(|()| scheduling::give_way());
            let gives_way = is_settled.is_ok();
            // The caller waits for this.
            let _ = settled.send(is_settled);
            if gives_way {
                self.run();
            }
        })?;
        has_settled.recv().expect("the thread has told before it ends").map(|()| thread)
    }

    fn run(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            spin_loop();
            if self.may_look && self.is_missed() && self.look().is_err() {
                // It must not loop in the way of others.
                return;
            }
        }
    }

    /// Whether something is due while the relay's thread sleeps on this processor, or that thread, on another one, should
    /// have looked.
    fn is_missed(&self) -> bool {
        let now = self.clock.now();
        match self.last_look.processor() == self.processor {
            true => self.last_look.is_due(now),
            false => self.last_look.is_past(now, self.patience),
        }
    }

    /// Looks, unless somebody does already. Fails if the thread may not change its precedence.
    fn look(&self) -> io::Result<()> {
        scheduling::take_precedence()?;
        let must_ring = self
            .forwarder
            .try_lock()
            .is_ok_and(|mut forwarder| forwarder.stand_in(Looker::Awake, self.patience));
        if must_ring {
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
        scheduling::give_way()
    }
}
