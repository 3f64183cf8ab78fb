//! A logical unit as all its initiators share it: the one owner of its nexuses, unit attentions and task set.
//!
//! The path of a command: [`LogicalUnit::arrive`] when it comes out of its session in order;
//! [`LogicalUnit::ready`] when its Data-Out, if any, is there; the I/O; [`LogicalUnit::finish`]. What a reservation
//! holds up is refused in `arrive`; what has arrived and not started is refused when a reservation begins to hold it
//! up.

use std::collections::BTreeMap;

use pdu::TaskAttribute;
use scsi::{
    AdditionalSense, Blocks, CopyStatus, Extent, HeldCopies, MediumAccess, ModeSelect, ModeSettings, Outcome,
    Restriction, Sense, SenseKey, Status, Step, Threshold,
};

use super::away::Away;
use super::i_t_nexus::Ports;
use super::medium::{Loaded, Medium};
use super::reserve::Reserve;
use super::task_set::{Admission, NexusTask, TaskSet};
use super::unit_attention::UnitAttention;
use super::untold::Untold;

/// An I_T nexus, named by whoever drives the sessions. A name is not used again while tasks of its former
/// bearer are unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NexusId(pub u64);

/// Tasks of one logical unit, of all nexuses together. Command windows keep their number far below; this
/// bounds what is left when many sessions meet at one unit.
pub const TASKS_MAX: usize = 16_384;

/// What is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reset {
    /// This unit: LOGICAL UNIT RESET.
    LogicalUnit,
    /// The target, and so each of its units: TARGET WARM RESET, TARGET COLD RESET.
    Target,
}

/// What became of tasks that were aborted. Their sessions send no response for any of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "tasks that may start now wait for ever otherwise"]
pub struct Cleared {
    /// Gone: they had not started, and [`LogicalUnit::finish`] is not called for them.
    pub dropped: Vec<NexusTask>,
    /// On the disk: the function is complete only when each of them has finished.
    pub started: Vec<NexusTask>,
    /// Copies that were sent to other units and go on, but read or write blocks of this one: the function is complete
    /// only when they have vacated them.
    pub copying: Vec<NexusTask>,
    /// Other tasks, whose turn has come.
    pub startable: Vec<NexusTask>,
}

/// Whether a command is carried out although a unit attention is pending, which stays so (SAM-5).
fn passes_unit_attentions(cdb: &[u8]) -> bool {
    const INQUIRY: u8 = 0x12;
    const REPORT_LUNS: u8 = 0xa0;
    const REQUEST_SENSE: u8 = 0x03;
    matches!(cdb.first(), Some(&(INQUIRY | REPORT_LUNS | REQUEST_SENSE)))
}

/// The state of a logical unit that its I_T nexuses share.
#[derive(Clone, Debug, Default)]
pub struct LogicalUnit {
    nexuses: BTreeMap<NexusId, Nexus>,
    /// Those that were lost while something of them was on the disk, and until it is over: whoever fences them off has to
    /// wait for that.
    departing: BTreeMap<NexusId, Ports>,
    away: Away,
    tasks: TaskSet,
    mode_settings: ModeSettings,
    medium: Medium,
    /// Of those nexuses that copied something.
    copies: BTreeMap<NexusId, HeldCopies>,
    pub(super) reserve: Reserve,
    /// All were told of it, and there has not been more space since.
    threshold_reached: bool,
}

/// A session that can reach the unit.
#[derive(Clone, Debug)]
struct Nexus {
    ports: Ports,
    untold: Untold,
}

impl LogicalUnit {
    /// A unit that no initiator has met yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A session that can reach this unit has entered its full feature phase. An initiator port that lost its session
    /// learns of that, and of all that it was not told; any other is told of a power on: whatever it may remember is from
    /// before this target was started, or too long ago to vouch for.
    pub fn establish(&mut self, nexus: NexusId, ports: Ports) {
        let known = self.away.welcome(&ports);
        let news = if known.is_some() { UnitAttention::NexusLoss } else { UnitAttention::PowerOn };
        let mut untold = known.unwrap_or_default();
        untold.attentions.establish(news);
        self.nexuses.insert(nexus, Nexus { ports, untold });
    }

    /// A session was lost: its tasks are aborted, and what is to be told to it is kept until it comes back.
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

    /// A session has ended by logout, with its tasks; what was to be told to it is forgotten.
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

    /// A command has come out of its session, in order.
    ///
    /// Of what could be told, news of a reset or of a lost nexus comes first, then RESERVATION CONFLICT, then other
    /// unit attentions (SAM-5, "status precedence").
    ///
    /// # Errors
    /// The command ends here, with this outcome: a unit attention or a deferred error is reported instead of carrying it
    /// out, a reservation holds it up, the medium that it needs is not there or may not be written, the task set is full,
    /// its task attribute is not supported, or its nexus is unknown.
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

    /// A command has all it needs to be carried out by `step`.
    pub fn ready(&mut self, task: NexusTask, step: &Step) -> Admission {
        self.tasks.ready(task, step)
    }

    /// A command has ended, whether it had started or not. Returns the tasks that may start now.
    #[must_use = "tasks that may start now wait for ever otherwise"]
    pub fn finish(&mut self, task: NexusTask) -> Vec<NexusTask> {
        let startable = self.tasks.finish(task);
        self.see_off(task.nexus);
        startable
    }

    /// EXTENDED COPY reads or writes these blocks next, which must not happen between the reading and the writing of a
    /// COMPARE AND WRITE. `task` need not be one of this unit. If it must wait, a later answer names it, as it names tasks
    /// that may start.
    ///
    /// All extents of one unit are occupied at once; of several units, in the order of their numbers, so that no two
    /// copies wait for each other. The unit's tasks may be aborted meanwhile, but this stays until it is vacated.
    pub fn occupy(&mut self, task: NexusTask, extents: Vec<Extent>) -> Admission {
        self.tasks.occupy(task, extents)
    }

    /// The copy has done with the blocks that it occupied. Returns the tasks that may start now.
    #[must_use = "tasks that may start now wait for ever otherwise"]
    pub fn vacate(&mut self, task: NexusTask) -> Vec<NexusTask> {
        let startable = self.tasks.vacate(task);
        self.see_off(task.nexus);
        startable
    }

    /// A nexus that was lost is gone when nothing of it is on the disk.
    fn see_off(&mut self, nexus: NexusId) {
        if self.departing.contains_key(&nexus) && !self.tasks.contains_any_of(nexus) {
            self.departing.remove(&nexus);
        }
    }

    /// So many blocks can still be allocated: all are told when the threshold is reached, and again when it is reached
    /// after there was more, or after a reset (SBC-3).
    pub fn can_allocate(&mut self, available: Blocks, threshold: Threshold) {
        let reached = threshold.is_reached(self.threshold_reached, available);
        let before = std::mem::replace(&mut self.threshold_reached, reached);
        if reached && !before {
            self.tell_all(UnitAttention::SoftThresholdReached);
        }
    }

    /// What was answered with success has failed, and nobody can say whose it was: each nexus is told once, now or when it
    /// comes back (SPC-4, deferred errors), but for `asker`, whom the end of its command tells.
    pub fn defer_error(&mut self, error: Sense, asker: Option<NexusId>) {
        for (_, other) in self.nexuses.iter_mut().filter(|(nexus, _)| Some(**nexus) != asker) {
            other.untold.defer(error);
        }
        self.away.defer(error);
    }

    /// The deferred error that this nexus was not told, for a command whose success would deny it; it is thereby told.
    #[must_use]
    pub fn take_deferred_error(&mut self, nexus: NexusId) -> Option<Sense> {
        self.nexuses.get_mut(&nexus)?.untold.take_deferred()
    }

    /// What REQUEST SENSE reports to this nexus: a unit attention or a deferred error, which is thereby told, or that there
    /// is no medium.
    #[must_use]
    pub fn request_sense(&mut self, nexus: NexusId) -> Option<Sense> {
        let untold = self.nexuses.get_mut(&nexus).and_then(|nexus| nexus.untold.take());
        untold.or(self.medium.check_present().err())
    }

    /// Whether the medium is as a command needs it.
    ///
    /// # Errors
    /// It is not there (NOT READY), or mode parameters protect it (DATA PROTECT).
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

    /// Whether an EXTENDED COPY of this nexus may use the unit, which need not be the one that the command was sent to.
    /// To be asked for every piece that it copies, when the piece's turn has come.
    ///
    /// # Errors
    /// What a command of its own would be told.
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

    /// Whether the unit attention that this nexus was told just now, by [`Self::arrive`] or [`Self::request_sense`], is
    /// the first after a function aborted the tasks of many: its response is fenced (RFC 7143 §4.2.2.3.4 a).
    pub fn take_fence(&mut self, nexus: NexusId) -> bool {
        self.nexuses.get_mut(&nexus).is_some_and(|nexus| nexus.untold.attentions.take_fence())
    }

    /// The mode parameters that are not their defaults.
    #[must_use]
    pub fn mode_settings(&self) -> &ModeSettings {
        &self.mode_settings
    }

    /// MODE SELECT: the others are told if a parameter changes.
    pub fn mode_select(&mut self, nexus: NexusId, select: &ModeSelect) {
        let after = select.applied_to(self.mode_settings);
        if std::mem::replace(&mut self.mode_settings, after) != after {
            self.tell_others(nexus, UnitAttention::ModeParametersChanged);
        }
    }

    /// START STOP UNIT that loads the medium: the others are told if it was not there.
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
        // A nexus that is gone would never allow it again.
        if prevent && self.nexuses.contains_key(&nexus) {
            self.medium.prevent_removal(nexus);
        } else {
            self.medium.allow_removal(nexus);
        }
    }

    /// How a copy of this nexus ended, to be held for RECEIVE COPY STATUS.
    pub fn hold_copy(&mut self, nexus: NexusId, list_id: u8, status: CopyStatus) {
        if self.nexuses.contains_key(&nexus) {
            self.copies.entry(nexus).or_default().hold(list_id, status);
        }
    }

    /// How this nexus's copies ended.
    #[must_use]
    pub fn held_copies(&self, nexus: NexusId) -> HeldCopies {
        self.copies.get(&nexus).cloned().unwrap_or_default()
    }

    /// ABORT TASK.
    pub fn abort_task(&mut self, task: NexusTask) -> Cleared {
        self.clear(|other| other == task)
    }

    /// ABORT TASK SET: the tasks of this nexus.
    pub fn abort_task_set(&mut self, nexus: NexusId) -> Cleared {
        self.clear(|task| task.nexus == nexus)
    }

    /// CLEAR TASK SET, asked by `nexus`: the tasks of all; the others are told if they lost any.
    pub fn clear_task_set(&mut self, nexus: NexusId) -> Cleared {
        let cleared = self.clear(|_| true);
        for task in cleared.dropped.iter().chain(&cleared.started).filter(|task| task.nexus != nexus) {
            self.tell(task.nexus, UnitAttention::CommandsClearedByAnotherInitiator);
        }
        cleared
    }

    /// LOGICAL UNIT RESET, or the unit's part of a target reset: the tasks of all, and all are told. Mode parameters
    /// are their defaults again, nobody prevents the removal of the medium, and no copy's status is held.
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

    /// Tasks of this nexus were terminated with one of its connections; the session goes on
    /// (RFC 7143 §11.14.5).
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

    /// Tells those whose ports are chosen, now or when they come back.
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

    /// The nexuses with chosen ports of which something may be on the disk, those among them that were lost.
    pub(super) fn nexuses_at_the_disk(&self, chosen: impl Fn(&Ports) -> bool) -> Vec<NexusId> {
        let departing = self.departing.iter().map(|(id, ports)| (*id, ports));
        self.all_ports().chain(departing).filter(|(_, ports)| chosen(ports)).map(|(id, _)| id).collect()
    }

    /// Removes the tasks that have not started and that the reservations hold up; tells which they were, and which
    /// may start now.
    pub(super) fn drop_held_up(&mut self) -> (Vec<NexusTask>, Vec<NexusTask>) {
        let Self { nexuses, tasks, reserve, .. } = self;
        let refused = tasks.refuse(|task, restriction| {
            let ports = nexuses.get(&task.nexus).map(|nexus| &nexus.ports);
            ports.is_some_and(|ports| !reserve.admits(task.nexus, ports, restriction))
        });
        (refused, tasks.start_waiting())
    }
}
