//! Commands that wait for a lane.

use super::slots::RequestId;
use session::initiator::Data;
use std::collections::VecDeque;

/// The queue of one unit: commands that bring data, and all others, each in order. The network may be full in one
/// direction only, and then what waits for that must not keep back what does not.
#[derive(Default)]
pub(crate) struct Queue {
    outgoing: VecDeque<Waiting>,
    incoming: VecDeque<Waiting>,
    /// As many as were ever added.
    added: u64,
    /// Of data, in both directions.
    bytes: u64,
}

/// A command in the queue.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub key: RequestId,
    data: Data,
    /// As many were added before it.
    turn: u64,
}

impl Queue {
    /// Appends a command with this data.
    pub(super) fn push(&mut self, key: RequestId, data: Data) {
        let waiting = Waiting { key, data, turn: self.added };
        self.added += 1;
        self.bytes += u64::from(bytes(data));
        self.of(data).push_back(waiting);
    }

    /// The first command of each direction, the one that waits longer before the other.
    pub(super) fn heads(&self) -> impl Iterator<Item = Waiting> + use<> {
        let (outgoing, incoming) = (self.outgoing.front().copied(), self.incoming.front().copied());
        let turn = |head: Option<Waiting>| head.map(|waiting| waiting.turn);
        let heads = if turn(outgoing) < turn(incoming) { [outgoing, incoming] } else { [incoming, outgoing] };
        heads.into_iter().flatten()
    }

    /// Takes one of the heads out. The commands into which it was cut, with their data, have its place.
    pub(super) fn replace(&mut self, head: Waiting, by: impl DoubleEndedIterator<Item = (RequestId, Data)>) {
        self.of(head.data).pop_front();
        self.bytes -= u64::from(bytes(head.data));
        for (key, data) in by.rev() {
            self.of(head.data).push_front(Waiting { key, data, ..head });
            self.bytes += u64::from(bytes(data));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.outgoing.len() + self.incoming.len()
    }

    /// Bytes of data of all commands in the queue, in both directions.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Empties the queue.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = RequestId> + use<> {
        let Self { outgoing, incoming, .. } = std::mem::take(self);
        outgoing.into_iter().chain(incoming).map(|waiting| waiting.key)
    }

    fn of(&mut self, data: Data) -> &mut VecDeque<Waiting> {
        if data.in_bytes() > 0 { &mut self.incoming } else { &mut self.outgoing }
    }
}

fn bytes(data: Data) -> u32 {
    data.out_bytes() + data.in_bytes()
}
