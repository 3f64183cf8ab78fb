//! Commands that wait for a lane, in order.

use super::slots::RequestId;
use std::collections::VecDeque;

/// The queue of one unit, and the bytes of data in it.
#[derive(Default)]
pub(crate) struct Queue {
    requests: VecDeque<(RequestId, u32)>,
    bytes: u64,
}

impl Queue {
    /// Appends a command with this many bytes of data.
    pub(super) fn push_back(&mut self, key: RequestId, bytes: u32) {
        self.requests.push_back((key, bytes));
        self.bytes += u64::from(bytes);
    }

    /// Puts a command before all others.
    pub(super) fn push_front(&mut self, key: RequestId, bytes: u32) {
        self.requests.push_front((key, bytes));
        self.bytes += u64::from(bytes);
    }

    pub(super) fn front(&self) -> Option<RequestId> {
        self.requests.front().map(|(key, _)| *key)
    }

    pub(super) fn pop_front(&mut self) -> Option<RequestId> {
        let (key, bytes) = self.requests.pop_front()?;
        self.bytes -= u64::from(bytes);
        Some(key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Bytes of data of all commands in the queue, in both directions.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Empties the queue.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = RequestId> + use<> {
        std::mem::take(self).requests.into_iter().map(|(key, _)| key)
    }
}
