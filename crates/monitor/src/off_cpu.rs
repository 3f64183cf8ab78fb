//! Where in the kernel a process waits, by a BPF program.

mod symbols;

use crate::bpf::{BpfError, Compiled, Programs, compiled, words};
use crate::clock::monotonic_ns;
use libbpf_rs::{MapCore as _, MapFlags};
use observe::{OffCpuReport, OffCpuStack};
use std::cmp::Reverse;
use symbols::Symbols;

/// A BPF program that adds up where the threads of one process wait in the kernel: for room in a socket's send buffer, for
/// data, for a disk. Dropped, it is taken away, and what it saw is lost.
#[derive(Debug)]
pub struct OffCpu {
    programs: Programs,
    begun_ns: u64,
}

static COMPILED: &Compiled<[u8]> = compiled!("off_cpu");

/// With it the kernel's scheduler begins; what is further in is the same for all, and the program itself.
const SCHEDULER: &str = "__schedule";

impl OffCpu {
    /// Begins to watch the process of this number.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn start(process: u32) -> Result<Self, BpfError> {
        let begun_ns = monotonic_ns();
        Ok(Self { programs: Programs::load(COMPILED, &[process])?, begun_ns })
    }

    /// Takes the program away. A wait that has not ended is not told.
    ///
    /// # Errors
    /// If the kernel does not hand over what it counted.
    pub fn stop(mut self) -> Result<OffCpuReport, BpfError> {
        self.programs.detach();
        let (symbols, stacks) = (Symbols::read()?, self.programs.map("stacks")?);
        let totals = self.programs.map("totals")?;
        let mut report = OffCpuReport { begun_ns: self.begun_ns, ..OffCpuReport::default() };
        for key in totals.keys() {
            let (Some(total), Some(stack)) =
                (totals.lookup(&key, MapFlags::ANY)?, stacks.lookup(&key, MapFlags::ANY)?)
            else {
                continue;
            };
            let mut total = words(&total);
            report.stacks.push(OffCpuStack {
                frames: frames(&symbols, &stack),
                waits: total.next().unwrap_or_default(),
                waited_ns: total.next().unwrap_or_default(),
            });
        }
        report.stacks.sort_by_key(|stack| Reverse(stack.waited_ns));
        let cost = self.programs.cost()?;
        (report.calls, report.busy_ns, report.waits_lost) = (cost.calls, cost.busy_ns, cost.lost);
        report.ended_ns = monotonic_ns();
        Ok(report)
    }
}

fn frames(symbols: &Symbols, stack: &[u8]) -> Vec<String> {
    // What is not needed of the room for a stack is zero.
    let addresses = words(stack).take_while(|address| *address != 0);
    let mut frames: Vec<String> = addresses.map(|address| symbols.name(address)).collect();
    if let Some(scheduler) = frames.iter().position(|frame| frame == SCHEDULER) {
        frames.drain(..=scheduler);
    }
    frames
}
