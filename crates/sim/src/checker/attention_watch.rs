//! Unit attentions: every I_T nexus is told once of every event at a unit, and of nothing else (SAM-5 §5.14).
//!
//! An event may have happened from the moment when its cause has come to the target, and surely has when the target
//! answers. A nexus may be told of what may have happened. What surely has, and was not told meanwhile, it must be told
//! with its next command, unless that passes unit attentions. A reset voids what was pending, and tells of it.

use super::number_map::NumberMap;
use super::reservation_history::Port;
use super::tap::TargetSession;
use crate::reached::{Reached, Way};
use crate::unit::{TargetIndex, UnitIndex};
use pdu::{Itt, Lun, TaskManagementFunction, TaskManagementRequest};
use scsi::{AdditionalSense, Outcome, SenseKey, Status};
use std::collections::BTreeSet;

/// What a nexus is told of, in SAM-5's order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attention {
    /// The unit has come up.
    PowerOn,
    /// The target was reset.
    TargetReset,
    /// The unit was reset.
    LogicalUnitReset,
    /// The nexus was lost, and is back.
    NexusLoss,
    /// Another initiator has cleared the task set.
    ClearedByAnother,
    /// Commands were lost with a connection.
    ClearedByProtocol,
    /// All reservations were cleared.
    ReservationsPreempted,
    /// A reservation has ended.
    ReservationsReleased,
    /// The registration of the nexus was ended.
    RegistrationsPreempted,
}

impl Attention {
    fn of(additional: AdditionalSense) -> Option<Self> {
        Some(match additional {
            AdditionalSense::POWER_ON_RESET_OR_BUS_DEVICE_RESET_OCCURRED => Self::PowerOn,
            AdditionalSense::SCSI_BUS_RESET_OCCURRED => Self::TargetReset,
            AdditionalSense::BUS_DEVICE_RESET_FUNCTION_OCCURRED => Self::LogicalUnitReset,
            AdditionalSense::I_T_NEXUS_LOSS_OCCURRED => Self::NexusLoss,
            AdditionalSense::COMMANDS_CLEARED_BY_ANOTHER_INITIATOR => Self::ClearedByAnother,
            AdditionalSense::SOME_COMMANDS_CLEARED_BY_ISCSI_PROTOCOL_EVENT => Self::ClearedByProtocol,
            AdditionalSense::RESERVATIONS_PREEMPTED => Self::ReservationsPreempted,
            AdditionalSense::RESERVATIONS_RELEASED => Self::ReservationsReleased,
            AdditionalSense::REGISTRATIONS_PREEMPTED => Self::RegistrationsPreempted,
            _ => return None,
        })
    }

    /// Whether it voids what else is pending.
    fn is_reset(self) -> bool {
        self <= Self::LogicalUnitReset
    }

    /// Whether it is told even where a reservation conflicts.
    fn precedes_conflict(self) -> bool {
        self <= Self::NexusLoss
    }

    fn way(self) -> Option<Way> {
        Some(match self {
            Self::PowerOn => Way::ToldOfPowerOn,
            Self::TargetReset => Way::ToldOfTargetReset,
            Self::LogicalUnitReset => Way::ToldOfLogicalUnitReset,
            Self::NexusLoss => Way::ToldOfNexusLoss,
            Self::ClearedByAnother => Way::ToldOfClearedCommands,
            Self::ReservationsPreempted => Way::ToldOfPreemptedReservations,
            Self::ReservationsReleased => Way::ToldOfReleasedReservations,
            Self::RegistrationsPreempted => Way::ToldOfPreemptedRegistrations,
            Self::ClearedByProtocol => return None,
        })
    }
}

/// The two ports of a nexus: the initiator's, and the portal group, which is the target's (RFC 7143 §4.4.2).
type Ports = (Port, u16);

/// A nexus at a unit.
type Nexus = (UnitIndex, Ports);

/// What one nexus may be told, and must be.
#[derive(Debug, Default)]
struct Pending {
    possible: BTreeSet<Attention>,
    certain: BTreeSet<Attention>,
    /// It has come back, and must be told of its own loss, or of something greater.
    is_back: bool,
    /// It may have logged out, and then its reports are forgotten.
    may_have_left: bool,
}

impl Pending {
    fn owes(&self) -> bool {
        self.is_back || !self.certain.is_empty()
    }
}

/// What an event happens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Units {
    One(UnitIndex),
    All(TargetIndex),
}

/// What makes an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Function(TargetSession, Itt),
    Reservation(UnitIndex),
}

/// An event that may have happened.
#[derive(Debug)]
struct Event {
    cause: Cause,
    attentions: BTreeSet<Attention>,
    units: Units,
    /// Who asked for it, if that is known; told only of resets.
    by: Option<Ports>,
    /// Those who may have been told of it, or to whom something greater may have happened meanwhile.
    excused: BTreeSet<Nexus>,
    /// Nobody must be told of it: the target died meanwhile.
    is_void: bool,
}

impl Event {
    fn is_reset(&self) -> bool {
        self.attentions.first().is_some_and(|attention| attention.is_reset())
    }
}

/// What every nexus may be told.
#[derive(Debug, Default)]
pub struct AttentionWatch {
    /// The logical units, by their indices.
    units: Vec<(TargetIndex, Lun)>,
    ports: NumberMap<TargetSession, Ports>,
    nexuses: NumberMap<Nexus, Pending>,
    events: Vec<Event>,
    /// The command that has begun last must be refused, to tell this nexus.
    awaited: Option<Nexus>,
}

impl AttentionWatch {
    /// Of these units.
    pub fn new(units: Vec<(TargetIndex, Lun)>) -> Self {
        Self { units, ..Self::default() }
    }

    fn contains(&self, units: Units, unit: UnitIndex) -> bool {
        match units {
            Units::One(one) => one == unit,
            Units::All(target) => self.units.get(unit.place()).is_some_and(|place| place.0 == target),
        }
    }

    fn concerns(&self, event: &Event, (unit, ports): Nexus) -> bool {
        self.contains(event.units, unit) && (event.by != Some(ports) || event.is_reset())
    }

    fn units_of(&self, target: TargetIndex) -> Vec<UnitIndex> {
        let indices = (0..).map(UnitIndex).zip(&self.units);
        indices.filter(|(_, place)| place.0 == target).map(|(unit, _)| unit).collect()
    }

    /// A session begins: at every unit of its target a nexus is new, or back.
    pub fn session_begins(&mut self, session: TargetSession, port: Ports) {
        self.ports.insert(session, port);
        for unit in self.units_of(session.target) {
            let nexus = (unit, port);
            self.excuse(nexus, |_| true);
            let Some(pending) = self.nexuses.get_mut(&nexus) else {
                let only = BTreeSet::from([Attention::PowerOn]);
                self.nexuses
                    .insert(nexus, Pending { possible: only.clone(), certain: only, ..Pending::default() });
                continue;
            };
            let news = [Attention::PowerOn, Attention::NexusLoss, Attention::ClearedByProtocol];
            pending.possible.extend(news);
            pending.is_back = true;
            if std::mem::take(&mut pending.may_have_left) {
                pending.certain.clear();
            }
        }
    }

    /// A connection of a session is gone, perhaps with commands.
    pub fn connection_lost(&mut self, session: TargetSession) {
        self.of_session(session, |pending| {
            pending.possible.insert(Attention::ClearedByProtocol);
        });
    }

    /// A session is asked to end.
    pub fn session_leaves(&mut self, session: TargetSession) {
        self.of_session(session, |pending| pending.may_have_left = true);
    }

    fn of_session(&mut self, session: TargetSession, change: impl Fn(&mut Pending)) {
        let Some(port) = self.ports.get(&session).copied() else { return };
        for unit in self.units_of(session.target) {
            self.nexuses.get_mut(&(unit, port)).into_iter().for_each(&change);
        }
    }

    /// The target died: everybody will be told that it is on again.
    pub fn crash(&mut self) {
        self.ports.clear();
        self.nexuses.clear();
        self.awaited = None;
        // A change of the reservations may yet be on its way.
        self.events.retain(|event| matches!(event.cause, Cause::Reservation(_)));
        self.events.iter_mut().for_each(|event| event.is_void = true);
    }

    /// A task management function has come to the target.
    pub fn function_arrives(&mut self, session: TargetSession, function: &TaskManagementRequest) {
        use TaskManagementFunction::{ClearTaskSet, LogicalUnitReset, TargetColdReset, TargetWarmReset};
        let unit = self.units.iter().position(|place| *place == (session.target, function.lun));
        let one = unit.and_then(|unit| u16::try_from(unit).ok()).map(|unit| Units::One(UnitIndex(unit)));
        let event = match function.function {
            ClearTaskSet => one.map(|units| (units, Attention::ClearedByAnother)),
            LogicalUnitReset => one.map(|units| (units, Attention::LogicalUnitReset)),
            TargetWarmReset | TargetColdReset => Some((Units::All(session.target), Attention::TargetReset)),
            _ => None,
        };
        let (Some((units, attention)), Some(port)) = (event, self.ports.get(&session).copied()) else {
            return;
        };
        let cause = Cause::Function(session, function.itt);
        self.begin(cause, BTreeSet::from([attention]), units, Some(port));
    }

    /// A function of a session is answered: it is complete.
    pub fn function_complete(&mut self, session: TargetSession, function: Itt) {
        let Some(event) = self.end(Cause::Function(session, function)) else { return };
        if event.is_reset() {
            let concerned = self.concerned(&event);
            for nexus in concerned {
                self.must_be_told(&event, event.attentions.first(), nexus);
            }
        }
    }

    /// Somebody asks for a change of the reservations, of which others may be told.
    pub fn reservations_change(&mut self, unit: UnitIndex, attentions: BTreeSet<Attention>) {
        self.begin(Cause::Reservation(unit), attentions, Units::One(unit), None);
    }

    /// The change is over; these ports have surely lost their registrations by it.
    pub fn reservations_changed(&mut self, unit: UnitIndex, victims: &BTreeSet<Port>) {
        let Some(event) = self.end(Cause::Reservation(unit)) else { return };
        for victim in victims {
            let is_it = |nexus: &&Nexus| nexus.0 == unit && nexus.1.0 == *victim;
            let mut through = self.nexuses.keys().filter(is_it).copied();
            // One that has used several target ports is registered through one of them.
            if let (Some(nexus), None) = (through.next(), through.next()) {
                self.must_be_told(&event, event.attentions.last(), nexus);
            }
        }
    }

    fn begin(&mut self, cause: Cause, attentions: BTreeSet<Attention>, units: Units, by: Option<Ports>) {
        if self.events.iter().any(|event| event.cause == cause) {
            return;
        }
        let excused = BTreeSet::new();
        let mut event = Event { cause, attentions, units, by, excused, is_void: false };
        for nexus in self.concerned(&event) {
            // While a reset is under way, it may come first or last.
            let is_reset = |other: &Event| other.is_reset() && self.concerns(other, nexus);
            if self.events.iter().any(is_reset) {
                event.excused.insert(nexus);
            }
            if event.is_reset() {
                self.excuse(nexus, |_| true);
                let greatest = event.attentions.first().copied();
                let pending = self.nexuses.get_mut(&nexus);
                pending.into_iter().for_each(|pending| {
                    pending.certain.retain(|certain| Some(*certain) <= greatest);
                });
            }
        }
        self.events.push(event);
    }

    /// An event may have been told, or voided, for a nexus.
    fn excuse(&mut self, nexus: Nexus, chosen: impl Fn(&Event) -> bool) {
        self.events.iter_mut().filter(|event| chosen(event)).for_each(|event| {
            event.excused.insert(nexus);
        });
    }

    fn concerned(&self, event: &Event) -> Vec<Nexus> {
        self.nexuses.keys().copied().filter(|nexus| self.concerns(event, *nexus)).collect()
    }

    /// An event has happened, if it ever will. Whoever it concerns may still be told.
    fn end(&mut self, cause: Cause) -> Option<Event> {
        let place = self.events.iter().position(|event| event.cause == cause)?;
        let event = self.events.remove(place);
        for nexus in self.concerned(&event) {
            let pending = self.nexuses.get_mut(&nexus);
            pending.into_iter().for_each(|pending| pending.possible.extend(&event.attentions));
        }
        Some(event)
    }

    /// A nexus must be told of an event that has happened, unless it may have been.
    fn must_be_told(&mut self, event: &Event, attention: Option<&Attention>, nexus: Nexus) {
        let (Some(pending), Some(attention)) = (self.nexuses.get_mut(&nexus), attention.copied()) else {
            return;
        };
        // What is pending already stands for a lesser reset.
        let is_hidden = attention.is_reset() && pending.possible.range(..attention).next().is_some();
        if !event.is_void && !event.excused.contains(&nexus) && !is_hidden {
            pending.certain.insert(attention);
        }
    }

    /// A command reaches the device server.
    ///
    /// # Errors
    /// The one before it was not refused, although its nexus had to be told something.
    pub fn command_begins(
        &mut self,
        session: TargetSession,
        unit: UnitIndex,
        cdb: &[u8],
    ) -> Result<(), String> {
        self.check_awaited()?;
        if let Some(port) = self.ports.get(&session).copied()
            && !passes(cdb)
            && self.nexuses.get(&(unit, port)).is_some_and(Pending::owes)
        {
            self.awaited = Some((unit, port));
        }
        Ok(())
    }

    fn check_awaited(&mut self) -> Result<(), String> {
        let Some(nexus) = self.awaited.take() else { return Ok(()) };
        let pending = self.nexuses.get(&nexus);
        Err(format!("a command of {nexus:?} is carried out, which had to be told: {pending:?}"))
    }

    /// The command that began last is refused at once.
    ///
    /// # Errors
    /// It tells of nothing that has happened, or not of what it must tell first.
    pub fn command_refused(
        &mut self,
        session: TargetSession,
        unit: UnitIndex,
        outcome: &Outcome,
        reached: &mut Reached,
    ) -> Result<(), String> {
        let Some(port) = self.ports.get(&session).copied() else { return Ok(()) };
        let nexus = (unit, port);
        if let Outcome::CheckCondition(sense) = outcome
            && sense.key == SenseKey::UnitAttention
        {
            self.awaited = None;
            let told = Attention::of(sense.additional);
            let told = told.ok_or_else(|| format!("{nexus:?} is told of {:?}", sense.additional))?;
            told.way().into_iter().for_each(|way| reached.count(way));
            return self.told(nexus, told);
        }
        if *outcome == Outcome::Refused(Status::ReservationConflict)
            && let Some(pending) = self.nexuses.get(&nexus)
            && !pending.is_back
            && !pending.certain.iter().any(|certain| certain.precedes_conflict())
        {
            self.awaited = None;
        }
        self.check_awaited()
    }

    fn told(&mut self, nexus: Nexus, told: Attention) -> Result<(), String> {
        let is_told_of = |event: &Event| event.attentions.contains(&told);
        let is_under_way = self.events.iter().any(|event| is_told_of(event) && self.concerns(event, nexus));
        let pending = self.nexuses.entry(nexus).or_default();
        if !pending.possible.contains(&told) && !is_under_way {
            return Err(format!("{nexus:?} is told of {told:?}, which has not happened: {pending:?}"));
        }
        pending.possible.remove(&told);
        pending.certain.remove(&told);
        pending.is_back &= !told.precedes_conflict();
        if told == Attention::NexusLoss {
            pending.possible.remove(&Attention::PowerOn);
        }
        if told.is_reset() {
            // It stands for every lesser reset before it.
            pending.possible.retain(|possible| !possible.is_reset());
            pending.certain.retain(|certain| !certain.is_reset());
        }
        self.excuse(nexus, |event| is_told_of(event) || told.is_reset() && event.is_reset());
        Ok(())
    }
}

/// Whether a command is carried out although its nexus has not been told: INQUIRY, REPORT LUNS and REQUEST SENSE.
fn passes(cdb: &[u8]) -> bool {
    matches!(cdb.first(), Some(0x03 | 0x12 | 0xa0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pdu::{CmdSn, StatSn, Tsih};

    const UNIT: UnitIndex = UnitIndex::FIRST;
    const OTHER_UNIT: UnitIndex = UnitIndex(1);
    const RESET: AdditionalSense = AdditionalSense::BUS_DEVICE_RESET_FUNCTION_OCCURRED;
    const TEST_UNIT_READY: [u8; 6] = [0; 6];

    fn session(number: u16) -> TargetSession {
        TargetSession { target: TargetIndex::FIRST, tsih: Tsih(number) }
    }

    fn is_told(
        watch: &mut AttentionWatch,
        number: u16,
        unit: UnitIndex,
        additional: AdditionalSense,
    ) -> bool {
        let outcome = Outcome::CheckCondition(scsi::Sense::unit_attention(additional));
        watch.command_begins(session(number), unit, &TEST_UNIT_READY).is_ok()
            && watch.command_refused(session(number), unit, &outcome, &mut Reached::default()).is_ok()
    }

    /// Whether a command may be carried out, as the next one shows.
    fn may_do(watch: &mut AttentionWatch, number: u16, unit: UnitIndex) -> bool {
        watch.command_begins(session(number), unit, &TEST_UNIT_READY).is_ok() && watch.check_awaited().is_ok()
    }

    /// Two sessions of two ports at two units, told of the power on.
    fn watch() -> AttentionWatch {
        let place = |number| (TargetIndex::FIRST, Lun::from_index(number));
        let mut watch = AttentionWatch::new(vec![place(0), place(1)]);
        for number in [1, 2] {
            watch.session_begins(session(number), (Port(number.into()), 1));
            for unit in [UNIT, OTHER_UNIT] {
                let power_on = AdditionalSense::POWER_ON_RESET_OR_BUS_DEVICE_RESET_OCCURRED;
                assert!(is_told(&mut watch, number, unit, power_on));
            }
        }
        watch
    }

    /// The first session resets the unit.
    fn reset(watch: &mut AttentionWatch) {
        let function = TaskManagementRequest {
            function: TaskManagementFunction::LogicalUnitReset,
            immediate: true,
            lun: Lun::from_index(0),
            itt: Itt(7),
            referenced_task: Itt::NONE,
            cmd_sn: CmdSn(1),
            exp_stat_sn: StatSn(1),
            ref_cmd_sn: CmdSn(0),
            exp_data_sn: pdu::DataSn(0),
        };
        watch.function_arrives(session(1), &function);
        watch.function_complete(session(1), Itt(7));
    }

    #[test]
    fn each_nexus_is_told_of_a_reset_once() {
        let mut watch = watch();
        reset(&mut watch);
        for number in [1, 2] {
            assert!(is_told(&mut watch, number, UNIT, RESET));
            assert!(may_do(&mut watch, number, UNIT));
        }
        assert!(!is_told(&mut watch, 1, UNIT, RESET));
    }

    #[test]
    fn a_nexus_that_is_not_told_of_a_reset_is_missed() {
        let mut watch = watch();
        reset(&mut watch);
        assert!(!may_do(&mut watch, 2, UNIT));
    }

    #[test]
    fn a_reset_is_told_at_its_unit_and_at_no_other() {
        let mut watch = watch();
        reset(&mut watch);
        assert!(may_do(&mut watch, 2, OTHER_UNIT));
        assert!(!is_told(&mut watch, 2, OTHER_UNIT, RESET));
    }

    #[test]
    fn a_nexus_that_is_back_is_told_of_a_reset_and_of_its_loss() {
        let mut watch = watch();
        reset(&mut watch);
        watch.session_begins(session(3), (Port(2), 1));
        assert!(is_told(&mut watch, 3, UNIT, RESET));
        assert!(is_told(&mut watch, 3, UNIT, AdditionalSense::I_T_NEXUS_LOSS_OCCURRED));
        assert!(may_do(&mut watch, 3, UNIT));
    }
}
