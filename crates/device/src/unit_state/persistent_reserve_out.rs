//! PERSISTENT RESERVE OUT: from one state of the reservations to the next (SPC-4).

use std::collections::BTreeSet;

use scsi::{
    AdditionalSense, FieldPointer, Outcome, PersistentReserveOut, Register, RegisterAndMove, ReservationKey,
    ReservationType, ReserveAction, Sense, TransportId,
};

use super::UnitAttention;
use super::i_t_nexus::{InitiatorPort, Ports, RelativePort};
use super::reservations::{Held, REGISTRATIONS_MAX, Registered, Registration, Reservations, TargetPorts};

/// The context of a request besides the reservations.
pub(super) struct Surroundings<'a> {
    /// The nexus of the command.
    pub requester: &'a Ports,
    /// The initiator ports that have a session.
    pub present: &'a [InitiatorPort],
    /// The target's ports.
    pub target_ports: &'a [RelativePort],
    /// Reservations can be made to persist.
    pub can_persist: bool,
}

impl Surroundings<'_> {
    /// The initiator ports that `others` name, each once.
    ///
    /// # Errors
    /// One of them names an initiator that has no port.
    fn named(&self, others: &[TransportId]) -> Result<BTreeSet<InitiatorPort>, Outcome> {
        let mut all = BTreeSet::new();
        for other in others {
            let named = self.named_by(other);
            if named.is_empty() {
                return Err(invalid(TRANSPORT_ID_AT));
            }
            all.extend(named);
        }
        Ok(all)
    }

    /// The initiator ports that `id` names. An ID contains no user: ports of the requester's own user take precedence
    /// over those of others that have a session, and a port without a session counts as the requester's user's.
    fn named_by(&self, id: &TransportId) -> BTreeSet<InitiatorPort> {
        let user = self.requester.initiator.user();
        let present = self.present.iter().filter(|port| port.is_named_by(id)).cloned();
        let (own, others): (BTreeSet<_>, BTreeSet<_>) = present.partition(|port| port.user() == user);
        match (own.is_empty(), others.is_empty()) {
            (false, _) => own,
            (true, false) => others,
            (true, true) => InitiatorPort::named_by(id).map(|port| port.of_user(user)).into_iter().collect(),
        }
    }

    /// The one initiator port that `id` names.
    ///
    /// # Errors
    /// It names a whole initiator, or ports of several users.
    fn one_named_by(&self, id: &TransportId) -> Result<InitiatorPort, Outcome> {
        let mut named = self.named_by(id).into_iter().filter(|_| id.isid.is_some());
        match (named.next(), named.next()) {
            (Some(port), None) => Ok(port),
            _ => Err(invalid(TRANSPORT_ID_AT)),
        }
    }
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transition {
    pub next: Reservations,
    /// Unit attentions to report, and their registrants.
    pub told: Vec<(Registered, UnitAttention)>,
    /// Registrants whose commands are aborted.
    pub aborted: Vec<Registered>,
}

/// Offsets of the fields in the parameter list.
const ACTION_KEY_AT: u16 = 8;
const RELATIVE_TARGET_PORT_AT: u16 = 18;
const FLAGS_AT: u16 = 20;
const SPECIFY_INITIATOR_PORTS_BIT: u8 = 3;
const PERSIST_BIT: u8 = 0;
const TRANSPORT_ID_AT: u16 = 24;
const MOVE_FLAGS_AT: u16 = 17;

fn invalid(byte: u16) -> Outcome {
    Outcome::CheckCondition(Sense::invalid_field_in_parameter_list(byte))
}

fn invalid_bit(byte: u16, bit: u8) -> Outcome {
    let field = FieldPointer { in_cdb: false, byte, bit: Some(bit) };
    let additional = AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST;
    Outcome::CheckCondition(Sense::illegal_request(additional).at(field))
}

impl Reservations {
    /// Carries out a request.
    ///
    /// # Errors
    /// The request is refused, and nothing changes: RESERVATION CONFLICT if the requester is not registered with its
    /// key, or may not do this now; otherwise CHECK CONDITION with the defect.
    pub(super) fn after(
        &self,
        request: &PersistentReserveOut,
        around: &Surroundings<'_>,
    ) -> Result<Transition, Outcome> {
        if let ReserveAction::Register(register) = &request.action {
            return self.after_register(request.key, register, around);
        }
        let own = self.of(around.requester).filter(|own| own.key == request.key);
        let own = own.ok_or_else(Outcome::reservation_conflict)?;
        match &request.action {
            ReserveAction::Register(_) => Err(Outcome::internal_failure()),
            ReserveAction::Reserve(kind) => self.after_reserve(own, *kind),
            ReserveAction::Release(kind) => self.after_release(own, *kind),
            ReserveAction::Clear => Ok(self.after_clear(own)),
            ReserveAction::Preempt { victim, kind, abort } => self.after_preempt(own, *victim, *kind, *abort),
            ReserveAction::Move(to) => self.after_move(own, to, around),
        }
    }

    /// A transition that changes nothing yet.
    fn transition(&self) -> Transition {
        Transition { next: self.clone(), told: Vec::new(), aborted: Vec::new() }
    }

    fn after_register(
        &self,
        key: ReservationKey,
        register: &Register,
        around: &Surroundings<'_>,
    ) -> Result<Transition, Outcome> {
        if register.persist && !around.can_persist {
            return Err(invalid_bit(FLAGS_AT, PERSIST_BIT));
        }
        let own = self.of(around.requester);
        let known = own.map_or(ReservationKey::NONE, |own| own.key);
        if !register.ignore_existing_key && known != key {
            return Err(Outcome::reservation_conflict());
        }
        if own.is_some() && !register.others.is_empty() {
            return Err(invalid_bit(FLAGS_AT, SPECIFY_INITIATOR_PORTS_BIT));
        }
        let mut transition = self.transition();
        match (register.new_key, own) {
            (ReservationKey::NONE, None) => return Ok(transition),
            (ReservationKey::NONE, Some(own)) => transition.unregister(&own.nexus),
            (new_key, _) => self.register(&mut transition.next, key, new_key, register, around)?,
        }
        transition.next.persists = register.persist;
        transition.next.count();
        Ok(transition)
    }

    /// Registers the requester, and the others that it names and that are not registered yet: all or none.
    fn register(
        &self,
        next: &mut Self,
        key: ReservationKey,
        new_key: ReservationKey,
        register: &Register,
        around: &Surroundings<'_>,
    ) -> Result<(), Outcome> {
        let target = if register.all_target_ports {
            TargetPorts::All
        } else {
            TargetPorts::One(around.requester.target)
        };
        let own = Registered { initiator: around.requester.initiator.clone(), target };
        let foreign = |met: &Registration| met.nexus.meets(&own) && met.key != key;
        if !register.ignore_existing_key && self.registrations.iter().any(foreign) {
            return Err(Outcome::reservation_conflict());
        }
        next.put(own, new_key);
        for initiator in around.named(&register.others)? {
            let nexus = Registered { initiator, target };
            if !next.registrations.iter().any(|known| known.nexus.meets(&nexus)) {
                next.registrations.push(Registration { nexus, key: new_key });
            }
            next.check_size()?;
        }
        next.check_size()
    }

    fn check_size(&self) -> Result<(), Outcome> {
        if self.registrations.len() > REGISTRATIONS_MAX {
            let additional = AdditionalSense::INSUFFICIENT_REGISTRATION_RESOURCES;
            return Err(Outcome::CheckCondition(Sense::illegal_request(additional)));
        }
        Ok(())
    }

    /// Increments PRGENERATION, which counts changes of registrations, but not RESERVE and RELEASE.
    fn count(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    fn after_reserve(&self, own: &Registration, kind: ReservationType) -> Result<Transition, Outcome> {
        let mut transition = self.transition();
        match &self.held {
            None => transition.next.held = Some(Held::new(kind, &own.nexus)),
            Some(held) if held.is_held_by(&own.nexus) && held.kind == kind => {}
            Some(_) => return Err(Outcome::reservation_conflict()),
        }
        Ok(transition)
    }

    /// A nexus that does not hold the reservation releases nothing, which is no error.
    fn after_release(&self, own: &Registration, kind: ReservationType) -> Result<Transition, Outcome> {
        let mut transition = self.transition();
        let held = self.held.as_ref().filter(|held| held.is_held_by(&own.nexus));
        if held.is_some_and(|held| held.kind != kind) {
            let additional = AdditionalSense::INVALID_RELEASE_OF_PERSISTENT_RESERVATION;
            return Err(Outcome::CheckCondition(Sense::illegal_request(additional)));
        }
        if held.is_some() {
            transition.next.held = None;
            if kind.admits_registrants() {
                transition.tell_others(&own.nexus, UnitAttention::ReservationsReleased);
            }
        }
        Ok(transition)
    }

    fn after_clear(&self, own: &Registration) -> Transition {
        let mut transition = self.transition();
        transition.tell_others(&own.nexus, UnitAttention::ReservationsPreempted);
        transition.next.remove(|_| true);
        transition.next.count();
        transition
    }

    fn after_preempt(
        &self,
        own: &Registration,
        victim: ReservationKey,
        kind: Option<ReservationType>,
        abort: bool,
    ) -> Result<Transition, Outcome> {
        let mut transition = self.transition();
        let none = victim == ReservationKey::NONE;
        let held = self.held.as_ref();
        let removed = match held {
            Some(held) if held.kind.is_all_registrants() && none => {
                transition.next.remove(|other| other.nexus != own.nexus)
            }
            Some(held) if !none && self.holder_key(held) == victim => {
                transition.next.remove(|other| other.key == victim && other.nexus != own.nexus)
            }
            _ if none => return Err(invalid(ACTION_KEY_AT)),
            _ => return self.after_preempting_registrations(own, victim, abort),
        };
        let kind =
            kind.ok_or_else(|| Outcome::CheckCondition(Sense::invalid_field_in_cdb(FieldPointer::cdb(2))))?;
        transition.next.held = Some(Held::new(kind, &own.nexus));
        if held.is_some_and(|held| held.kind != kind) {
            transition.tell_others(&own.nexus, UnitAttention::ReservationsReleased);
        }
        transition.preempt(own, removed, abort);
        Ok(transition)
    }

    /// No holder of the reservation has the victim's key: only registrations end, including the requester's own if it
    /// names itself.
    fn after_preempting_registrations(
        &self,
        own: &Registration,
        victim: ReservationKey,
        abort: bool,
    ) -> Result<Transition, Outcome> {
        let mut transition = self.transition();
        let removed = transition.next.remove(|other| other.key == victim);
        if removed.is_empty() {
            return Err(Outcome::reservation_conflict());
        }
        transition.preempt(own, removed, abort);
        Ok(transition)
    }

    fn after_move(
        &self,
        own: &Registration,
        to: &RegisterAndMove,
        around: &Surroundings<'_>,
    ) -> Result<Transition, Outcome> {
        let held =
            self.held.as_ref().filter(|held| held.is_held_by(&own.nexus) && !held.kind.is_all_registrants());
        let held = held.ok_or_else(Outcome::reservation_conflict)?;
        if to.new_key == ReservationKey::NONE {
            return Err(invalid(ACTION_KEY_AT));
        }
        if to.persist && !around.can_persist {
            return Err(invalid_bit(MOVE_FLAGS_AT, PERSIST_BIT));
        }
        let target = RelativePort(to.relative_target_port);
        if !around.target_ports.contains(&target) {
            return Err(invalid(RELATIVE_TARGET_PORT_AT));
        }
        let initiator = around.one_named_by(&to.to)?;
        let heir = Registered { initiator, target: TargetPorts::One(target) };
        if heir.meets(&own.nexus) {
            return Err(invalid(TRANSPORT_ID_AT));
        }
        let mut transition = self.transition();
        let next = &mut transition.next;
        next.put(heir.clone(), to.new_key);
        let heir = next.registrations.iter().find(|known| known.nexus.meets(&heir));
        next.held = heir.map(|heir| Held::new(held.kind, &heir.nexus));
        if to.unregister {
            next.remove(|other| other.nexus == own.nexus);
        }
        next.persists = to.persist;
        next.count();
        next.check_size()?;
        Ok(transition)
    }
}

impl Transition {
    /// Tells all registrants except `own`.
    fn tell_others(&mut self, own: &Registered, attention: UnitAttention) {
        let others = self.next.registrations.iter().filter(|other| other.nexus != *own);
        self.told.extend(others.map(|other| (other.nexus.clone(), attention)));
    }

    /// A registration ends by its owner's wish. Registrants with the holder's rights learn that they can no longer rely
    /// on them.
    fn unregister(&mut self, own: &Registered) {
        let before = self.next.held.as_ref().map(|held| held.kind);
        self.next.remove(|other| other.nexus == *own);
        if self.next.held.is_none() && before.is_some_and(ReservationType::admits_registrants) {
            self.tell_others(own, UnitAttention::ReservationsReleased);
        }
    }

    /// Registrations have ended by the wish of `own`.
    fn preempt(&mut self, own: &Registration, removed: Vec<Registration>, abort: bool) {
        self.next.count();
        let victims = removed.into_iter().filter(|removed| removed.nexus != own.nexus);
        for victim in victims {
            self.told.push((victim.nexus.clone(), UnitAttention::RegistrationsPreempted));
            if abort {
                self.aborted.push(victim.nexus);
            }
        }
    }
}
