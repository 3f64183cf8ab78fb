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

/// The processors that the calling thread may use.
pub(super) fn processors() -> io::Result<Vec<usize>> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect())
}

/// The division of the processors that the calling thread may use.
pub(crate) struct Division {
    /// The relay's thread has the last.
    pub relay: usize,
    /// The hosts' packets are processed on the others.
    hosts: Vec<usize>,
}

impl Division {
    /// None if there is only one processor.
    pub fn of_this_thread() -> Option<Self> {
        let mut hosts = processors().ok()?;
        let relay = hosts.pop()?;
        (!hosts.is_empty()).then_some(Self { relay, hosts })
    }

    /// The hosts' processors as the kernel reads them: in hexadecimal, 32 at a time, the highest first
    /// (`Documentation/networking/scaling.rst`).
    pub fn hosts_mask(&self) -> String {
        let mut words = vec![0_u32; self.relay / 32 + 1];
        for processor in &self.hosts {
            words[processor / 32] |= 1 << (processor % 32);
        }
        let words: Vec<_> = words.iter().rev().map(|word| format!("{word:08x}")).collect();
        words.join(",")
    }
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

#[cfg(test)]
mod tests {
    use super::Division;

    #[test]
    fn a_mask_has_its_highest_processors_first() {
        let mask = |relay, hosts: &[usize]| Division { relay, hosts: hosts.to_vec() }.hosts_mask();
        assert_eq!(mask(1, &[0]), "00000001");
        assert_eq!(mask(35, &[0, 1, 31, 32, 34]), "00000005,80000003");
    }
}
