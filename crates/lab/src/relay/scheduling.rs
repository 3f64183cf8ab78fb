//! The scheduling of the calling thread.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use std::num::NonZeroU64;

/// Above every ordinary process, below the kernel's own real-time threads.
const PRIORITY: i32 = 10;

/// Makes the calling thread wake in time. Returns whether it has priority over ordinary processes.
pub(super) fn be_punctual() -> bool {
    // If refused, it wakes a little late, which the relay measures.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    take_precedence().is_ok()
}

/// Makes the calling thread run before everything ordinary.
pub(super) fn take_precedence() -> io::Result<()> {
    schedule(libc::SCHED_FIFO, PRIORITY)
}

/// Makes the calling thread run only when nothing else wants to.
pub(super) fn give_way() -> io::Result<()> {
    schedule(libc::SCHED_IDLE, 0)
}

/// Keeps the calling thread on one processor.
pub(super) fn stay_at(processor: usize) -> io::Result<()> {
    let mut here = CpuSet::new();
    here.set(processor);
    Ok(sched_setaffinity(None, &here)?)
}

/// The processor of the relay's thread: the last that the calling thread may use; none if that is its only one. The hosts'
/// packets are processed on the others, in hexadecimal as the kernel reads them (`Documentation/networking/scaling.rst`).
pub(crate) fn processors() -> Option<(usize, String)> {
    let all = sched_getaffinity(None).ok()?;
    let is_allowed = |processor: &usize| all.is_set(*processor);
    let relay = (0..CpuSet::MAX_CPU).rfind(is_allowed).filter(|_| all.count() > 1)?;
    let word =
        |word: usize| (0..32).filter(move |bit| word * 32 + bit != relay && all.is_set(word * 32 + bit));
    let words = (0..=relay / 32).rev().map(|at| word(at).fold(0_u32, |mask, bit| mask | 1 << bit));
    Some((relay, words.map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(",")))
}

fn schedule(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    // SAFETY: plain integers, for which all-zero bytes are a value.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: the kernel reads `parameters`, which outlives the call.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
