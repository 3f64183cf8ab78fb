//! Initiators to meet a unit, and a unit whose reservations they ask for.

use pdu::{Isid, TaskAttribute};
use ropewalk_device::unit_state::{
    Admission, InitiatorPort, NexusId, NexusTask, PersistedReservations, Ports, RelativePort, Settled,
    UnitState,
};
use scsi::{
    Extent, Outcome, PersistentReserveIn, PersistentReserveOut, Register, ReservationKey, ReservationType,
    ReserveAction, ReserveIn, Status, Step,
};
use session::target::TaskId;

pub const TEST_UNIT_READY: &[u8] = &[0; 6];
pub const READ: &[u8] = &[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0];
pub const WRITE: &[u8] = &[0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0];

/// The ports of a nexus: each is an initiator of its own.
pub fn ports(nexus: NexusId) -> Ports {
    let name = format!("iqn.2026-01.org.example:host{}", nexus.0);
    Ports { initiator: InitiatorPort::new(&name, Isid([0x80, 0, 0, 0, 0, 0])), target: RelativePort::ONLY }
}

/// The same name and ISID as the initiator of `nexus`, in the hands of this CHAP user.
pub fn ports_of_user(nexus: NexusId, user: &str) -> Ports {
    let Ports { initiator, target } = ports(nexus);
    Ports { initiator: initiator.of_user(Some(user)), target }
}

pub fn task(nexus: NexusId, number: u32) -> NexusTask {
    NexusTask { nexus, task: TaskId(number) }
}

/// The key that [`Shared::register`] gives to a nexus.
pub fn key(nexus: NexusId) -> ReservationKey {
    ReservationKey(nexus.0 + 0x100)
}

/// A unit, and initiators that have no unit attention pending.
pub struct Shared {
    pub unit: UnitState,
    next_task: u32,
}

impl Shared {
    pub fn between(nexuses: impl IntoIterator<Item = NexusId>) -> Self {
        Self::with(UnitState::new(), nexuses)
    }

    pub fn with(unit: UnitState, nexuses: impl IntoIterator<Item = NexusId>) -> Self {
        let mut shared = Self { unit, next_task: 0 };
        for nexus in nexuses {
            shared.join(nexus, ports(nexus));
        }
        shared
    }

    /// A session that has nothing to be told.
    pub fn join(&mut self, nexus: NexusId, ports: Ports) {
        self.unit.establish(nexus, ports);
        while self.told(nexus).is_some() {}
    }

    pub fn new_task(&mut self, nexus: NexusId) -> NexusTask {
        self.next_task += 1;
        task(nexus, self.next_task)
    }

    /// How a command fares on its arrival; it ends at once.
    pub fn tried(&mut self, nexus: NexusId, cdb: &[u8]) -> Status {
        let task = self.new_task(nexus);
        match self.unit.arrive(task, TaskAttribute::Simple, cdb) {
            Ok(()) => {
                assert_eq!(self.unit.finish(task), []);
                Status::Good
            }
            Err(outcome) => outcome.status(),
        }
    }

    /// The next thing that a nexus is told.
    pub fn told(&mut self, nexus: NexusId) -> Option<scsi::AdditionalSense> {
        self.unit.request_sense(nexus).map(|sense| sense.additional)
    }

    /// A command that waits for its data.
    pub fn arrived(&mut self, nexus: NexusId, cdb: &[u8]) -> NexusTask {
        let task = self.new_task(nexus);
        assert_eq!(self.unit.arrive(task, TaskAttribute::Simple, cdb), Ok(()));
        task
    }

    /// A write that is on the disk.
    pub fn writing(&mut self, nexus: NexusId) -> NexusTask {
        let task = self.arrived(nexus, WRITE);
        let write = Step::Write { extent: Extent::new(0, 1), fua: false };
        assert_eq!(self.unit.ready(task, &write), Admission::Start);
        task
    }

    /// PERSISTENT RESERVE OUT, with what it leads to.
    pub fn change(
        &mut self,
        nexus: NexusId,
        key: ReservationKey,
        action: ReserveAction,
    ) -> Result<(Settled, Option<PersistedReservations>), Outcome> {
        let request = PersistentReserveOut { key, action };
        let task = self.started_as(nexus, &Step::PersistentReserveOut(request.clone()));
        let changed = self.unit.persistent_reserve_out(task, &request).map(|change| {
            let to_persist = change.to_persist().cloned();
            (self.unit.commit(change), to_persist)
        });
        let _ = self.unit.finish(task);
        changed
    }

    fn started_as(&mut self, nexus: NexusId, step: &Step) -> NexusTask {
        let task = self.arrived(nexus, &[0x5f, 0]);
        assert_eq!(self.unit.ready(task, step), Admission::Start);
        task
    }

    /// PERSISTENT RESERVE OUT with the nexus's own key, which succeeds.
    pub fn ask(&mut self, nexus: NexusId, action: ReserveAction) -> Settled {
        self.change(nexus, key(nexus), action).expect("GOOD").0
    }

    /// PERSISTENT RESERVE OUT with the nexus's own key, which is refused.
    pub fn refusal(&mut self, nexus: NexusId, action: ReserveAction) -> Outcome {
        self.change(nexus, key(nexus), action).expect_err("a refusal")
    }

    pub fn register(&mut self, nexus: NexusId) {
        let settled = self.change(nexus, ReservationKey::NONE, registering(key(nexus)));
        assert_eq!(settled, Ok((Settled::default(), None)));
    }

    pub fn reserve(&mut self, nexus: NexusId, kind: ReservationType) {
        let _ = self.ask(nexus, ReserveAction::Reserve(kind));
    }

    /// The keys of all registrants.
    pub fn keys(&self) -> Vec<ReservationKey> {
        let told = self.read(ReserveIn::Keys);
        told[8..].as_chunks::<8>().0.iter().map(|key| ReservationKey(u64::from_be_bytes(*key))).collect()
    }

    pub fn generation(&self) -> u32 {
        let told = self.read(ReserveIn::Keys);
        u32::from_be_bytes([told[0], told[1], told[2], told[3]])
    }

    /// The key and type of the reservation.
    pub fn held(&self) -> Option<(ReservationKey, ReservationType)> {
        let told = self.read(ReserveIn::Reservation);
        let (key, rest) = told[8..].split_first_chunk::<8>()?;
        Some((ReservationKey(u64::from_be_bytes(*key)), ReservationType::from_code(rest[5])?))
    }

    pub fn read(&self, what: ReserveIn) -> Vec<u8> {
        let request = PersistentReserveIn { what, allocation_bytes: u16::MAX };
        match self.unit.persistent_reserve_in(&request) {
            Outcome::Good(data) => data,
            other => panic!("{other:?}"),
        }
    }
}

/// REGISTER for the sender's own nexus.
pub fn registering(new_key: ReservationKey) -> ReserveAction {
    ReserveAction::Register(register(new_key))
}

pub fn register(new_key: ReservationKey) -> Register {
    Register {
        new_key,
        ignore_existing_key: false,
        persist: false,
        all_target_ports: false,
        others: Vec::new(),
    }
}

pub fn preempting(victim: NexusId, kind: ReservationType) -> ReserveAction {
    ReserveAction::Preempt { victim: key(victim), kind: Some(kind), abort: false }
}
