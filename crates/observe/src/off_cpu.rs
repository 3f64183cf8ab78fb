//! Where in the kernel threads waited. Times are those of `CLOCK_MONOTONIC`, in nanoseconds.

use serde::{Deserialize, Serialize};

/// Where the threads of a process waited, and what it cost to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffCpuReport {
    /// When it began.
    pub begun_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// Where they waited, the longest first.
    pub stacks: Vec<OffCpuStack>,
    /// Waits that are missing, because there was no room for more.
    pub waits_lost: u64,
    /// How often the kernel called the program: whenever a processor went from one thread to another.
    pub calls: u64,
    /// What that took, in processor time.
    pub busy_ns: u64,
}

/// One place where one thread waited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffCpuStack {
    /// The thread's number.
    pub thread: u32,
    /// What it was called; the kernel keeps 15 bytes of it.
    pub name: String,
    /// Functions of the kernel, the innermost first, as it names them; addresses where it hides the names.
    pub frames: Vec<String>,
    /// How often.
    pub waits: u64,
    /// How long, together.
    pub waited_ns: u64,
    /// When the first of these waits began.
    pub begun_ns: u64,
    /// When the last ended.
    pub ended_ns: u64,
}

/// Functions in which a thread sleeps for whoever called them, by how their names begin.
const SLEEP: [&str; 4] = ["schedule", "io_schedule", "preempt_schedule", "wait_woken"];

impl OffCpuReport {
    /// The share of one processor that it took to know this.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share, of times below 104 days")]
    pub fn processor_share(&self) -> f64 {
        self.busy_ns as f64 / self.ended_ns.saturating_sub(self.begun_ns).max(1) as f64
    }
}

impl OffCpuStack {
    /// The functions that wait, the innermost first: without those that only put a thread to sleep, whatever for.
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
