//! A logical unit as all its initiators share it: the one owner of its nexuses, unit attentions and task set.
//!
//! The path of a command: [`UnitState::arrive`] when it leaves its session in order; [`UnitState::ready`] when its
//! Data-Out, if any, has arrived; the I/O; [`UnitState::finish`]. `arrive` refuses commands that conflict with a
//! reservation; a new reservation refuses commands that have arrived and not started.

mod away;
mod i_t_nexus;
mod medium;
mod percent_encoding;
mod persisted_reservations;
mod persistent_reserve_out;
mod reservations;
mod reserve;
mod task_set;
mod unit_attention;
mod untold;

pub use i_t_nexus::{InitiatorPort, Ports, RelativePort};
pub use persisted_reservations::{InvalidSnapshot, PersistedReservations};
pub use reservations::REGISTRATIONS_MAX;
pub use reserve::{ReservationChange, Settled};
pub use task_set::{Admission, NexusTask};
pub use unit_attention::UnitAttention;

use away::Away;
use medium::{Loaded, Medium};
use pdu::TaskAttribute;
use reserve::Reserve;
use scsi::{
    AdditionalSense, Blocks, CopyStatus, Extent, HeldCopies, MediumAccess, ModeSelect, ModeSettings, Outcome,
    Restriction, Sense, SenseKey, Status, Step, Threshold,
};
use std::collections::BTreeMap;
use task_set::TaskSet;
use untold::Untold;

/// An I_T nexus, named by the driver of the sessions. A name is not reused while tasks of its former nexus are
/// unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NexusId(pub u64);

/// The most tasks of one logical unit, over all nexuses. Command windows keep the number far below; this bounds it when
/// many sessions meet at one unit.
pub const TASKS_MAX: usize = 16_384;

/// The scope of a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reset {
    /// This unit: LOGICAL UNIT RESET.
    LogicalUnit,
    /// The target, and so each of its units: TARGET WARM RESET, TARGET COLD RESET.
    Target,
}

/// The fate of aborted tasks. Their sessions send no response for any of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "tasks that may start now wait for ever otherwise"]
pub struct Cleared {
    /// Tasks that had not started. They are gone, and [`UnitState::finish`] is not called for them.
    pub dropped: Vec<NexusTask>,
    /// Tasks at the backend: the function is complete only when each of them has finished.
    pub started: Vec<NexusTask>,
    /// Copies that were sent to other units and continue, but read or write blocks of this one: the function is
    /// complete only when they have vacated them.
    pub copying: Vec<NexusTask>,
    /// Other tasks, whose turn has come.
    pub startable: Vec<NexusTask>,
}

/// Whether a command runs although a unit attention is pending, and leaves it pending (SAM-5).
fn passes_unit_attentions(cdb: &[u8]) -> bool {
    const INQUIRY: u8 = 0x12;
    const REPORT_LUNS: u8 = 0xa0;
    const REQUEST_SENSE: u8 = 0x03;
    matches!(cdb.first(), Some(&(INQUIRY | REPORT_LUNS | REQUEST_SENSE)))
}

/// The state of a logical unit that its I_T nexuses share.
#[derive(Clone, Debug, Default)]
pub struct UnitState {
    nexuses: BTreeMap<NexusId, Nexus>,
    /// Lost nexuses with commands still at the backend. PREEMPT AND ABORT waits for them too.
    departing: BTreeMap<NexusId, Ports>,
    away: Away,
    tasks: TaskSet,
    mode_settings: ModeSettings,
    medium: Medium,
    /// The ended copies of each nexus, for RECEIVE COPY STATUS.
    copies: BTreeMap<NexusId, HeldCopies>,
    reserve: Reserve,
    /// All were told of the threshold, and the free space has not risen above it since.
    threshold_reached: bool,
}

/// A session that can reach the unit.
#[derive(Clone, Debug)]
struct Nexus {
    ports: Ports,
    untold: Untold,
}

impl UnitState {
    /// A unit that no initiator has met yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a session that can reach this unit and has entered full feature phase. An initiator port that lost its
    /// session learns of the loss and of all reports that it missed. Any other port is told of a power on: its
    /// knowledge dates from before this target's start, or is too old to rely on.
    pub fn establish(&mut self, nexus: NexusId, ports: Ports) {
        let known = self.away.welcome(&ports);
        let news = if known.is_some() { UnitAttention::NexusLoss } else { UnitAttention::PowerOn };
        let mut untold = known.unwrap_or_default();
        untold.attentions.establish(news);
        self.nexuses.insert(nexus, Nexus { ports, untold });
    }

    /// Removes a lost session: aborts its tasks, and keeps its pending reports until it comes back.
    pub fn lose(&mut self, nexus: NexusId) -> Cleared {
        let lost = self.nexuses.remove(&nexus);
        let cleared = self.forget(nexus);
        if let Some(Nexus { ports, mut untold }) = lost {
            if !cleared.dropped.is_empty() || !cleared.started.is_empty() {
                untold.attentions.establish(UnitAttention::CommandsClearedByProtocolEvent);
            }
            if !cleared.started.is_empty() || !cleared.copying.is_empty() {
                self.departing.insert(nexus, ports.clone());
            }
            self.away.remember(ports, untold);
        }
        cleared
    }

    /// Removes a session that logged out, and its tasks; forgets its pending reports.
    pub fn leave(&mut self, nexus: NexusId) -> Cleared {
        self.nexuses.remove(&nexus);
        self.forget(nexus)
    }

    fn forget(&mut self, nexus: NexusId) -> Cleared {
        self.medium.allow_removal(nexus);
        self.copies.remove(&nexus);
        self.reserve.lose(nexus);
        self.clear(|task| task.nexus == nexus)
    }

    /// Takes a command that left its session in order.
    ///
    /// News of a reset or of a lost nexus takes precedence over RESERVATION CONFLICT, and that over other unit
    /// attentions (SAM-5, "status precedence").
    ///
    /// # Errors
    /// The command ends here, with this outcome: a unit attention or a deferred error is reported instead of executing
    /// it, a reservation conflicts, the medium is absent or write-protected, the task set is full, its task attribute
    /// is not supported, or its nexus is unknown.
    pub fn arrive(&mut self, task: NexusTask, attribute: TaskAttribute, cdb: &[u8]) -> Result<(), Outcome> {
        let Nexus { ports, untold } =
            self.nexuses.get_mut(&task.nexus).ok_or_else(Outcome::internal_failure)?;
        let restriction = Restriction::of(cdb);
        if !self.reserve.admits(task.nexus, ports, restriction) {
            let told =
                untold.attentions.take_reset().map(|attention| Outcome::CheckCondition(attention.sense()));
            return Err(told.unwrap_or_else(Outcome::reservation_conflict));
        }
        if !passes_unit_attentions(cdb)
            && let Some(sense) = untold.take()
        {
            return Err(Outcome::CheckCondition(sense));
        }
        self.check_medium(MediumAccess::of(cdb)).map_err(Outcome::CheckCondition)?;
        if attribute == TaskAttribute::Aca {
            return Err(Outcome::CheckCondition(Sense::illegal_request(
                AdditionalSense::INVALID_MESSAGE_ERROR,
            )));
        }
        if self.tasks.contains(task) {
            return Err(Outcome::internal_failure());
        }
        if self.tasks.len() >= TASKS_MAX {
            return Err(Outcome::Refused(Status::TaskSetFull));
        }
        self.tasks.enter(task, attribute, restriction);
        Ok(())
    }

    /// The command has everything that it needs for `step`.
    pub fn ready(&mut self, task: NexusTask, step: &Step) -> Admission {
        self.tasks.ready(task, step)
    }

    /// The command has ended, whether or not it had started. Returns the tasks that may start now.
    #[must_use = "tasks that may start now wait for ever otherwise"]
    pub fn finish(&mut self, task: NexusTask) -> Vec<NexusTask> {
        let startable = self.tasks.finish(task);
        self.see_off(task.nexus);
        startable
    }

    /// Reserves blocks for the next piece of an EXTENDED COPY, which must not fall between the reading and the writing
    /// of a COMPARE AND WRITE. `task` need not belong to this unit. If it must wait, a later answer names it, as for
    /// tasks that may start.
    ///
    /// All extents of one unit are occupied at once; those of several units, in the order of their numbers, so that no
    /// two copies wait for each other. The occupation outlasts aborts of the unit's tasks, until it is vacated.
    pub fn occupy(&mut self, task: NexusTask, extents: Vec<Extent>) -> Admission {
        self.tasks.occupy(task, extents)
    }

    /// Ends the occupation of blocks by a copy. Returns the tasks that may start now.
    #[must_use = "tasks that may start now wait for ever otherwise"]
    pub fn vacate(&mut self, task: NexusTask) -> Vec<NexusTask> {
        let startable = self.tasks.vacate(task);
        self.see_off(task.nexus);
        startable
    }

    /// Forgets a lost nexus once none of its commands is at the backend.
    fn see_off(&mut self, nexus: NexusId) {
        if self.departing.contains_key(&nexus) && !self.tasks.contains_any_of(nexus) {
            self.departing.remove(&nexus);
        }
    }

    /// Reports the space that can still be allocated. All nexuses are told when the threshold is reached, and again
    /// after the space has risen above it or after a reset (SBC-3).
    pub fn can_allocate(&mut self, available: Blocks, threshold: Threshold) {
        let reached = threshold.is_reached(self.threshold_reached, available);
        let before = std::mem::replace(&mut self.threshold_reached, reached);
        if reached && !before {
            self.tell_all(UnitAttention::SoftThresholdReached);
        }
    }

    /// An operation failed that some nexus was told had succeeded. Tells each nexus once, now or when it comes back
    /// (SPC-4, deferred errors), except `asker`, whose own command reports it.
    pub fn defer_error(&mut self, error: Sense, asker: Option<NexusId>) {
        for (_, other) in self.nexuses.iter_mut().filter(|(nexus, _)| Some(**nexus) != asker) {
            other.untold.defer(error);
        }
        self.away.defer(error);
    }

    /// Takes the deferred error pending for this nexus, for a command whose success would contradict it.
    #[must_use]
    pub fn take_deferred_error(&mut self, nexus: NexusId) -> Option<Sense> {
        self.nexuses.get_mut(&nexus)?.untold.take_deferred()
    }

    /// The report of REQUEST SENSE to this nexus: takes a pending unit attention or deferred error, or reports an
    /// absent medium.
    #[must_use]
    pub fn request_sense(&mut self, nexus: NexusId) -> Option<Sense> {
        let untold = self.nexuses.get_mut(&nexus).and_then(|nexus| nexus.untold.take());
        untold.or(self.medium.check_present().err())
    }

    /// Checks that the medium allows the access.
    ///
    /// # Errors
    /// The medium is absent (NOT READY), or mode parameters protect it (DATA PROTECT).
    pub fn check_medium(&self, access: MediumAccess) -> Result<(), Sense> {
        if access != MediumAccess::None {
            self.medium.check_present()?;
        }
        if access == MediumAccess::Write && self.mode_settings.write_protected {
            let additional = AdditionalSense::LOGICAL_UNIT_SOFTWARE_WRITE_PROTECTED;
            return Err(Sense::new(SenseKey::DataProtect, additional));
        }
        Ok(())
    }

    /// Whether an EXTENDED COPY of this nexus may use the unit, which need not be the unit that the command was sent
    /// to. Ask for every piece, when the piece's turn has come.
    ///
    /// # Errors
    /// The sense data of a direct command.
    pub fn admits_copy(&self, nexus: NexusId, access: MediumAccess) -> Result<(), Outcome> {
        let restriction = match access {
            MediumAccess::None => Restriction::Nothing,
            MediumAccess::Read => Restriction::ExclusiveAccess,
            MediumAccess::Write => Restriction::WriteExclusive,
        };
        let ports = self.ports(nexus).ok_or_else(Outcome::internal_failure)?;
        if !self.reserve.admits(nexus, ports, restriction) {
            return Err(Outcome::reservation_conflict());
        }
        self.check_medium(access).map_err(Outcome::CheckCondition)
    }

    /// Whether the response that this nexus was just given by [`Self::arrive`], [`Self::request_sense`] or
    /// [`Self::take_deferred_error`] is fenced (RFC 7143 §4.2.2.3.4 a): a deferred error is, and the first unit attention
    /// after a function aborted the tasks of many.
    pub fn take_fence(&mut self, nexus: NexusId) -> bool {
        self.nexuses.get_mut(&nexus).is_some_and(|nexus| nexus.untold.take_fence())
    }

    /// The mode parameters that differ from their defaults.
    #[must_use]
    pub fn mode_settings(&self) -> &ModeSettings {
        &self.mode_settings
    }

    /// MODE SELECT: tells the other nexuses if a parameter changes.
    pub fn mode_select(&mut self, nexus: NexusId, select: &ModeSelect) {
        let after = select.applied_to(self.mode_settings);
        if std::mem::replace(&mut self.mode_settings, after) != after {
            self.tell_others(nexus, UnitAttention::ModeParametersChanged);
        }
    }

    /// START STOP UNIT that loads the medium: tells the other nexuses if it was absent.
    pub fn load(&mut self, nexus: NexusId) -> Outcome {
        match self.medium.load() {
            Ok(loaded) => {
                if loaded == Loaded::Now {
                    self.tell_others(nexus, UnitAttention::MediumMayHaveChanged);
                }
                Outcome::good()
            }
            Err(prevented) => Outcome::CheckCondition(prevented),
        }
    }

    /// START STOP UNIT that ejects the medium.
    pub fn eject(&mut self) -> Outcome {
        self.medium.eject().err().map_or_else(Outcome::good, Outcome::CheckCondition)
    }

    /// PREVENT ALLOW MEDIUM REMOVAL.
    pub fn prevent_removal(&mut self, nexus: NexusId, prevent: bool) {
        // A nexus that is gone could never allow it again.
        if prevent && self.nexuses.contains_key(&nexus) {
            self.medium.prevent_removal(nexus);
        } else {
            self.medium.allow_removal(nexus);
        }
    }

    /// Keeps the status of an ended copy of this nexus for RECEIVE COPY STATUS.
    pub fn hold_copy(&mut self, nexus: NexusId, list_id: u8, status: CopyStatus) {
        if self.nexuses.contains_key(&nexus) {
            self.copies.entry(nexus).or_default().hold(list_id, status);
        }
    }

    /// The ended copies of this nexus.
    #[must_use]
    pub fn held_copies(&self, nexus: NexusId) -> HeldCopies {
        self.copies.get(&nexus).cloned().unwrap_or_default()
    }

    /// ABORT TASK: aborts this task, if it is in the task set.
    pub fn abort_task(&mut self, task: NexusTask) -> Cleared {
        self.clear(|other| other == task)
    }

    /// ABORT TASK SET: aborts the tasks of this nexus.
    pub fn abort_task_set(&mut self, nexus: NexusId) -> Cleared {
        self.clear(|task| task.nexus == nexus)
    }

    /// CLEAR TASK SET by `nexus`: aborts all tasks, and tells the other nexuses that lost any.
    pub fn clear_task_set(&mut self, nexus: NexusId) -> Cleared {
        let cleared = self.clear(|_| true);
        for task in cleared.dropped.iter().chain(&cleared.started).filter(|task| task.nexus != nexus) {
            self.tell(task.nexus, UnitAttention::CommandsClearedByAnotherInitiator);
        }
        cleared
    }

    /// LOGICAL UNIT RESET, or the unit's part of a target reset: aborts all tasks and tells all nexuses. Resets the
    /// mode parameters, allows removal of the medium, and drops the status of all copies.
    pub fn reset(&mut self, reset: Reset) -> Cleared {
        self.mode_settings = ModeSettings::default();
        self.medium.allow_removal_by_all();
        self.copies.clear();
        self.threshold_reached = false;
        self.tell_all(match reset {
            Reset::LogicalUnit => UnitAttention::LogicalUnitReset,
            Reset::Target => UnitAttention::TargetReset,
        });
        self.reserve.reset();
        self.clear(|_| true)
    }

    /// Tasks of this nexus were terminated with one of its connections; the session continues (RFC 7143 §11.14.5).
    pub fn commands_cleared_by_protocol_event(&mut self, nexus: NexusId) {
        self.tell(nexus, UnitAttention::CommandsClearedByProtocolEvent);
    }

    pub(super) fn clear(&mut self, chosen: impl Fn(NexusTask) -> bool) -> Cleared {
        let (dropped, started) = self.tasks.clear(&chosen);
        let copying = self.tasks.copying(|task| chosen(task) && !started.contains(&task));
        let startable = self.tasks.start_waiting();
        Cleared { dropped, started, copying, startable }
    }

    pub(super) fn tell(&mut self, nexus: NexusId, attention: UnitAttention) {
        if let Some(Nexus { untold, .. }) = self.nexuses.get_mut(&nexus) {
            untold.attentions.establish(attention);
        }
    }

    fn tell_others(&mut self, nexus: NexusId, attention: UnitAttention) {
        for (_, other) in self.nexuses.iter_mut().filter(|(other, _)| **other != nexus) {
            other.untold.attentions.establish(attention);
        }
        self.away.tell(|_| true, attention);
    }

    fn tell_all(&mut self, attention: UnitAttention) {
        self.tell_ports(|_| true, attention);
    }

    /// Tells the nexuses with chosen ports, now or when they come back.
    pub(super) fn tell_ports(&mut self, chosen: impl Fn(&Ports) -> bool, attention: UnitAttention) {
        let told = self.nexuses.values_mut().filter(|nexus| chosen(&nexus.ports));
        told.for_each(|nexus| nexus.untold.attentions.establish(attention));
        self.away.tell(chosen, attention);
    }

    /// The ports of a nexus.
    pub(super) fn ports(&self, nexus: NexusId) -> Option<&Ports> {
        self.nexuses.get(&nexus).map(|nexus| &nexus.ports)
    }

    /// The ports of all nexuses.
    pub(super) fn all_ports(&self) -> impl Iterator<Item = (NexusId, &Ports)> {
        self.nexuses.iter().map(|(id, nexus)| (*id, &nexus.ports))
    }

    /// The nexuses with chosen ports that may have commands at the backend, including lost ones.
    pub(super) fn nexuses_at_the_disk(&self, chosen: impl Fn(&Ports) -> bool) -> Vec<NexusId> {
        let departing = self.departing.iter().map(|(id, ports)| (*id, ports));
        self.all_ports().chain(departing).filter(|(_, ports)| chosen(ports)).map(|(id, _)| id).collect()
    }

    /// Removes the tasks that have not started and that the reservations forbid. Returns them, and the tasks that may
    /// start now.
    pub(super) fn drop_held_up(&mut self) -> (Vec<NexusTask>, Vec<NexusTask>) {
        let Self { nexuses, tasks, reserve, .. } = self;
        let refused = tasks.refuse(|task, restriction| {
            let ports = nexuses.get(&task.nexus).map(|nexus| &nexus.ports);
            ports.is_some_and(|ports| !reserve.admits(task.nexus, ports, restriction))
        });
        (refused, tasks.start_waiting())
    }
}
