//! Records what the controls in the kernel do.

use crate::kernel::ours;
use crate::record::Recording;
use crate::{Error, Record};
use bpf::{BpfError, MapCore as _, MapFlags, RingBufferBuilder};
use std::cell::RefCell;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A running record of all connections of a network namespace that use a control of ours. There is one at a time on a
/// machine. Dropping it ends it.
#[derive(Debug)]
pub struct Recorder {
    /// The thread works while this is there.
    ending: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<Recording, BpfError>>>,
}

/// How often records are collected. Meanwhile, the kernel has room for 40000.
const LOOK: Duration = Duration::from_millis(10);

impl Recorder {
    /// Starts to record connections of the calling thread's network namespace with this port at one end, or all of them.
    ///
    /// # Errors
    /// If no control is loaded, or this user may not.
    pub fn start(port: Option<u16>) -> Result<Self, Error> {
        let namespace = bpf::network_namespace().map_err(|error| failed(&error))?;
        want(namespace, port).map_err(|error| failed(&error))?;
        let (ending, end) = channel();
        let collect = move || {
            let recording = collect(&end);
            // Also if something has failed.
            want(0, None).and(recording)
        };
        let thread = thread::Builder::new().name("recorder".to_owned()).spawn(collect);
        let thread = thread.map_err(|error| failed(&error))?;
        Ok(Self { ending: Some(ending), thread: Some(thread) })
    }

    /// Ends the record and returns it, in no particular order of connections.
    ///
    /// # Errors
    /// If the kernel did not hand over what it has recorded.
    ///
    /// # Panics
    /// If its thread has panicked.
    pub fn stop(mut self) -> Result<Recording, Error> {
        let records = self.end().expect("it is stopped once");
        records.unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(|error| failed(&error))
    }

    fn end(&mut self) -> Option<thread::Result<Result<Recording, BpfError>>> {
        self.ending.take();
        Some(self.thread.take()?.join())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // An error cannot be reported here.
        let _ = self.end();
    }
}

/// Collects records until `end` says so.
fn collect(end: &Receiver<()>) -> Result<Recording, BpfError> {
    let records = RefCell::new(Vec::new());
    let map = ours().map("records")?;
    let mut ring = RingBufferBuilder::new();
    ring.add(&map, |bytes| {
        records.borrow_mut().extend(Record::from_bytes(bytes));
        0
    })?;
    let ring = ring.build()?;
    while end.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        ring.consume()?;
    }
    let lost = lost()?;
    want(0, None)?;
    ring.consume()?;
    drop(ring);
    Ok(Recording { records: records.into_inner(), lost })
}

/// Says whose calls are to be recorded: those of a network namespace, by its inode number; none if that is zero.
fn want(namespace: u32, port: Option<u16>) -> Result<(), BpfError> {
    // The last word counts lost records.
    let mut wanted = [0; 16];
    wanted[..4].copy_from_slice(&namespace.to_ne_bytes());
    wanted[4..8].copy_from_slice(&u32::from(port.unwrap_or(0)).to_ne_bytes());
    Ok(ours().map("recording")?.update(&0_u32.to_ne_bytes(), &wanted, MapFlags::ANY)?)
}

/// Records for which there was no room.
fn lost() -> Result<u64, BpfError> {
    let wanted = ours().map("recording")?.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?;
    Ok(bpf::words(&wanted.unwrap_or_default()).nth(1).unwrap_or_default())
}

fn failed(error: &dyn std::error::Error) -> Error {
    Error::Groups { what: "record what congestion controls do", problem: error.to_string() }
}
