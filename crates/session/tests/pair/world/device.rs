//! A device with memory and three commands, which only this world understands.

use super::end::End;
use pdu::{Cdb, Duration, Instant};
use ropewalk_session::seam::{Payload, PayloadRef};
use ropewalk_session::target::{Command, DataOut, Response, Session, TaskId};
use std::collections::HashMap;

const WRITE: u8 = 1;
const READ: u8 = 2;
const HANG: u8 = 3;

pub const GOOD: u8 = 0;
pub const CHECK_CONDITION: u8 = 2;
pub const SENSE: &[u8] = b"no such address";

fn cdb(code: u8, offset: u32) -> Cdb {
    let mut bytes = [0; Cdb::INLINE_BYTES];
    bytes[0] = code;
    bytes[1..5].copy_from_slice(&offset.to_be_bytes());
    bytes.into()
}

pub fn write_at(offset: u32) -> Cdb {
    cdb(WRITE, offset)
}

pub fn read_at(offset: u32) -> Cdb {
    cdb(READ, offset)
}

/// A command that the device starts and does not finish.
pub fn hang() -> Cdb {
    cdb(HANG, 0)
}

/// The device, as the target's driver uses it.
#[derive(Debug)]
pub struct Device {
    pub content: Vec<u8>,
    /// How long every command takes.
    pub delay: Duration,
    /// CDB offsets of writes and reads in the order in which they were executed.
    pub executed: Vec<u32>,
    /// Writes whose data is still to come.
    writing: HashMap<TaskId, (u32, u32)>,
    /// Commands that it has begun, with the time of their end.
    busy: Vec<(Instant, TaskId, Action)>,
    /// Tasks that hang.
    pub hanging: Vec<TaskId>,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Write(u32, DataOut),
    Read(u32, u32),
}

impl Device {
    pub fn new(bytes: usize) -> Self {
        Self {
            content: vec![0; bytes],
            delay: Duration::ZERO,
            executed: Vec::new(),
            writing: HashMap::new(),
            busy: Vec::new(),
            hanging: Vec::new(),
        }
    }

    pub fn execute(&mut self, now: Instant, command: &Command, end: &mut End<Session>) {
        let bytes = command.cdb.bytes();
        let offset = u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
        match bytes[0] {
            HANG => self.hanging.push(command.task),
            _ if offset as usize >= self.content.len() => {
                let response = Response { status: CHECK_CONDITION, sense: SENSE.to_vec(), wanted_bytes: 0 };
                end.session.respond(now, command.task, response);
            }
            WRITE => {
                self.executed.push(offset);
                let wanted_bytes = command.data_out_bytes.min(self.content.len() as u32 - offset);
                self.writing.insert(command.task, (offset, command.data_out_bytes));
                end.session.solicit(now, command.task, wanted_bytes, &mut end.memory);
            }
            _ => {
                self.executed.push(offset);
                let action = Action::Read(offset, command.data_in_bytes);
                self.busy.push((now + self.delay, command.task, action));
            }
        }
    }

    /// A write's data is complete.
    pub fn data_out(&mut self, now: Instant, data: DataOut) {
        let (offset, _) = self.writing[&data.task];
        self.busy.push((now + self.delay, data.task, Action::Write(offset, data)));
    }

    /// Ends a task that was aborted. One that the device is busy with runs to its end.
    pub fn abort(&mut self, now: Instant, task: TaskId, end: &mut End<Session>) {
        if self.busy.iter().any(|(_, busy, _)| *busy == task) {
            return;
        }
        self.writing.remove(&task);
        self.hanging.retain(|hanging| *hanging != task);
        end.session.respond(now, task, Response { status: GOOD, sense: Vec::new(), wanted_bytes: 0 });
    }

    pub fn due_at(&self) -> Option<Instant> {
        self.busy.iter().map(|(at, ..)| *at).min()
    }

    /// Finishes what is due.
    pub fn run(&mut self, now: Instant, end: &mut End<Session>) {
        while let Some(index) = self.busy.iter().position(|(at, ..)| *at <= now) {
            let (_, task, action) = self.busy.remove(index);
            let wanted_bytes = match action {
                Action::Write(offset, data) => {
                    if let Some(buffer) = data.buffer {
                        let from = &end.memory.get(buffer)[..data.bytes as usize];
                        self.content[offset as usize..][..from.len()].copy_from_slice(from);
                    }
                    self.writing.remove(&task);
                    data.bytes
                }
                Action::Read(offset, bytes) => self.read(now, task, offset, bytes, end),
            };
            end.session.respond(now, task, Response { status: GOOD, sense: Vec::new(), wanted_bytes });
        }
    }

    fn read(&self, now: Instant, task: TaskId, offset: u32, bytes: u32, end: &mut End<Session>) -> u32 {
        let there = &self.content[offset as usize..];
        let data = &there[..there.len().min(bytes as usize)];
        if !data.is_empty() {
            let bytes = data.len() as u32;
            let buffer = end.memory.add(data.to_vec());
            let place = PayloadRef { buffer, offset_bytes: 0, bytes };
            end.session.data_in(now, task, Payload::Buffer(place));
        }
        data.len() as u32
    }
}
