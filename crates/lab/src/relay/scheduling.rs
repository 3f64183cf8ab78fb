//! The scheduling of the calling thread.

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
