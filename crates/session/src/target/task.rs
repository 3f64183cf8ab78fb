//! The SCSI tasks of a session. Tasks belong to the session; a lane only carries their PDUs.

use super::data_in::DataIn;
use super::data_out::DataOut;
use super::event::{Response, TaskId};
use crate::lanes::Route;
use pdu::{Cdb, CmdSn, Instant, Itt, Lun, StatSn, TaskAttribute};
use slab::Slab;
use std::collections::BTreeMap;

/// The progress of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The command waits for its turn.
    Waiting,
    /// The driver has it.
    Executing,
    /// The driver, or the session in its place, has ended the task.
    Ended(Answer),
    /// The response was sent with this StatSN and is not acknowledged. The task is kept because the response may have
    /// to be sent again.
    Responded(StatSn),
}

/// The event that an ended task's response waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It waits for Data-Out that is still on its way. An aborted task stays here, because its response is never sent.
    Settling,
    /// It waits for its own fence, or behind another.
    AtFence,
    /// It waits only for its turn on the lane.
    Ready,
}

/// The connection to which a task belongs (RFC 7143 §4.6.2 and §7.2.2, "connection allegiance").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allegiance {
    /// The connection on which the command came, even if that is lost.
    Original,
    /// Another connection, on which the answer to TASK REASSIGN must be sent before anything of the task.
    Moving,
    /// Another connection, on which TASK REASSIGN has been answered.
    Moved,
}

/// One SCSI task.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) itt: Itt,
    pub(super) lun: Lun,
    pub(super) attribute: TaskAttribute,
    pub(super) cdb: Cdb,
    pub(super) cmd_sn: CmdSn,
    pub(super) immediate: bool,
    /// When the command had arrived with its immediate data.
    pub(super) arrived_at: Instant,
    pub(super) route: Route,
    pub(super) stage: Stage,
    /// The task was aborted: nothing more of it reaches the initiator.
    pub(super) silent: bool,
    pub(super) data_out: DataOut,
    pub(super) data_in: DataIn,
    /// The response, when `stage` is [`Stage::Ended`] or later and the task is not silent.
    pub(super) response: Option<Response>,
    /// Whether the response follows all earlier ones of its unit and precedes all later ones (RFC 7143 §4.2.2.3).
    pub(super) is_fenced: bool,
    /// Whether its place in the command window was given back, which happens when the response is first sent, perhaps
    /// on a connection that is now lost.
    pub(super) is_retired: bool,
    /// The tag of the last R-Data SNACK, which the response repeats (RFC 7143 §11.4.4).
    pub(super) snack_tag: u32,
    /// The response to send in the end, if the task cannot succeed any more although the driver still has it.
    pub(super) failure: Option<Response>,
    pub(super) allegiance: Allegiance,
}

impl Task {
    /// Whether data flows both ways, so that residuals and status have their own rules (RFC 7143 §11.4.6, §11.7.3).
    pub(super) fn is_bidirectional(&self) -> bool {
        self.data_out.expected_bytes > 0 && self.data_in.expected_bytes > 0
    }

    pub(super) fn is_moving(&self) -> bool {
        self.allegiance == Allegiance::Moving
    }
}

impl Stage {
    pub(super) fn is_ended(self) -> bool {
        matches!(self, Self::Ended(_))
    }

    pub(super) fn is_responded(self) -> bool {
        matches!(self, Self::Responded(_))
    }

    /// Whether the response waits only for its turn on the lane, perhaps to be sent once more.
    pub(super) fn may_respond(self) -> bool {
        matches!(self, Self::Ended(Answer::Ready) | Self::Responded(_))
    }

    /// Moves the response of an ended task to its next wait.
    pub(super) fn answer(&mut self, next: Answer) {
        if let Self::Ended(answer) = self {
            *answer = next;
        }
    }
}

/// How many bits of a task's name are its index in the table. The others tell it from earlier tasks at that index.
const INDEX_BITS: u32 = 16;

/// All tasks of a session, by name and by tag.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    slots: Slab<(TaskId, Task)>,
    by_tag: BTreeMap<Itt, TaskId>,
    created: u32,
}

fn index(id: TaskId) -> usize {
    (id.0 & ((1 << INDEX_BITS) - 1)) as usize
}

impl Tasks {
    /// Keeps a task under a name that no other task has.
    ///
    /// The window and the limit on immediate commands keep the table far below the 2¹⁶ places that a name can tell
    /// apart.
    pub(super) fn insert(&mut self, task: Task) -> TaskId {
        self.created = self.created.wrapping_add(1);
        let entry = self.slots.vacant_entry();
        let place = u32::try_from(entry.key()).unwrap_or(u32::MAX);
        let id = TaskId(self.created << INDEX_BITS | place);
        self.by_tag.insert(task.itt, id);
        entry.insert((id, task));
        id
    }

    pub(super) fn get(&self, id: TaskId) -> Option<&Task> {
        self.slots.get(index(id)).filter(|(name, _)| *name == id).map(|(_, task)| task)
    }

    pub(super) fn get_mut(&mut self, id: TaskId) -> Option<&mut Task> {
        self.slots.get_mut(index(id)).filter(|(name, _)| *name == id).map(|(_, task)| task)
    }

    /// The task that the initiator calls `tag`.
    pub(super) fn find(&self, tag: Itt) -> Option<TaskId> {
        self.by_tag.get(&tag).copied()
    }

    /// Lets the initiator use the task's tag for another task, although this one is not gone.
    pub(super) fn release_tag(&mut self, id: TaskId) {
        if let Some(tag) = self.get(id).map(|task| task.itt)
            && self.find(tag) == Some(id)
        {
            self.by_tag.remove(&tag);
        }
    }

    pub(super) fn remove(&mut self, id: TaskId) -> Option<Task> {
        self.get(id)?;
        self.release_tag(id);
        Some(self.slots.remove(index(id)).1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (TaskId, &Task)> {
        self.slots.iter().map(|(_, (id, task))| (*id, task))
    }

    /// The names of the tasks that match.
    pub(super) fn select(&self, matches: impl Fn(&Task) -> bool) -> Vec<TaskId> {
        self.iter().filter(|(_, task)| matches(task)).map(|(id, _)| id).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}
