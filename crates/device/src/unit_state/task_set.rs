//! A logical unit's task set: the order in which tasks reach the backend (SAM-5), and the conflicts among them.
//!
//! Tasks enter in the order of their arrival. A task asks to start only when it has everything it needs, including its
//! Data-Out. Waiting for the network and waiting for a turn thus overlap, and no task holds a place at the backend
//! while a slow connection feeds it. A task waits only for tasks that are older or already started, so there is no
//! deadlock.
//!
//! Task attributes order the tasks of one nexus. Across nexuses no initiator can know the order in which commands
//! arrived, and an ORDERED write whose initiator withholds the data must not stall the others.

use core::ops::RangeInclusive;
use std::collections::BTreeMap;

use pdu::TaskAttribute;
use scsi::{Compare, Extent, Restriction, Step};
use session::target::TaskId;

use super::NexusId;

/// A task, named uniquely among all sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NexusTask {
    /// The task's nexus.
    pub nexus: NexusId,
    /// The task's name in that nexus's session.
    pub task: TaskId,
}

/// The answer to a task that asks to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Admission {
    /// It starts now.
    Start,
    /// It starts when a later answer names it.
    Wait,
    /// It never starts: it has been aborted.
    Aborted,
}

/// The effect of a task, as far as it matters to others.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Access {
    /// It changes nothing.
    Harmless,
    /// It changes these blocks.
    Write(Extent),
    /// It changes, or copies, all of these blocks.
    Several(Vec<Extent>),
    /// It reads these blocks and changes them depending on their contents, or the other way round; nothing else may
    /// change them in between.
    ReadAndWrite(Extent),
    /// It changes rights. One at a time, each from the state that the one before it left.
    Reserve,
    /// It changes the rules of writing for all blocks. No write runs meanwhile: every write is either answered earlier,
    /// by the old rules, or starts later, by the new ones.
    Terms,
}

impl Access {
    fn of(step: &Step) -> Self {
        match step {
            Step::Write { extent, .. }
            | Step::WriteSame { extent, .. }
            | Step::WriteAndVerify { extent, compare: Compare::Medium } => Self::Write(*extent),
            Step::Unmap(extents) => Self::Several(extents.clone()),
            Step::CompareAndWrite { extent, .. }
            | Step::OrWrite { extent, .. }
            | Step::WriteAndVerify { extent, .. } => Self::ReadAndWrite(*extent),
            Step::PersistentReserveOut(_) | Step::Reserve | Step::Release => Self::Reserve,
            Step::ModeSelect(_) | Step::Eject { .. } => Self::Terms,
            _ => Self::Harmless,
        }
    }

    fn extents(&self) -> &[Extent] {
        match self {
            Self::Harmless | Self::Reserve | Self::Terms => &[],
            Self::Several(extents) => extents,
            Self::Write(extent) | Self::ReadAndWrite(extent) => core::slice::from_ref(extent),
        }
    }

    const fn is_read_and_write(&self) -> bool {
        matches!(self, Self::ReadAndWrite(_))
    }

    const fn is_write(&self) -> bool {
        matches!(self, Self::Write(_) | Self::Several(_) | Self::ReadAndWrite(_))
    }

    /// Whether it can conflict with another task at all: two that are not exclusive never conflict.
    const fn is_exclusive(&self) -> bool {
        matches!(self, Self::ReadAndWrite(_) | Self::Reserve | Self::Terms)
    }

    /// Whether the two must not be at the backend at once (SBC-3). Plain writes may: the order of simple tasks is the
    /// initiator's responsibility.
    fn conflicts(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Reserve, Self::Reserve) | (Self::Terms, Self::Terms) => true,
            (Self::Terms, access) | (access, Self::Terms) => access.is_write(),
            _ => {
                (self.is_read_and_write() || other.is_read_and_write())
                    && self.extents().iter().any(|mine| other.extents().iter().any(|its| mine.overlaps(*its)))
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Its Data-Out is still on its way.
    Arrived,
    /// It has everything it needs and waits for its turn.
    Waiting(Access),
    /// It is at the backend.
    Started(Access),
}

impl State {
    const fn access(&self) -> Option<&Access> {
        match self {
            Self::Arrived => None,
            Self::Waiting(access) | Self::Started(access) => Some(access),
        }
    }
}

#[derive(Clone, Debug)]
struct Entry {
    task: NexusTask,
    attribute: TaskAttribute,
    /// The reservations that forbid it before it has started.
    restriction: Restriction,
    state: State,
    /// Whether it is a copy's hold on blocks: not a task of this unit, and not ordered or aborted with them.
    occupies: bool,
    /// While it waits: one of the tasks that it waits for.
    held_by: Option<Place>,
}

/// The position in the order of arrival.
type Place = u64;

/// All tasks of a logical unit, of every nexus (TST is zero: one task set for all).
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskSet {
    entries: BTreeMap<Place, Entry>,
    places: BTreeMap<NexusTask, Place>,
    /// The tasks that occupy blocks; they may have been sent to another unit.
    occupants: BTreeMap<NexusTask, Place>,
    next_place: Place,
    /// The number of ORDERED and HEAD OF QUEUE entries. While it is zero, no task waits for order.
    barriers: usize,
    /// The number of known exclusive accesses. While it is zero, no task waits for another's blocks.
    exclusives: usize,
    /// Waiting tasks by one task that holds each of them up. Only the end of that task can release them, so the end of
    /// a task costs as little as few wait for it.
    held: BTreeMap<Place, Vec<Place>>,
    /// Tasks whose holder has ended.
    released: Vec<Place>,
}

/// ORDERED and HEAD OF QUEUE tasks hold up later SIMPLE tasks of their nexus.
const fn is_barrier(attribute: TaskAttribute) -> bool {
    matches!(attribute, TaskAttribute::Ordered | TaskAttribute::HeadOfQueue)
}

/// Every possible name of a task of this nexus.
fn tasks_of(nexus: NexusId) -> RangeInclusive<NexusTask> {
    let name = |task| NexusTask { nexus, task };
    name(TaskId(0))..=name(TaskId(u32::MAX))
}

impl TaskSet {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn contains(&self, task: NexusTask) -> bool {
        self.places.contains_key(&task)
    }

    /// Whether it has any task of this nexus, or one of its copies occupies blocks.
    pub(crate) fn contains_any_of(&self, nexus: NexusId) -> bool {
        let tasks = tasks_of(nexus);
        self.places.range(tasks.clone()).next().is_some() || self.occupants.range(tasks).next().is_some()
    }

    pub(crate) fn enter(&mut self, task: NexusTask, attribute: TaskAttribute, restriction: Restriction) {
        self.barriers += usize::from(is_barrier(attribute));
        let entry =
            Entry { task, attribute, restriction, state: State::Arrived, occupies: false, held_by: None };
        let place = self.insert(entry);
        self.places.insert(task, place);
    }

    fn insert(&mut self, entry: Entry) -> Place {
        let place = self.next_place;
        self.next_place += 1;
        self.entries.insert(place, entry);
        place
    }

    /// Occupies these blocks for the next piece of a copying task: all of them, or none yet.
    pub(crate) fn occupy(&mut self, task: NexusTask, extents: Vec<Extent>) -> Admission {
        if self.occupants.contains_key(&task) {
            return Admission::Wait;
        }
        let place = self.insert(Entry {
            task,
            attribute: TaskAttribute::Simple,
            restriction: Restriction::Nothing,
            state: State::Waiting(Access::Several(extents)),
            occupies: true,
            held_by: None,
        });
        self.occupants.insert(task, place);
        if self.start(place).is_some() { Admission::Start } else { Admission::Wait }
    }

    /// Ends the occupation. Returns the tasks that may start now.
    pub(crate) fn vacate(&mut self, task: NexusTask) -> Vec<NexusTask> {
        if let Some(place) = self.occupants.remove(&task) {
            self.remove_at(place);
        }
        self.start_waiting()
    }

    /// The chosen copies that occupy blocks now.
    pub(crate) fn copying(&self, chosen: impl Fn(NexusTask) -> bool) -> Vec<NexusTask> {
        let chosen =
            self.occupants.iter().filter(|(task, _)| chosen(**task)).map(|(task, place)| (*task, place));
        let entries = chosen.filter_map(|(task, place)| Some((task, self.entries.get(place)?)));
        entries.filter(|(_, entry)| matches!(entry.state, State::Started(_))).map(|(task, _)| task).collect()
    }

    /// A task has everything it needs.
    pub(crate) fn ready(&mut self, task: NexusTask, step: &Step) -> Admission {
        let Some(place) = self.places.get(&task).copied() else { return Admission::Aborted };
        let Some(entry) = self.entries.get_mut(&place) else { return Admission::Aborted };
        if entry.state != State::Arrived {
            return Admission::Wait;
        }
        let access = Access::of(step);
        self.exclusives += usize::from(access.is_exclusive());
        entry.state = State::Waiting(access);
        if self.start(place).is_some() { Admission::Start } else { Admission::Wait }
    }

    /// A task has ended, started or not. Returns the tasks that may start now.
    pub(crate) fn finish(&mut self, task: NexusTask) -> Vec<NexusTask> {
        self.remove(task);
        self.start_waiting()
    }

    /// Removes the chosen tasks that have not started, and returns the chosen tasks that have.
    pub(crate) fn clear(&mut self, chosen: impl Fn(NexusTask) -> bool) -> (Vec<NexusTask>, Vec<NexusTask>) {
        let (mut dropped, mut started) = (Vec::new(), Vec::new());
        for entry in self.entries.values().filter(|entry| !entry.occupies && chosen(entry.task)) {
            let list = if matches!(entry.state, State::Started(_)) { &mut started } else { &mut dropped };
            list.push(entry.task);
        }
        dropped.iter().for_each(|task| self.remove(*task));
        (dropped, started)
    }

    /// Removes the chosen tasks that have not started.
    pub(crate) fn refuse(&mut self, chosen: impl Fn(NexusTask, Restriction) -> bool) -> Vec<NexusTask> {
        let pending = self
            .entries
            .values()
            .filter(|entry| !entry.occupies && !matches!(entry.state, State::Started(_)));
        let refused = pending.filter(|entry| chosen(entry.task, entry.restriction));
        let refused: Vec<NexusTask> = refused.map(|entry| entry.task).collect();
        refused.iter().for_each(|task| self.remove(*task));
        refused
    }

    /// Starts every waiting task that may start, oldest first.
    pub(crate) fn start_waiting(&mut self) -> Vec<NexusTask> {
        let mut released = core::mem::take(&mut self.released);
        released.sort_unstable();
        released.into_iter().filter_map(|place| self.start(place)).collect()
    }

    fn remove(&mut self, task: NexusTask) {
        if let Some(place) = self.places.remove(&task) {
            self.remove_at(place);
        }
    }

    fn remove_at(&mut self, place: Place) {
        let Some(entry) = self.entries.remove(&place) else { return };
        self.barriers -= usize::from(is_barrier(entry.attribute));
        self.exclusives -= usize::from(entry.state.access().is_some_and(Access::is_exclusive));
        if let Some(held) = entry.held_by.and_then(|holder| self.held.get_mut(&holder)) {
            held.retain(|other| *other != place);
        }
        self.released.extend(self.held.remove(&place).unwrap_or_default());
    }

    /// Starts a waiting task if its turn has come.
    fn start(&mut self, place: Place) -> Option<NexusTask> {
        let entry = self.entries.get(&place)?;
        let holder = self.holder(place, entry);
        let entry = self.entries.get_mut(&place)?;
        entry.held_by = holder;
        if let Some(holder) = holder {
            self.held.entry(holder).or_default().push(place);
            return None;
        }
        if let State::Waiting(access) = core::mem::replace(&mut entry.state, State::Arrived) {
            entry.state = State::Started(access);
        }
        Some(entry.task)
    }

    /// A task that must end before this one may start: the youngest, so that tasks that wait in turn form a chain, and
    /// the end of one concerns one other.
    fn holder(&self, place: Place, entry: &Entry) -> Option<Place> {
        self.before_in_order(place, entry).or_else(|| self.before_at_the_blocks(place, entry))
    }

    /// ORDERED waits for all older tasks, SIMPLE for older ORDERED and HEAD OF QUEUE tasks, HEAD OF QUEUE for none
    /// (SAM-5).
    fn before_in_order(&self, place: Place, entry: &Entry) -> Option<Place> {
        if entry.occupies {
            return None;
        }
        let waits_for_all = match entry.attribute {
            TaskAttribute::HeadOfQueue => return None,
            TaskAttribute::Ordered => true,
            TaskAttribute::Untagged | TaskAttribute::Simple | TaskAttribute::Aca if self.barriers == 0 => {
                return None;
            }
            TaskAttribute::Untagged | TaskAttribute::Simple | TaskAttribute::Aca => false,
        };
        let same_nexus = self.places.range(tasks_of(entry.task.nexus)).map(|(_, place)| *place);
        let holds = |other: &Place| {
            waits_for_all || self.entries.get(other).is_some_and(|other| is_barrier(other.attribute))
        };
        same_nexus.filter(|other| *other < place && holds(other)).max()
    }

    /// A task waits while a conflicting one is at the backend. It also lets an older one go first that waits only for
    /// its blocks; otherwise a COMPARE AND WRITE might wait for ever. HEAD OF QUEUE does not.
    fn before_at_the_blocks(&self, place: Place, entry: &Entry) -> Option<Place> {
        let access = entry.state.access().filter(|_| self.exclusives > 0)?;
        let goes_first = entry.attribute == TaskAttribute::HeadOfQueue;
        let holds = |(other_place, other): &(&Place, &Entry)| match &other.state {
            State::Started(its) => access.conflicts(its),
            State::Waiting(its) => {
                !goes_first
                    && **other_place < place
                    && access.conflicts(its)
                    && self.before_in_order(**other_place, other).is_none()
            }
            State::Arrived => false,
        };
        self.entries.iter().rev().find(holds).map(|(other, _)| *other)
    }
}
