//! Makes and ends a reservation in one round trip each.
//!
//! The commands leave together as ORDERED tasks, which the device executes one after the other (SAM-5 §8.6.3). The last
//! one looks at the reservation, and only that look decides. Whatever was meant to come out otherwise is left to the
//! careful ways: [`Probe::claim`] and [`Probe::release`].

use super::Witness;
use super::claim::unless_conflict;
use crate::probe::Probe;
use crate::{Error, Unit};
use futures_util::future;
use scsi::client::{self, ReadReservation};
use scsi::{Register, ReservationKey, ReserveIn};

/// What a unit said of its reservations when it was opened, if nobody held it. Somebody may hold it by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unheld {
    /// The target can store registrations.
    can_persist: bool,
}

fn holder(held: Option<ReadReservation>) -> Option<ReservationKey> {
    held?.descriptor.map(|descriptor| descriptor.key)
}

impl Probe<'_> {
    /// A whole description, and what a later claim should know.
    pub(crate) async fn unit_and_reservations(&self) -> Result<(Unit, Option<Unheld>), Error> {
        let (unit, unheld) = future::join(self.unit(), self.unheld()).await;
        Ok((unit?, unheld))
    }

    /// `None` if somebody holds the unit, or it does not say that nobody does.
    async fn unheld(&self) -> Option<Unheld> {
        let (held, capabilities) = future::join(self.held(), self.reserve_in(ReserveIn::Capabilities)).await;
        let can_persist = client::can_persist(&capabilities.ok()??)?;
        held.ok()??.descriptor.is_none().then_some(Unheld { can_persist })
    }

    /// Registers this path, reserves the unit, and looks whether it is reserved with this key. The key must be new: a
    /// reservation that was made before, and that somebody has broken, would be made again without notice.
    ///
    /// `false` if the unit must be claimed step by step.
    pub(super) async fn claim_at_once(&self, key: ReservationKey, unheld: Unheld) -> bool {
        let (probe, is_stored) = (self.in_order(), unheld.can_persist);
        let register =
            Register { new_key: key, ignore_existing_key: true, persist: is_stored, ..Register::default() };
        let registered = probe.register_as(ReservationKey::NONE, register);
        let (registered, reserved, held) = future::join3(registered, probe.reserve(key), probe.held()).await;
        let held = held.ok().flatten();
        if registered.is_ok() && reserved.is_ok() && holder(held) == Some(key) {
            let generation = held.unwrap_or_default().generation;
            self.saw(key, Witness { generation, is_stored });
            return true;
        }
        if holder(held) != Some(key) {
            // Whoever is registered may write, but somebody else may hold the unit.
            drop(self.unregister(key).await);
        }
        false
    }

    /// Ends the reservation if this path holds it, and this path's registration. Whether the unit is not reserved with
    /// this key any more, as far as this path has seen.
    ///
    /// # Errors
    /// If the registration may be left.
    pub(super) async fn release_at_once(&self, key: ReservationKey, seen: Witness) -> Result<bool, Error> {
        let probe = self.in_order();
        // The last APTPL that a device is sent holds for all of its registrations.
        let unregister = Register { persist: seen.is_stored, ..Register::default() };
        let (ended, unregistered, held) =
            future::join3(probe.end(key), probe.register_as(key, unregister), probe.held()).await;
        drop(ended);
        unless_conflict(unregistered)?;
        Ok(holder(held?) != Some(key))
    }

    /// Registers this path again if the reservation with this key is left, for only a registered path can end it.
    pub(super) async fn register_to_release(&self, key: ReservationKey) -> Result<(), Error> {
        if holder(self.held().await?) == Some(key) {
            self.register(ReservationKey::NONE, key, true).await?;
        }
        Ok(())
    }
}
