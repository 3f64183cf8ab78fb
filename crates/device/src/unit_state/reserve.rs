//! Reservations at a logical unit: RESERVE and RELEASE (SPC-2), PERSISTENT RESERVE IN and OUT (SPC-4), and their
//! effects on the commands of other nexuses.

use scsi::{Outcome, PersistentReserveIn, PersistentReserveOut, Restriction};

use super::i_t_nexus::{InitiatorPort, Ports, RelativePort};
use super::persistent_reserve_out::{Surroundings, Transition};
use super::reservations::Reservations;
use super::{Cleared, NexusId, NexusTask, PersistedReservations, UnitAttention, UnitState};

/// Both kinds of reservation of one logical unit.
#[derive(Clone, Debug)]
pub(super) struct Reserve {
    persistent: Reservations,
    /// The holder by RESERVE. This reservation ends with the session and with a reset, so a nexus that is gone cannot
    /// lock others out.
    session: Option<NexusId>,
    target_ports: Vec<RelativePort>,
    can_persist: bool,
    /// The stored state may differ from the state in force.
    in_doubt: bool,
}

impl Default for Reserve {
    fn default() -> Self {
        Self {
            persistent: Reservations::default(),
            session: None,
            target_ports: vec![RelativePort::ONLY],
            can_persist: false,
            in_doubt: false,
        }
    }
}

impl Reserve {
    /// Whether this nexus may execute a command with this `restriction`.
    pub(super) fn admits(&self, nexus: NexusId, ports: &Ports, restriction: Restriction) -> bool {
        let shut_out =
            self.session.is_some_and(|holder| holder != nexus) && restriction >= Restriction::Reserve;
        !shut_out && self.persistent.admits(ports, restriction)
    }

    /// The session of this nexus has ended.
    pub(super) fn lose(&mut self, nexus: NexusId) {
        self.session.take_if(|holder| *holder == nexus);
    }

    /// The unit was reset: persistent reservations stay.
    pub(super) fn reset(&mut self) {
        self.session = None;
    }

    /// Whether RESERVE and RELEASE have no effect for this nexus.
    fn ignores(&self, ports: &Ports) -> Result<bool, Outcome> {
        match self.persistent.ignores_reserve(ports) {
            false if !self.persistent.registrations.is_empty() => Err(Outcome::reservation_conflict()),
            ignored => Ok(ignored),
        }
    }
}

/// A permitted change of the persistent reservations that is not in force yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "nothing changes until it is committed"]
pub struct ReservationChange {
    task: NexusTask,
    transition: Transition,
    to_persist: Option<PersistedReservations>,
}

impl ReservationChange {
    /// The state to make durable before the commit and the answer. If that fails, the change is dropped and the command
    /// fails.
    #[must_use]
    pub const fn to_persist(&self) -> Option<&PersistedReservations> {
        self.to_persist.as_ref()
    }
}

/// The consequences of a change of the reservations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "these tasks wait for ever otherwise"]
pub struct Settled {
    /// Tasks that had not started; they are gone, and answered with RESERVATION CONFLICT.
    pub refused: Vec<NexusTask>,
    /// PREEMPT AND ABORT: the tasks of the preempted nexuses.
    pub cleared: Cleared,
}

impl UnitState {
    /// The same unit, seen through these ports of its target.
    #[must_use]
    pub fn with_target_ports(mut self, ports: impl IntoIterator<Item = RelativePort>) -> Self {
        self.reserve.target_ports = ports.into_iter().collect();
        self
    }

    /// The same unit with persisted reservations. Call it before the first session.
    #[must_use]
    pub fn restore(mut self, snapshot: PersistedReservations) -> Self {
        self.reserve.can_persist = true;
        self.reserve.persistent = Reservations::restored(snapshot);
        self
    }

    /// PERSISTENT RESERVE IN. It conflicts while the unit is reserved by RESERVE, also for the holder (SPC-2).
    #[must_use]
    pub fn persistent_reserve_in(&self, request: &PersistentReserveIn) -> Outcome {
        let Reserve { persistent, session, can_persist, .. } = &self.reserve;
        match session {
            Some(_) => Outcome::reservation_conflict(),
            None => request.respond(&persistent.status(*can_persist)),
        }
    }

    /// PERSISTENT RESERVE OUT, up to the point where the change must become durable. It is a started task, and the task
    /// set starts only one such task at a time, so the state that it was checked against is unchanged at the commit.
    ///
    /// # Errors
    /// The request is refused, with this outcome.
    pub fn persistent_reserve_out(
        &self,
        task: NexusTask,
        request: &PersistentReserveOut,
    ) -> Result<ReservationChange, Outcome> {
        let requester = self.ports(task.nexus).ok_or_else(Outcome::internal_failure)?;
        let Reserve { persistent, session, target_ports, can_persist, in_doubt } = &self.reserve;
        if session.is_some() {
            return Err(Outcome::reservation_conflict());
        }
        let present: Vec<InitiatorPort> =
            self.all_ports().map(|(_, ports)| ports.initiator.clone()).collect();
        let (present, can_persist) = (&present[..], *can_persist);
        let transition =
            persistent.after(request, &Surroundings { requester, present, target_ports, can_persist })?;
        let snapshot = transition.next.persisted();
        let to_persist = (*in_doubt || snapshot != persistent.persisted()).then_some(snapshot);
        Ok(ReservationChange { task, transition, to_persist })
    }

    /// Puts a change in force. Its command is answered with GOOD when the tasks that it aborted have come to rest.
    pub fn commit(&mut self, change: ReservationChange) -> Settled {
        let ReservationChange { task, transition: Transition { next, told, aborted }, to_persist } = change;
        self.reserve.persistent = next;
        if to_persist.is_some() {
            self.reserve.in_doubt = false;
        }
        for (registered, attention) in told {
            self.tell_ports(|ports| registered.covers(ports), attention);
        }
        let aborted =
            self.nexuses_at_the_disk(|ports| aborted.iter().any(|registered| registered.covers(ports)));
        let mut cleared = self.clear(|other| other != task && aborted.contains(&other.nexus));
        for lost in cleared.dropped.iter().chain(&cleared.started).filter(|lost| lost.nexus != task.nexus) {
            self.tell(lost.nexus, UnitAttention::CommandsClearedByAnotherInitiator);
        }
        let refused = self.refuse(&mut cleared);
        Settled { refused, cleared }
    }

    /// A change could not be made durable and does not come into force. The storage may hold the old or the new state,
    /// so the next change is stored even if it leads to the last stored state.
    pub fn not_persisted(&mut self, _change: ReservationChange) {
        self.reserve.in_doubt = true;
    }

    /// RESERVE.
    ///
    /// # Errors
    /// The request is refused, with this outcome.
    pub fn reserve(&mut self, nexus: NexusId) -> Result<Settled, Outcome> {
        let ports = self.ports(nexus).ok_or_else(Outcome::internal_failure)?;
        if self.reserve.ignores(ports)? {
            return Ok(Settled::default());
        }
        if self.reserve.session.is_some_and(|holder| holder != nexus) {
            return Err(Outcome::reservation_conflict());
        }
        self.reserve.session = Some(nexus);
        let mut cleared = Cleared::default();
        let refused = self.refuse(&mut cleared);
        Ok(Settled { refused, cleared })
    }

    /// RELEASE. Without a reservation of this nexus it has no effect, and succeeds.
    #[must_use]
    pub fn release(&mut self, nexus: NexusId) -> Outcome {
        let Some(ports) = self.ports(nexus) else { return Outcome::internal_failure() };
        match self.reserve.ignores(ports) {
            Ok(true) => {}
            Ok(false) => self.reserve.lose(nexus),
            Err(conflict) => return conflict,
        }
        Outcome::good()
    }

    /// Removes the tasks that have not started and that the reservations now forbid, so that a fenced-off host cannot
    /// write anything that it requested earlier.
    fn refuse(&mut self, cleared: &mut Cleared) -> Vec<NexusTask> {
        let (refused, startable) = self.drop_held_up();
        cleared.startable.retain(|task| !refused.contains(task));
        cleared.startable.extend(startable);
        refused
    }
}
