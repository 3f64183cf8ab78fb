//! Traces of TCP by BPF programs.

mod event;

use crate::TRACE_QUIET;
use crate::clock::{monotonic_ns, processor_ns};
use bpf::{BpfError, Programs, RingBufferBuilder, TCP_TRACE, network_namespace};
use event::parse;
use observe::{TcpEvent, TcpTrace};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Selects the events to trace, and how many to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// Restricts the trace to connections with this port at one end.
    pub port: Option<u16>,
    /// How long the tracer skips consecutive arrivals, or consecutive writes, that do not change the congestion window,
    /// the slow start threshold, the congestion state, or whether a writer waits. Zero reports every event, some 60000
    /// per second at 500 Mbit/s. In whole microseconds, an hour at most.
    pub quiet: Duration,
    /// How many events to keep. One takes 88 bytes.
    pub events_max: usize,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self { port: None, quiet: TRACE_QUIET, events_max: 4_000_000 }
    }
}

/// Running BPF programs, and a thread that collects their events. Dropping it detaches the programs and discards the
/// trace.
#[derive(Debug)]
pub struct Tracer {
    bell: Arc<OwnedFd>,
    /// The thread, until it is stopped.
    thread: Option<JoinHandle<Result<TcpTrace, BpfError>>>,
}

const QUIET_MAX: Duration = Duration::from_secs(3600);

/// How often the thread looks for events. The programs do not wake it, because waking would cost more than they do.
/// Between two looks there is room for more events than two processors can cause.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

impl Tracer {
    /// Starts to trace connections of the calling thread's network namespace.
    ///
    /// # Errors
    /// If the kernel refuses the programs.
    pub fn start(options: &TraceOptions) -> Result<Self, BpfError> {
        let bell =
            Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?);
        let begun_ns = monotonic_ns();
        let port = u32::from(options.port.unwrap_or_default());
        let quiet_us = u32::try_from(options.quiet.min(QUIET_MAX).as_micros()).unwrap_or(u32::MAX);
        let programs = Programs::load(TCP_TRACE, &[network_namespace()?, port, quiet_us])?;
        let (events_max, thread_bell) = (options.events_max, bell.clone());
        let run = move || run(programs, begun_ns, events_max, &thread_bell);
        let thread = thread::Builder::new().name("tracer".to_owned()).spawn(run)?;
        Ok(Self { bell, thread: Some(thread) })
    }

    /// Detaches the programs, collects the remaining events, and returns the trace.
    ///
    /// # Errors
    /// If the kernel did not hand over the events.
    ///
    /// # Panics
    /// If the thread has panicked.
    pub fn stop(mut self) -> Result<TcpTrace, BpfError> {
        self.end().expect("it is stopped once").unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn end(&mut self) -> Option<thread::Result<Result<TcpTrace, BpfError>>> {
        let thread = self.thread.take()?;
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        Some(thread.join())
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // An error cannot be reported here.
        let _ = self.end();
    }
}

/// Collects events until the bell rings.
fn run(
    mut programs: Programs,
    begun_ns: u64,
    events_max: usize,
    bell: &OwnedFd,
) -> Result<TcpTrace, BpfError> {
    let trace = RefCell::new(TcpTrace { begun_ns, ..TcpTrace::default() });
    let events = programs.map("events")?;
    let mut ring = RingBufferBuilder::new();
    ring.add(&events, |bytes| {
        keep(&mut trace.borrow_mut(), parse(bytes), events_max);
        0
    })?;
    let ring = ring.build()?;
    while poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&LOOK)) != Ok(1) {
        ring.consume()?;
    }
    programs.detach();
    ring.consume()?;
    drop(ring);
    let cost = programs.cost()?;
    let mut trace = trace.into_inner();
    // Processors write events independently, so neighbouring events may be out of order.
    trace.events.sort_by_key(|event| event.at_ns);
    trace.events_lost += cost.lost;
    (trace.calls, trace.busy_ns) = (cost.calls, cost.busy_ns);
    (trace.processor_ns, trace.ended_ns) = (processor_ns(), monotonic_ns());
    Ok(trace)
}

fn keep(trace: &mut TcpTrace, event: Option<TcpEvent>, events_max: usize) {
    match event.filter(|_| trace.events.len() < events_max) {
        Some(event) => trace.events.push(event),
        None => trace.events_lost += 1,
    }
}
