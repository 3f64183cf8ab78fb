//! The driver's buffers, as the test plays it.

use pdu::BufferId;
use ropewalk_session::seam::{Allocation, Buffers};
use std::collections::BTreeMap;

/// Memory that counts who has it.
#[derive(Default)]
pub struct Memory {
    pub buffers: BTreeMap<BufferId, Vec<u8>>,
    pub budget_bytes: u32,
    pub used_bytes: u32,
    pub asked: Vec<(u32, u32)>,
    last: u32,
}

impl Memory {
    pub fn of(budget_bytes: u32) -> Self {
        Self { budget_bytes, ..Self::default() }
    }

    pub fn add(&mut self, bytes: Vec<u8>) -> BufferId {
        self.last += 1;
        self.used_bytes += u32::try_from(bytes.len()).unwrap();
        self.buffers.insert(BufferId(self.last), bytes);
        BufferId(self.last)
    }

    /// A buffer is given back: panics if it was already.
    pub fn release(&mut self, buffer: BufferId) {
        let bytes = self.buffers.remove(&buffer).expect("a buffer is released once");
        self.used_bytes -= u32::try_from(bytes.len()).unwrap();
    }
}

impl Buffers for Memory {
    fn allocate(&mut self, least_bytes: u32, preferred_bytes: u32) -> Option<Allocation> {
        self.asked.push((least_bytes, preferred_bytes));
        let room = self.budget_bytes.saturating_sub(self.used_bytes);
        let bytes = [preferred_bytes, least_bytes].into_iter().find(|bytes| *bytes <= room)?;
        let buffer = self.add(vec![0; bytes as usize]);
        Some(Allocation { buffer, bytes })
    }

    fn grow(&mut self, buffer: BufferId, bytes: u32) -> bool {
        let old = self.buffers.get_mut(&buffer).expect("a live buffer is grown");
        let more = bytes.saturating_sub(u32::try_from(old.len()).unwrap());
        if more > self.budget_bytes.saturating_sub(self.used_bytes) {
            return false;
        }
        old.resize(bytes as usize, 0);
        self.used_bytes += more;
        true
    }
}
