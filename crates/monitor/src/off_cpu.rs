//! Finds where in the kernel a process waits, by a BPF program.

mod symbols;

use crate::clock::monotonic_ns;
use bpf::{BpfError, MapCore as _, MapFlags, OFF_CPU, Programs, network_namespace, words};
use observe::{OffCpuReport, OffCpuStack};
use std::cmp::Reverse;
use symbols::Symbols;

/// A BPF program that adds up where threads of one process wait in the kernel: for room in a socket's send buffer, for
/// data, for a disk. Dropping it detaches the program and discards its sums.
#[derive(Debug)]
pub struct OffCpu {
    programs: Programs,
    begun_ns: u64,
}

/// The length of the thread's number, which begins `struct place`. The number of the stack follows.
const THREAD_BYTES: usize = size_of::<u32>();
/// The number of words that begin `struct total`. The thread's name follows.
const TOTAL_WORDS: usize = 4;

/// The function that enters the kernel's scheduler. Deeper frames are the same for all stacks, and belong to the
/// program itself.
const SCHEDULER: &str = "__schedule";

impl OffCpu {
    /// Starts to watch the threads of a process (by its pid) that are in the calling thread's network namespace.
    ///
    /// # Errors
    /// If the kernel refuses the program.
    pub fn start(process: u32) -> Result<Self, BpfError> {
        let begun_ns = monotonic_ns();
        Ok(Self { programs: Programs::load(OFF_CPU, &[process, network_namespace()?])?, begun_ns })
    }

    /// Detaches the program and returns its sums. They exclude waits that have not ended.
    ///
    /// # Errors
    /// If the kernel does not hand over the sums.
    pub fn stop(mut self) -> Result<OffCpuReport, BpfError> {
        self.programs.detach();
        let (symbols, stacks) = (Symbols::read()?, self.programs.map("stacks")?);
        let totals = self.programs.map("totals")?;
        let mut report = OffCpuReport { begun_ns: self.begun_ns, ..OffCpuReport::default() };
        for place in totals.keys() {
            let stack = stacks.lookup(place.get(THREAD_BYTES..).unwrap_or_default(), MapFlags::ANY)?;
            let total = totals.lookup(&place, MapFlags::ANY)?;
            let parsed = total.zip(stack).and_then(|(total, stack)| {
                Some(OffCpuStack { frames: frames(&symbols, &stack), ..parse(&place, &total)? })
            });
            report.stacks.extend(parsed);
        }
        report.stacks.sort_by_key(|stack| Reverse(stack.waited_ns));
        let cost = self.programs.cost()?;
        (report.calls, report.busy_ns, report.waits_lost) = (cost.calls, cost.busy_ns, cost.lost);
        report.ended_ns = monotonic_ns();
        Ok(report)
    }
}

/// Reads `struct place` and `struct total` of `bpf/off_cpu.bpf.c`, all but the stack.
fn parse(place: &[u8], total: &[u8]) -> Option<OffCpuStack> {
    let (counts, name) = total.split_at_checked(TOTAL_WORDS * size_of::<u64>())?;
    let mut counts = words(counts);
    let name: Vec<u8> = name.iter().copied().take_while(|byte| *byte != 0).collect();
    Some(OffCpuStack {
        thread: u32::from_ne_bytes(*place.first_chunk()?),
        name: String::from_utf8_lossy(&name).into_owned(),
        frames: Vec::new(),
        waits: counts.next()?,
        waited_ns: counts.next()?,
        begun_ns: counts.next()?,
        ended_ns: counts.next()?,
    })
}

fn frames(symbols: &Symbols, stack: &[u8]) -> Vec<String> {
    // Unused places of a stack are zero.
    let addresses = words(stack).take_while(|address| *address != 0);
    let mut frames: Vec<String> = addresses.map(|address| symbols.name(address)).collect();
    if let Some(scheduler) = frames.iter().position(|frame| frame == SCHEDULER) {
        frames.drain(..=scheduler);
    }
    frames
}
