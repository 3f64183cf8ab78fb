//! The waits of threads in the kernel. Times are those of `CLOCK_MONOTONIC`, in nanoseconds.

use serde::{Deserialize, Serialize};

/// The waits of a process's threads, and the cost of tracing them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffCpuReport {
    /// When it began.
    pub begun_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// The places of the waits, the longest first.
    pub stacks: Vec<OffCpuStack>,
    /// Waits that are missing for want of room.
    pub waits_lost: u64,
    /// Calls of the program by the kernel: one whenever a processor switched threads.
    pub calls: u64,
    /// The processor time of these calls.
    pub busy_ns: u64,
}

/// One place where one thread waited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffCpuStack {
    /// The thread's number.
    pub thread: u32,
    /// Its name, of which the kernel keeps 15 bytes.
    pub name: String,
    /// Functions of the kernel, the innermost first, by name; addresses if the kernel hides the names.
    pub frames: Vec<String>,
    /// The number of waits.
    pub waits: u64,
    /// Their total time.
    pub waited_ns: u64,
    /// The start of the first wait.
    pub begun_ns: u64,
    /// The end of the last wait.
    pub ended_ns: u64,
}

/// The prefixes of functions in which a thread sleeps on behalf of their callers.
const SLEEP: [&str; 4] = ["schedule", "io_schedule", "preempt_schedule", "wait_woken"];

impl OffCpuReport {
    /// The share of one processor that the trace took.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share, of times below 104 days")]
    pub fn processor_share(&self) -> f64 {
        self.busy_ns as f64 / self.ended_ns.saturating_sub(self.begun_ns).max(1) as f64
    }
}

impl OffCpuStack {
    /// The waiting functions, the innermost first, without those that only put a thread to sleep.
    #[must_use]
    pub fn waiting(&self) -> &[String] {
        let is_sleep = |frame: &String| SLEEP.iter().any(|name| frame.starts_with(name));
        let sleeping = self.frames.iter().take_while(|frame| is_sleep(frame)).count();
        &self.frames[sleeping..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(frames: &[&str]) -> Vec<String> {
        let frames = frames.iter().map(|frame| (*frame).to_owned()).collect();
        OffCpuStack { frames, ..OffCpuStack::default() }.waiting().to_vec()
    }

    #[test]
    fn what_waits_is_whoever_puts_the_thread_to_sleep() {
        let writer =
            ["schedule", "schedule_timeout", "wait_woken", "sk_stream_wait_memory", "tcp_sendmsg_locked"];
        assert_eq!(waiting(&writer), ["sk_stream_wait_memory", "tcp_sendmsg_locked"]);
        let poller = ["schedule", "schedule_hrtimeout_range_clock", "ep_poll", "do_epoll_wait"];
        assert_eq!(waiting(&poller), ["ep_poll", "do_epoll_wait"]);
        assert!(waiting(&["schedule"]).is_empty());
    }
}
