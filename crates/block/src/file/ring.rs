//! Transfers by io_uring.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use io_uring::types::{Fd, FsyncFlags};
use io_uring::{IoUring, Probe, opcode, squeue};
use rustix::io::{Errno, ReadWriteFlags};

use super::transfer::{Next, Over, Step, Transfer};

/// Transfers in the kernel at once: more than one shard's disks can use. Further ones wait in a queue here, which the
/// callers' buffer budget bounds.
const DEPTH: u32 = 256;

/// One io_uring. Submissions go out at once. The same call delivers completions that are ready, so that reading cached
/// data never waits for the event loop.
pub(super) struct Ring {
    state: Mutex<State>,
    descriptor: i32,
}

struct State {
    uring: IoUring,
    /// The kernel's transfers, by the number in `user_data`. The entries own the memory that the kernel reads and
    /// writes.
    in_flight: Box<[Option<Transfer>]>,
    free: Vec<u32>,
    queued: VecDeque<Transfer>,
}

impl Ring {
    /// `Err` if the kernel lacks io_uring or a part of it that we need, or refuses it to this process.
    pub(super) fn new() -> std::io::Result<Self> {
        let uring = IoUring::new(DEPTH)?;
        let mut probe = Probe::new();
        uring.submitter().register_probe(&mut probe)?;
        let needed = [opcode::Read::CODE, opcode::Write::CODE, opcode::Fsync::CODE];
        if !needed.into_iter().all(|code| probe.is_supported(code)) {
            return Err(std::io::ErrorKind::Unsupported.into());
        }
        let descriptor = uring.as_raw_fd();
        let in_flight = (0..DEPTH).map(|_| None).collect();
        let state = State { uring, in_flight, free: (0..DEPTH).rev().collect(), queued: VecDeque::new() };
        Ok(Self { state: Mutex::new(state), descriptor })
    }

    /// Readable when there is something to [`reap`](Ring::reap).
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is the ring's, which lives as long as `self`.
        unsafe { BorrowedFd::borrow_raw(self.descriptor) }
    }

    pub(super) fn start(&self, transfer: Transfer) {
        self.lock().queued.push_back(transfer);
        self.reap();
    }

    /// Delivers finished transfers and submits waiting ones. Returns the number delivered.
    pub(super) fn reap(&self) -> usize {
        let over = self.lock().turn();
        let count = over.len();
        over.into_iter().for_each(Over::tell);
        count
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn turn(&mut self) -> Vec<Over> {
        let mut over = Vec::new();
        loop {
            self.collect(&mut over);
            if !self.push_queued() || !self.submit() {
                return over;
            }
        }
    }

    /// Takes the kernel's completions. Unfinished transfers return to the front of the queue.
    fn collect(&mut self, over: &mut Vec<Over>) {
        for entry in self.uring.completion() {
            let Ok(slot) = u32::try_from(entry.user_data()) else { continue };
            let Some(transfer) = self.in_flight.get_mut(slot as usize).and_then(Option::take) else {
                continue;
            };
            self.free.push(slot);
            let outcome =
                usize::try_from(entry.result()).map_err(|_| Errno::from_raw_os_error(-entry.result()));
            match transfer.advance(outcome) {
                Next::Again(rest) => self.queued.push_front(rest),
                Next::Over(ended) => over.push(ended),
            }
        }
    }

    /// Moves queued transfers to the submission queue; returns whether it has any.
    fn push_queued(&mut self) -> bool {
        while let Some(slot) = self.free.last().copied()
            && let Some(mut transfer) = self.queued.pop_front()
        {
            let entry = entry_of(&mut transfer).user_data(u64::from(slot));
            // SAFETY: the entry's memory and file belong to `transfer`, which stays in `in_flight` until the kernel
            // has completed it; meanwhile nothing here touches that memory.
            if unsafe { self.uring.submission().push(&entry) }.is_err() {
                // The kernel has not taken the earlier entries yet (see `submit`).
                self.queued.push_front(transfer);
                break;
            }
            self.in_flight[slot as usize] = Some(transfer);
            self.free.pop();
        }
        !self.uring.submission().is_empty()
    }

    /// Hands the submission queue to the kernel; returns whether that worked. If the kernel is short of memory, the
    /// entries stay until the next completion; without any transfer under way, there is none.
    fn submit(&mut self) -> bool {
        while self.uring.submit().is_err() {
            let unsubmitted = self.uring.submission().len();
            if self.free.len() + unsubmitted < self.in_flight.len() {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }
}

fn entry_of(transfer: &mut Transfer) -> squeue::Entry {
    let (file, step) = transfer.step();
    let file = Fd(file.as_raw_fd());
    match step {
        Step::Read { offset, into } => {
            opcode::Read::new(file, into.as_mut_ptr(), entry_bytes(into)).offset(offset).build()
        }
        Step::Write { offset, from, fua } => {
            let flags = if fua { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
            // The kernel's type for these flags is signed; only the bits matter.
            let flags = flags.bits().cast_signed();
            opcode::Write::new(file, from.as_ptr(), entry_bytes(from)).offset(offset).rw_flags(flags).build()
        }
        Step::Flush => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
    }
}

/// No buffer is longer than `BUFFER_BYTES_MAX`; otherwise the rest would follow in a further step.
fn entry_bytes(memory: &[u8]) -> u32 {
    u32::try_from(memory.len()).unwrap_or(u32::MAX)
}

impl Drop for State {
    /// Waits until the kernel has released all memory.
    fn drop(&mut self) {
        while self.in_flight.iter().any(Option::is_some) || !self.queued.is_empty() {
            self.push_queued();
            if let Err(error) = self.uring.submit_and_wait(1)
                && error.kind() != std::io::ErrorKind::Interrupted
            {
                // The kernel may still use the memory, so it is leaked rather than reused.
                self.in_flight.iter_mut().filter_map(Option::take).for_each(std::mem::forget);
                return;
            }
            let mut over = Vec::new();
            self.collect(&mut over);
            over.into_iter().for_each(Over::tell);
        }
    }
}
