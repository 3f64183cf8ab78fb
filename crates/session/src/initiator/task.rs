//! The SCSI tasks of a session. Tasks belong to the session; a lane only carries their PDUs.

use super::data_coverage::DataCoverage;
use super::data_out::Sequence;
use super::data_sequence::InputSequence;
use super::event::{Command, Data, TaskId};
use super::load::Unmoved;
use super::scsi_response::Ending;
use super::snack::DataAck;
use crate::inflow::Turn;
use crate::lanes::Route;
use pdu::{BufferId, CmdSn, Instant, Itt, LaneId};
use slab::Slab;
use std::collections::VecDeque;

/// The route and the CmdSN of a task that has started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allegiance {
    pub(super) route: Route,
    /// A CmdSN that was taken must be sent, or the target would wait for it.
    pub(super) cmd_sn: CmdSn,
    pub(super) command: Delivery,
}

/// How often a task's command has left, and on which lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// The command has not left.
    Never,
    /// It has left on lanes that the task has lost, and not on its present lane.
    Elsewhere,
    /// It has left on the present lane, and no other copy of it has.
    Once,
    /// It has left on the present lane, and another copy of it has left, or will.
    Again,
}

impl Delivery {
    /// Whether any byte of the command may have left.
    pub(super) fn is_started(self) -> bool {
        self != Self::Never
    }

    /// Whether the command has left on its task's present lane.
    pub(super) fn is_here(self) -> bool {
        matches!(self, Self::Once | Self::Again)
    }

    /// Whether more than one copy of the command may arrive.
    pub(super) fn is_repeated(self) -> bool {
        matches!(self, Self::Elsewhere | Self::Again)
    }

    /// Notes that the command leaves.
    pub(super) fn leave(&mut self) {
        *self = match self {
            Self::Never | Self::Once => Self::Once,
            Self::Elsewhere | Self::Again => Self::Again,
        };
    }

    /// Plans to send the command once more on the same lane.
    fn repeat(&mut self) {
        if *self == Self::Once {
            *self = Self::Again;
        }
    }

    /// The command's state after its task has moved to another lane, where it is to be sent.
    pub(super) fn move_on(self) -> Self {
        if self.is_started() { Self::Elsewhere } else { Self::Never }
    }
}

/// One SCSI task.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) itt: Itt,
    pub(super) command: Command,
    /// `None` while it waits in the queue.
    pub(super) allegiance: Option<Allegiance>,
    /// Data-Out that may be sent now: unsolicited data, then answers to R2Ts in the order in which these came.
    pub(super) sequences: VecDeque<Sequence>,
    /// Data-Out that was sent.
    pub(super) sent: DataCoverage,
    /// Its R2Ts or Data-In PDUs; they share one numbering (RFC 7143 §4.2.2.4).
    pub(super) input: InputSequence,
    /// The status that the target sent, while Data-In from before it is missing.
    pub(super) ending: Option<Ending>,
    /// When the last of its data arrived.
    pub(super) data_in_at: Instant,
    /// How often the task's last PDUs were requested again because it stood still.
    pub(super) tail_asks: u32,
    /// How much data its lane must have brought before they count as lost.
    pub(super) tail_turn: Turn,
    /// The task was given another lane, and nothing has come for it there yet.
    pub(super) resumes: bool,
    /// The target will not send missing data again.
    pub(super) data_refused: bool,
    /// The last DataACK that the target asked for.
    pub(super) data_ack: Option<DataAck>,
    /// Bytes of either direction that have not been transferred.
    pub(super) unmoved_bytes: u32,
}

impl Task {
    /// Whether its command has left on its present lane.
    pub(super) fn is_sent(&self) -> bool {
        self.allegiance.is_some_and(|home| home.command.is_here())
    }

    /// Whether any byte of the command may have left.
    pub(super) fn is_started(&self) -> bool {
        self.allegiance.is_some_and(|home| home.command.is_started())
    }

    /// Whether more than one copy of its command may arrive.
    pub(super) fn is_repeated(&self) -> bool {
        self.allegiance.is_some_and(|home| home.command.is_repeated())
    }

    /// The task's load on its route.
    pub(super) fn unmoved(&self) -> Unmoved {
        Unmoved::of(self.command.data, self.unmoved_bytes)
    }

    /// The task's load on its route if its command were sent as if for the first time.
    pub(super) fn unmoved_at_first(&self) -> Unmoved {
        let data = self.command.data;
        Unmoved::of(data, data.out_bytes() + data.in_bytes())
    }

    /// Plans to send its command as if for the first time; returns the data to transfer again.
    pub(super) fn start_over(&mut self) -> Unmoved {
        let again_bytes = self.command.data.out_bytes() + self.command.data.in_bytes() - self.unmoved_bytes;
        self.unmoved_bytes += again_bytes;
        if let Some(home) = &mut self.allegiance {
            home.command.repeat();
        }
        self.sequences.clear();
        self.sent = DataCoverage::default();
        self.input = InputSequence::default();
        Unmoved::of(self.command.data, again_bytes)
    }

    /// Orphans the task, whose route has lost this lane. It keeps that route, on which nothing is sent or taken, until
    /// it gets another. PDUs that arrived out of order count as not arrived (§11.5.6), and R2Ts that were not fully
    /// answered as not received.
    pub(super) fn lose_home(&mut self, lane: LaneId) {
        if let Some(home) = &mut self.allegiance {
            home.route = Route::over(lane);
        }
        self.unmoved_bytes += self.input.forget_later();
        self.sequences.clear();
        (self.ending, self.data_ack, self.data_refused) = (None, None, false);
        (self.resumes, self.tail_asks, self.tail_turn) = (true, 0, Turn::default());
    }

    /// Notes the arrival of new data.
    pub(super) fn note_data_in(&mut self, now: Instant) {
        (self.resumes, self.data_in_at) = (false, now);
        (self.tail_asks, self.tail_turn) = (0, Turn::default());
    }

    /// Prepares for a target that sends all data of a read again instead of the missing part; returns the data that
    /// comes again.
    pub(super) fn restart_input(&mut self) -> Unmoved {
        let again_bytes = self.input.contiguous_bytes();
        self.unmoved_bytes += again_bytes;
        self.input = InputSequence::default();
        Unmoved::of(self.command.data, again_bytes)
    }

    /// Counts `bytes` of its data as transferred; returns how many of them were still outstanding.
    pub(super) fn moved(&mut self, bytes: u32) -> Unmoved {
        let expected = bytes.min(self.unmoved_bytes);
        self.unmoved_bytes -= expected;
        Unmoved::of(self.command.data, expected)
    }
}

impl Data {
    /// Bytes to send.
    #[must_use]
    pub fn out_bytes(self) -> u32 {
        if let Self::Out(payload) = self { payload.bytes } else { 0 }
    }

    /// Bytes to receive.
    #[must_use]
    pub fn in_bytes(self) -> u32 {
        if let Self::In(payload) = self { payload.bytes } else { 0 }
    }

    /// The buffer that was lent.
    pub(super) fn buffer(self) -> Option<BufferId> {
        match self {
            Self::None => None,
            Self::In(payload) | Self::Out(payload) => Some(payload.buffer),
        }
    }
}

/// How many bits of a tag are its task's index in the table. The bits above them tell the task from earlier ones at
/// that index.
const INDEX_BITS: u32 = 16;
/// The number of tags per index. The topmost bit is clear in a task's tag and set in those of other requests.
const GENERATIONS: u32 = 1 << (31 - INDEX_BITS);

/// The most tasks that a session can tell apart.
pub(super) const TASKS_MAX: u32 = 1 << INDEX_BITS;

/// All tasks of a session by their Initiator Task Tag, which is also their [`TaskId`]. A tag is not used again while
/// its task is known, and for a long time after (RFC 7143 §11.2.1.8).
#[derive(Debug, Default)]
pub(super) struct Tasks {
    slots: Slab<Task>,
    created: u32,
}

impl Tasks {
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.slots.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// An empty table whose tags start at a value that `word` determines.
    pub(super) fn numbered_from(word: u32) -> Self {
        Self { slots: Slab::new(), created: word % GENERATIONS }
    }

    /// Adds a task that waits in the queue. The caller keeps the number of tasks below [`TASKS_MAX`].
    pub(super) fn insert(&mut self, command: Command) -> TaskId {
        let entry = self.slots.vacant_entry();
        let index = u32::try_from(entry.key()).unwrap_or(u32::MAX);
        self.created = (self.created + 1) % GENERATIONS;
        let itt = Itt(self.created << INDEX_BITS | index);
        let unmoved_bytes = command.data.out_bytes() + command.data.in_bytes();
        entry.insert(Task {
            itt,
            command,
            allegiance: None,
            sequences: VecDeque::new(),
            sent: DataCoverage::default(),
            input: InputSequence::default(),
            ending: None,
            data_in_at: Instant::ZERO,
            tail_asks: 0,
            tail_turn: Turn::default(),
            resumes: false,
            data_refused: false,
            data_ack: None,
            unmoved_bytes,
        });
        TaskId(itt.0)
    }

    fn index(itt: Itt) -> usize {
        (itt.0 & (TASKS_MAX - 1)) as usize
    }

    pub(super) fn get(&self, itt: Itt) -> Option<&Task> {
        self.slots.get(Self::index(itt)).filter(|task| task.itt == itt)
    }

    pub(super) fn get_mut(&mut self, itt: Itt) -> Option<&mut Task> {
        self.slots.get_mut(Self::index(itt)).filter(|task| task.itt == itt)
    }

    pub(super) fn remove(&mut self, itt: Itt) -> Option<Task> {
        self.get(itt)?;
        self.slots.try_remove(Self::index(itt))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Task> {
        self.slots.iter_mut().map(|(_, task)| task)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Task> {
        self.slots.iter().map(|(_, task)| task)
    }
}

/// Tags of requests that are not SCSI tasks. They differ from those of tasks, and each is used again only after about
/// 2³¹ others.
#[derive(Debug, Default)]
pub(super) struct RequestTags {
    next: u32,
}

const REQUEST_TAG_BIT: u32 = 1 << 31;
/// The number of request tags: all except the reserved one.
const REQUEST_TAGS: u32 = Itt::NONE.0 & !REQUEST_TAG_BIT;

impl RequestTags {
    /// An empty table whose tags start at a value that `word` determines.
    pub(super) fn numbered_from(word: u32) -> Self {
        Self { next: word % REQUEST_TAGS }
    }

    pub(super) fn take(&mut self) -> Itt {
        let itt = Itt(REQUEST_TAG_BIT | self.next);
        self.next = (self.next + 1) % REQUEST_TAGS;
        itt
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pdu::{Cdb, Lun, TaskAttribute};

    fn command() -> Command {
        let cdb = Cdb::from([0; Cdb::INLINE_BYTES]);
        Command { lun: Lun(0), attribute: TaskAttribute::Simple, cdb, data: Data::None }
    }

    #[test]
    fn a_command_is_repeated_if_it_left_before_it_leaves_again() {
        let (mut once, mut moved) = (Delivery::Never, Delivery::Never);
        once.repeat();
        once.leave();
        assert!(once.is_here() && !once.is_repeated(), "it had not left before");
        once.repeat();
        assert!(once.is_here() && once.is_repeated());
        moved = moved.move_on();
        assert!(!moved.is_started());
        moved.leave();
        moved = moved.move_on();
        assert!(moved.is_started() && !moved.is_here() && moved.is_repeated());
        moved.leave();
        assert!(moved.is_here() && moved.is_repeated());
    }

    #[test]
    fn the_tag_of_a_task_that_is_no_more_names_nothing() {
        let mut tasks = Tasks::default();
        let first = Itt(tasks.insert(command()).0);
        assert!(tasks.remove(first).is_some());
        let second = Itt(tasks.insert(command()).0);
        assert_ne!(first, second);
        assert!(tasks.get(first).is_none());
        assert!(tasks.get(second).is_some());
    }

    #[test]
    fn no_task_has_the_tag_of_a_living_one_where_tags_wrap() {
        let mut tasks = Tasks::numbered_from(u32::MAX);
        let living: std::collections::BTreeSet<Itt> =
            (0..3).map(|_| Itt(tasks.insert(command()).0)).collect();
        assert_eq!(living.len(), 3);
        assert!(living.iter().all(|itt| tasks.get(*itt).is_some() && itt.0 & REQUEST_TAG_BIT == 0));
    }

    #[test]
    fn no_request_has_the_tag_of_a_task_or_the_reserved_one() {
        let mut tags = RequestTags::numbered_from(REQUEST_TAGS - 1);
        for _ in 0..3 {
            let itt = tags.take();
            assert!(itt.is_some());
            assert_eq!(Tasks::default().get(itt).map(|task| task.itt), None);
            assert_ne!(itt.0 & REQUEST_TAG_BIT, 0);
        }
    }
}
