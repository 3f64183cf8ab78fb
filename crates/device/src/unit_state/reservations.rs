//! Persistent reservations of a logical unit (SPC-4): registrants, holders, and conflicts.
//!
//! A value of these types is a state; [`persistent_reserve_out`](super::persistent_reserve_out) derives the next one
//! from it. A change can therefore be made durable before it is in force, or be dropped.

use scsi::{HeldReservation, Registrant, ReservationKey, ReservationStatus, ReservationType, Restriction};

use super::i_t_nexus::{InitiatorPort, Ports, RelativePort};

/// The most registrations of one logical unit: more than any cluster has nodes times paths, and few enough to copy.
pub const REGISTRATIONS_MAX: usize = 1024;

/// The target ports through which an initiator port is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TargetPorts {
    One(RelativePort),
    /// Registered with `ALL_TG_PT`. It stays one registration: a change through one port applies to all.
    All,
}

/// The I_T nexuses of one registration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Registered {
    pub initiator: InitiatorPort,
    pub target: TargetPorts,
}

impl Registered {
    pub(super) fn covers(&self, ports: &Ports) -> bool {
        let through_it = match self.target {
            TargetPorts::One(port) => port == ports.target,
            TargetPorts::All => true,
        };
        through_it && self.initiator == ports.initiator
    }

    /// Whether the two share a nexus.
    pub(super) fn meets(&self, other: &Self) -> bool {
        let all = self.target == TargetPorts::All || other.target == TargetPorts::All;
        self.initiator == other.initiator && (all || self.target == other.target)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Registration {
    pub nexus: Registered,
    /// The key that it registered; never [`ReservationKey::NONE`], which means not registered.
    pub key: ReservationKey,
}

/// A reservation in force. Its holder is always registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub kind: ReservationType,
    pub holder: Holder,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    One(Registered),
    AllRegistrants,
}

impl Held {
    /// A reservation of this type, made by `maker`.
    pub(super) fn new(kind: ReservationType, maker: &Registered) -> Self {
        let holder =
            if kind.is_all_registrants() { Holder::AllRegistrants } else { Holder::One(maker.clone()) };
        Self { kind, holder }
    }

    /// Whether this registrant holds the reservation.
    pub(super) fn is_held_by(&self, registrant: &Registered) -> bool {
        match &self.holder {
            Holder::One(holder) => holder == registrant,
            Holder::AllRegistrants => true,
        }
    }
}

/// The registrations and the reservation of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reservations {
    /// PRGENERATION (SPC-4 §6.15): counts the changes of registrations.
    pub generation: u32,
    /// APTPL of the last registration.
    pub persists: bool,
    pub registrations: Vec<Registration>,
    pub held: Option<Held>,
}

impl Reservations {
    pub(super) fn of(&self, ports: &Ports) -> Option<&Registration> {
        self.registrations.iter().find(|registration| registration.nexus.covers(ports))
    }

    /// Whether this nexus may execute a command with this `restriction`.
    pub(super) fn admits(&self, ports: &Ports, restriction: Restriction) -> bool {
        let Some(held) = &self.held else { return true };
        let excluded = match restriction {
            Restriction::Nothing | Restriction::Reserve => false,
            Restriction::ExclusiveAccess => held.kind.excludes_reading(),
            Restriction::WriteExclusive => true,
        };
        !excluded
            || self.of(ports).is_some_and(|own| held.kind.admits_registrants() || held.is_held_by(&own.nexus))
    }

    /// Whether RESERVE and RELEASE from this nexus succeed without effect (SPC-4, "exceptions to SPC-2 RESERVE and
    /// RELEASE behavior"), because it already has every right that a reservation could give.
    pub(super) fn ignores_reserve(&self, ports: &Ports) -> bool {
        let Some(held) = &self.held else { return false };
        self.of(ports).is_some_and(|own| held.kind.admits_registrants() || held.is_held_by(&own.nexus))
    }

    /// The state in the form of PERSISTENT RESERVE IN.
    pub(super) fn status(&self, can_persist: bool) -> ReservationStatus {
        let registrant = |registration: &Registration| Registrant {
            key: registration.key,
            is_holder: self.held.as_ref().is_some_and(|held| held.is_held_by(&registration.nexus)),
            relative_target_port: match registration.nexus.target {
                TargetPorts::One(port) => Some(port.0),
                TargetPorts::All => None,
            },
            transport_id: registration.nexus.initiator.transport_id(),
        };
        ReservationStatus {
            generation: self.generation,
            held: self
                .held
                .as_ref()
                .map(|held| HeldReservation { key: self.holder_key(held), kind: held.kind }),
            registrants: self.registrations.iter().map(registrant).collect(),
            can_persist,
            persists: self.persists,
        }
    }

    /// The key of the holder; none if all registrants hold the reservation.
    pub(super) fn holder_key(&self, held: &Held) -> ReservationKey {
        let holder = self.registrations.iter().find(|registration| match &held.holder {
            Holder::One(holder) => *holder == registration.nexus,
            Holder::AllRegistrants => false,
        });
        holder.map_or(ReservationKey::NONE, |registration| registration.key)
    }

    /// Registers `nexus` or changes its key. It replaces all registrations that share a nexus with it, also as holder;
    /// a registration for all target ports stays one.
    pub(super) fn put(&mut self, nexus: Registered, key: ReservationKey) {
        let (met, others): (Vec<_>, Vec<_>) =
            self.registrations.drain(..).partition(|registration| registration.nexus.meets(&nexus));
        let all = met.iter().any(|registration| registration.nexus.target == TargetPorts::All);
        let nexus = if all { Registered { target: TargetPorts::All, ..nexus } } else { nexus };
        if let Some(Held { holder: Holder::One(holder), .. }) = &mut self.held
            && holder.meets(&nexus)
        {
            holder.clone_from(&nexus);
        }
        self.registrations = others;
        self.registrations.push(Registration { nexus, key });
    }

    /// Ends the chosen registrations and returns them. A reservation ends with its holder's registration, or with the
    /// last one if all registrants hold it.
    pub(super) fn remove(&mut self, chosen: impl Fn(&Registration) -> bool) -> Vec<Registration> {
        let (removed, kept): (Vec<_>, Vec<_>) = self.registrations.drain(..).partition(chosen);
        self.registrations = kept;
        let registrations = &self.registrations;
        self.held.take_if(|held| !registrations.iter().any(|kept| held.is_held_by(&kept.nexus)));
        removed
    }
}
