//! Keeps processors from halting while a relay works, where that helps.
//!
//! A hypervisor takes back a processor that halts, and may be milliseconds late to return it, for all of them at once. So
//! each processor has a thread that loops whenever nothing else wants to run there. (The kernel's own request for that,
//! `Documentation/power/pm_qos_interface.rst`, takes root, and does nothing where no driver manages idle processors, as in
//! many virtual machines.) But a host that limits a machine's processor time counts the loops, too, and takes all processors
//! away for milliseconds when the time is used up. Which kind of host this is, runs show: after one in which the relay was
//! late, the next one is done the other way.

use super::scheduling;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::hint::spin_loop;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};

/// Whether processors may halt. All relays of a process have the same processors.
static MAY_HALT: AtomicBool = AtomicBool::new(false);

/// Processors stay awake until this is dropped.
#[derive(Debug)]
pub(crate) struct Wakefulness {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Wakefulness {
    /// `None` if processors may halt. Fails if the system refuses a thread or its place.
    pub fn begin() -> io::Result<Option<Self>> {
        if MAY_HALT.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let mut wakefulness = Self { is_over: Arc::default(), threads: Vec::new() };
        let processors = sched_getaffinity(None)?;
        for processor in (0..CpuSet::MAX_CPU).filter(|processor| processors.is_set(*processor)) {
            wakefulness.keep_awake(processor)?;
        }
        Ok(Some(wakefulness))
    }

    fn keep_awake(&mut self, processor: usize) -> io::Result<()> {
        let is_over = Arc::clone(&self.is_over);
        let (settled, has_settled) = sync_channel(1);
        let thread = thread::Builder::new().name("relay-awake".to_owned()).spawn(move || {
            let is_settled = stay_at(processor).and_then(|()| scheduling::give_way());
            let may_loop = is_settled.is_ok();
            // The caller waits for this.
            let _ = settled.send(is_settled);
            while may_loop && !is_over.load(Ordering::Relaxed) {
                spin_loop();
            }
        })?;
        self.threads.push(thread);
        has_settled.recv().expect("the thread has told before it ends")
    }

    /// Does it the other way from the next relay on.
    pub fn change() {
        MAY_HALT.fetch_not(Ordering::Relaxed);
    }
}

impl Drop for Wakefulness {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It does nothing that could panic.
            let _ = thread.join();
        }
    }
}

/// Keeps the calling thread on one processor.
fn stay_at(processor: usize) -> io::Result<()> {
    let mut here = CpuSet::new();
    here.set(processor);
    Ok(sched_setaffinity(None, &here)?)
}
