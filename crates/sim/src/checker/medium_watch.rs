//! Which writes are on the medium, and whether they may be there: what a reservation forbids does not start, and what a
//! PREEMPT AND ABORT aborts is over when that is answered (SPC-4 §5.12.11.2.6). Whoever fences another host off and then
//! takes over its blocks relies on both, though no answer of the other's commands ever shows it.

use super::number_map::NumberMap;
use super::reservation_history::{Access, Port, Preempted, ReservationHistory};
use super::tap::TargetSession;
use crate::unit::UnitIndex;
use scsi::MediumAccess;
use session::target::{Command, TaskId};
use std::collections::BTreeMap;

/// PERSISTENT RESERVE OUT, and its service action PREEMPT AND ABORT.
const PREEMPT_AND_ABORT: [u8; 2] = [0x5f, 0x05];

type Task = (TargetSession, TaskId);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Write,
    PreemptAndAbort,
}

impl Kind {
    fn of(cdb: &[u8]) -> Option<Self> {
        match *cdb {
            [code, action, ..] if [code, action & 0x1f] == PREEMPT_AND_ABORT => Some(Self::PreemptAndAbort),
            _ => (MediumAccess::of(cdb) == MediumAccess::Write).then_some(Self::Write),
        }
    }
}

/// What is going on at the media of all units.
#[derive(Debug, Default)]
pub struct MediumWatch {
    /// The initiator port of each session.
    ports: NumberMap<TargetSession, Port>,
    /// Commands that have not started.
    begun: NumberMap<Task, (UnitIndex, Kind)>,
    /// Writes that have started and not ended.
    writing: BTreeMap<Task, UnitIndex>,
    /// Whose writes have started since that was judged.
    started: Vec<(UnitIndex, Port)>,
    /// What was writing when this port's last PREEMPT AND ABORT started.
    at_preemption: NumberMap<(UnitIndex, Port), Vec<Task>>,
}

impl MediumWatch {
    /// A session begins.
    pub fn session_begins(&mut self, session: TargetSession, port: Port) {
        self.ports.insert(session, port);
    }

    /// A command is handed over.
    pub fn command_begins(&mut self, session: TargetSession, unit: UnitIndex, command: &Command) {
        match Kind::of(command.cdb.bytes()) {
            Some(kind) => self.begun.insert((session, command.task), (unit, kind)),
            None => self.begun.remove(&(session, command.task)),
        };
    }

    /// It begins at the medium.
    pub fn command_starts(&mut self, session: TargetSession, task: TaskId) {
        let kind = self.begun.remove(&(session, task));
        let Some(((unit, kind), port)) = kind.zip(self.ports.get(&session).copied()) else { return };
        match kind {
            Kind::Write => {
                self.writing.insert((session, task), unit);
                self.started.push((unit, port));
            }
            Kind::PreemptAndAbort => {
                let writing = self.writing.iter().filter(|(_, other)| **other == unit);
                self.at_preemption.insert((unit, port), writing.map(|(task, _)| *task).collect());
            }
        }
    }

    /// It is over.
    pub fn command_ends(&mut self, session: TargetSession, task: TaskId) {
        self.writing.remove(&(session, task));
    }

    /// The target died, and all of this with it.
    pub fn crash(&mut self) {
        *self = Self::default();
    }

    /// Judges what has happened at a unit with these reservations, right after it has.
    ///
    /// # Errors
    /// What went on that should not have.
    pub fn judge(&mut self, unit: UnitIndex, reservations: &mut ReservationHistory) -> Result<(), String> {
        for (_, port) in self.started.extract_if(.., |(other, _)| *other == unit) {
            let judged = reservations.judge(reservations.version(), port, Access::Write, false);
            judged.map_err(|problem| format!("a write starts: {problem}"))?;
        }
        let Some(Preempted { by, victims }) = reservations.take_preempted() else { return Ok(()) };
        let aborted = self.at_preemption.remove(&(unit, by)).unwrap_or_default();
        let is_victim =
            |session: &TargetSession| self.ports.get(session).is_some_and(|port| victims.contains(port));
        let goes_on = |task: &&Task| is_victim(&task.0) && self.writing.contains_key(task);
        match aborted.iter().find(goes_on) {
            Some(task) => {
                Err(format!("{task:?} still writes after {by:?} preempted and aborted {victims:?}"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Answer, Change};
    use super::*;
    use crate::unit::TargetIndex;
    use pdu::{Lun, TaskAttribute, Tsih};
    use scsi::ReservationType;

    const UNIT: UnitIndex = UnitIndex::FIRST;
    const FENCED: Port = Port(1);
    const FENCING: Port = Port(2);
    const KIND: ReservationType = ReservationType::WriteExclusive;
    const PREEMPTION: Change = Change::Preempt { victim: Some(FENCED), kind: KIND, abort: true };

    fn session_of(number: u16) -> TargetSession {
        TargetSession { target: TargetIndex::FIRST, tsih: Tsih(number) }
    }

    fn does(history: &mut ReservationHistory, port: Port, change: Change) {
        history.begin(port, change);
        assert_eq!(history.end(Answer::Done), Ok(()));
    }

    /// FENCED holds the reservation, and FENCING is registered.
    fn reserved() -> (MediumWatch, ReservationHistory) {
        let mut history = ReservationHistory::default();
        does(&mut history, FENCED, Change::Register { persist: false });
        does(&mut history, FENCED, Change::Reserve(KIND));
        does(&mut history, FENCING, Change::Register { persist: false });
        let mut watch = MediumWatch::default();
        watch.session_begins(session_of(1), FENCED);
        watch.session_begins(session_of(2), FENCING);
        (watch, history)
    }

    fn starts(watch: &mut MediumWatch, session: u16, cdb: [u8; 16]) {
        let command = Command {
            task: TaskId(0),
            cmd_sn: None,
            order_wait: None,
            lun: Lun(0),
            attribute: TaskAttribute::Simple,
            cdb: cdb.into(),
            data_out_bytes: 0,
            data_in_bytes: 0,
        };
        watch.command_begins(session_of(session), UNIT, &command);
        watch.command_starts(session_of(session), TaskId(0));
    }

    fn write(watch: &mut MediumWatch, session: u16) {
        starts(watch, session, [0x8a; 16]);
    }

    #[test]
    fn whoever_is_fenced_off_does_not_start_to_write() {
        let (mut watch, mut history) = reserved();
        write(&mut watch, 1);
        assert_eq!(watch.judge(UNIT, &mut history), Ok(()));
        write(&mut watch, 2);
        assert!(watch.judge(UNIT, &mut history).is_err());
    }

    #[test]
    fn a_write_that_was_aborted_is_over_when_the_preemption_is_answered() {
        for ends in [true, false] {
            let (mut watch, mut history) = reserved();
            write(&mut watch, 1);
            starts(&mut watch, 2, [0x5f, 0x05, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(watch.judge(UNIT, &mut history), Ok(()));
            if ends {
                watch.command_ends(session_of(1), TaskId(0));
            }
            does(&mut history, FENCING, PREEMPTION);
            assert_eq!(watch.judge(UNIT, &mut history).is_ok(), ends);
        }
    }

    #[test]
    fn a_reservation_of_another_unit_forbids_nothing() {
        let (mut watch, _) = reserved();
        write(&mut watch, 2);
        assert_eq!(watch.judge(UNIT, &mut ReservationHistory::default()), Ok(()));
        let (mut watch, mut history) = reserved();
        write(&mut watch, 2);
        assert_eq!(watch.judge(UnitIndex(1), &mut history), Ok(()));
    }
}
