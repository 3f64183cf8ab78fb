//! A few threads for blocking calls.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::io::ReadWriteFlags;

use super::transfer::{Next, Step, Transfer};

/// Enough to give a disk a queue to sort, few enough not to crowd the machine.
const THREADS_MAX: usize = 8;

/// Threads that run jobs, started when first needed. They end when the pool is dropped and its jobs are done.
pub(super) struct Pool {
    shared: Arc<Shared>,
}

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    work_arrived: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl Pool {
    pub(super) fn new() -> Self {
        Self { shared: Arc::default() }
    }

    /// Runs the job on some thread. Never blocks; the callers' outstanding operations bound the queue. If no thread can
    /// be started, drops the job and its `Completer`.
    pub(super) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let mut state = self.shared.lock();
        state.jobs.push_back(Box::new(job));
        if state.idle >= state.jobs.len() || state.threads == THREADS_MAX {
            drop(state);
            self.shared.work_arrived.notify_one();
            return;
        }
        let shared = Arc::clone(&self.shared);
        let started = std::thread::Builder::new().name("block-pool".into()).spawn(move || shared.work());
        if started.is_ok() {
            state.threads += 1;
        } else if state.threads == 0 {
            let refused = state.jobs.pop_back();
            drop(state);
            drop(refused);
        }
    }

    pub(super) fn start(&self, mut transfer: Transfer) {
        self.run(move || {
            loop {
                let outcome = carry_out(&mut transfer);
                match transfer.advance(outcome) {
                    Next::Again(rest) => transfer = rest,
                    Next::Over(over) => return over.tell(),
                }
            }
        });
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work_arrived.notify_all();
    }
}

fn carry_out(transfer: &mut Transfer) -> rustix::io::Result<usize> {
    let (file, step) = transfer.step();
    match step {
        Step::Read { offset, into } => rustix::io::pread(file, into, offset),
        Step::Write { offset, from, fua: false } => rustix::io::pwrite(file, from, offset),
        Step::Write { offset, from, fua: true } => {
            rustix::io::pwritev2(file, &[IoSlice::new(from)], offset, ReadWriteFlags::DSYNC)
        }
        Step::Flush => rustix::fs::fdatasync(file).map(|()| 0),
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loop of one thread.
    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.lock();
            } else if state.closed {
                return;
            } else {
                state.idle += 1;
                state = self.work_arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
            }
        }
    }
}
