//! A device whose completions the test decides, over a RAM disk.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use ropewalk_block::{
    Backend, BlockError, BlockErrorKind, Completer, Completion, Operation, Pending, Properties, Ram,
};

/// Clones are the same device.
#[derive(Clone)]
pub struct Scripted(Arc<State>);

struct State {
    disk: Ram,
    script: Mutex<Script>,
}

#[derive(Default)]
struct Script {
    log: Vec<String>,
    holding: bool,
    failing: bool,
    held: VecDeque<(Operation, Completer)>,
}

impl Scripted {
    pub fn new(bytes: u64) -> Self {
        let disk = Ram::new(512, bytes / 512).unwrap();
        Self(Arc::new(State { disk, script: Mutex::default() }))
    }

    /// From now on, operations wait for [`release_one`](Self::release_one).
    pub fn hold(&self) {
        self.0.script.lock().unwrap().holding = true;
    }

    /// From now on, operations run at once; those that wait still do.
    pub fn stop_holding(&self) {
        self.0.script.lock().unwrap().holding = false;
    }

    pub fn set_failing(&self, failing: bool) {
        self.0.script.lock().unwrap().failing = failing;
    }

    /// Carries out and completes the operation that has waited longest; whether there was one.
    pub fn release_one(&self) -> bool {
        let held = self.0.script.lock().unwrap().held.pop_front();
        let Some((operation, completer)) = held else { return false };
        completer.complete(self.carry_out(operation));
        true
    }

    pub fn release_all(&self) {
        self.stop_holding();
        while self.release_one() {}
    }

    /// What has been submitted so far, in order, as `write 4096+512`.
    pub fn log(&self) -> Vec<String> {
        self.0.script.lock().unwrap().log.clone()
    }

    /// What is on the device, whatever its script says.
    pub fn contents(&self, offset: u64, bytes: usize) -> Vec<u8> {
        let buffer = ropewalk_block::Slab::new(16 << 20).allocate(bytes).unwrap();
        let read = self.0.disk.submit(Operation::Read { offset, buffer });
        super::done(read).into_buffer().unwrap().to_vec()
    }

    fn carry_out(&self, operation: Operation) -> Completion {
        if self.0.script.lock().unwrap().failing {
            let error = BlockError::new(BlockErrorKind::Medium, "scripted");
            return Completion::refused(operation, error);
        }
        super::done(self.0.disk.submit(operation))
    }
}

impl Backend for Scripted {
    fn properties(&self) -> Properties {
        self.0.disk.properties()
    }

    fn submit(&self, operation: Operation) -> Pending {
        let mut script = self.0.script.lock().unwrap();
        let fua = if matches!(operation, Operation::Write { fua: true, .. }) { " fua" } else { "" };
        let line = match operation.range() {
            Some(range) => format!("{}{fua} {}+{}", operation.name(), range.offset, range.bytes),
            None => operation.name().to_owned(),
        };
        script.log.push(line);
        if script.holding {
            let (completer, pending) = Pending::channel();
            script.held.push_back((operation, completer));
            return pending;
        }
        drop(script);
        Pending::ready(self.carry_out(operation))
    }
}
