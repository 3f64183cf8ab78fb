//! How one path gets behind the reservation of this initiator, and how it learns that somebody has broken it.
//!
//! Whoever is registered may write, so a path registers only where nobody else can have held the unit since this
//! initiator did, and takes its registration back where that turns out to be wrong.

use super::{Reservation, ReservationHolder, Witness};
use crate::driver::{Plan, Shared, SharedTurn};
use crate::path_acceptance::UnitView;
use crate::probe::{Probe, unless_refused};
use crate::{Error, TargetError, UsageError, memory};
use futures_util::future;
use scsi::client::{self, ReadReservation, SenseData};
use scsi::{PersistentReserveOut, Register, ReservationKey, ReservationType, ReserveAction, ReserveIn};

const TYPE: ReservationType = ReservationType::WriteExclusiveRegistrantsOnly;

impl Probe<'_> {
    /// The properties that a path must show, after it has registered for the reservation of this initiator with this
    /// key; and the number of changes told before, as [`Self::at_once`] returns it.
    pub(crate) async fn view_behind(&self, key: Option<ReservationKey>) -> (u64, Result<UnitView, Error>) {
        let Some(key) = key else { return self.at_once(|| self.view_and_holder()).await };
        let (told, view) = self.at_once(|| self.view()).await;
        let view = match view {
            Ok(view) => self.holder_besides(key).await.map(|reserved| UnitView { reserved, ..view }),
            Err(error) => Err(error),
        };
        (told, view)
    }

    async fn view_and_holder(&self) -> Result<UnitView, Error> {
        let (view, reserved) = future::join(self.view(), self.holder()).await;
        Ok(UnitView { reserved: reserved?, ..view? })
    }

    /// The holder that keeps this path from registering with this key, if any.
    async fn holder_besides(&self, key: ReservationKey) -> Result<Option<ReservationHolder>, Error> {
        match self.claim_again(key).await {
            Ok(()) => Ok(None),
            Err(Error::Target(TargetError::Reserved { holder, .. })) => Ok(Some(holder)),
            Err(error) => Err(error),
        }
    }

    /// Registers a path that joins or comes back.
    async fn claim_again(&self, key: ReservationKey) -> Result<(), Error> {
        let turn = reserving(self.shared, self.lun)?;
        let _turn = turn.lock().await;
        let reservation = self.shared.read(|driver| driver.reservation(self.lun));
        match reservation.filter(|reservation| reservation.key == key) {
            Some(reservation) if !self.claim(reservation, false).await? => Err(self.lost()),
            // Released meanwhile: the caller looks again.
            Some(_) | None => Ok(()),
        }
    }

    /// Registers this path, and ensures that the unit is reserved with this key, over any path. `false` for a device
    /// without reservations.
    pub(super) async fn claim(&self, reservation: Reservation, break_others: bool) -> Result<bool, Error> {
        let key = reservation.key;
        let Some(held) = self.held().await? else { return Ok(false) };
        let holder = held.descriptor.map(|descriptor| descriptor.key);
        match holder {
            Some(holder) if holder != key && !break_others => return Err(self.reserved_by(holder).await),
            None if !reservation.is_undisturbed(held.generation) => return Err(self.lost()),
            _ => {}
        }
        let Some(is_stored) = unless_refused(self.register(ReservationKey::NONE, key, true).await)? else {
            return Ok(false);
        };
        // One that was held a moment ago may be broken by now: to reserve again would hide that.
        if holder != Some(key) {
            self.take(key, break_others).await?;
        }
        self.confirm(key, is_stored).await?;
        Ok(true)
    }

    /// Reserves the unit if nobody holds it, or if others may be broken.
    async fn take(&self, key: ReservationKey, break_others: bool) -> Result<(), Error> {
        if unless_conflict(self.reserve(key).await)? || !break_others {
            return Ok(());
        }
        let held = self.held().await?.and_then(|held| held.descriptor);
        match held.map(|descriptor| descriptor.key).filter(|holder| *holder != key) {
            Some(victim) => self.preempt(key, victim).await,
            None => Ok(()),
        }
    }

    /// Ensures that the unit is reserved with this key, and remembers when that was so. Otherwise ends this path's
    /// registration.
    pub(super) async fn confirm(&self, key: ReservationKey, is_stored: bool) -> Result<(), Error> {
        let held = self.held().await?.unwrap_or_default();
        let holder = held.descriptor.map(|descriptor| descriptor.key);
        if holder == Some(key) {
            self.saw(key, Witness { generation: held.generation, is_stored });
            return Ok(());
        }
        unless_conflict(self.unregister(key).await)?;
        Err(match holder {
            Some(holder) => self.reserved_by(holder).await,
            None => self.lost(),
        })
    }

    pub(super) fn saw(&self, key: ReservationKey, witness: Witness) {
        self.shared.with(|driver, _| driver.saw_reservation(self.lun, key, witness));
    }

    fn lost(&self) -> Error {
        TargetError::ReservationLost { lun: self.lun }.into()
    }

    async fn reserved_by(&self, key: ReservationKey) -> Error {
        TargetError::Reserved { lun: self.lun, holder: self.named(key).await }.into()
    }

    /// The holder of the reservation; `None` also for a device without reservations.
    pub(super) async fn holder(&self) -> Result<Option<ReservationHolder>, Error> {
        match self.held().await?.and_then(|held| held.descriptor) {
            Some(held) => Ok(Some(self.named(held.key).await)),
            None => Ok(None),
        }
    }

    /// The holder with this key, and its name if the device tells it.
    async fn named(&self, key: ReservationKey) -> ReservationHolder {
        let bytes = self.reserve_in(ReserveIn::FullStatus).await.ok().flatten();
        let nexuses = bytes.map(|bytes| client::registered_nexuses(&bytes)).unwrap_or_default();
        let holder = nexuses.into_iter().find(|nexus| nexus.is_holder);
        ReservationHolder { key, port: holder.and_then(|holder| holder.transport_id) }
    }

    /// `None` for a device without reservations.
    pub(super) async fn held(&self) -> Result<Option<ReadReservation>, Error> {
        let bytes = self.reserve_in(ReserveIn::Reservation).await?;
        Ok(bytes.and_then(|bytes| client::held_reservation(&bytes)))
    }

    pub(super) async fn reserve_in(&self, what: ReserveIn) -> Result<Option<Vec<u8>>, Error> {
        const ANSWER_BYTES: u16 = 4096;
        self.optional("PERSISTENT RESERVE IN", client::persistent_reserve_in(what, ANSWER_BYTES)).await
    }

    /// Changes this path's registration. The unit's registrations outlive a restart of a target that can store them
    /// (APTPL, SPC-4 §5.13.5), which this returns: otherwise another initiator could write before this one is back.
    pub(super) async fn register(
        &self,
        key: ReservationKey,
        new_key: ReservationKey,
        ignore_existing_key: bool,
    ) -> Result<bool, Error> {
        let register = Register { new_key, ignore_existing_key, ..Register::default() };
        match self.register_as(key, Register { persist: true, ..register.clone() }).await {
            Ok(()) => Ok(true),
            Err(error) if error.sense().is_some_and(SenseData::is_illegal_request) => {
                self.register_as(key, register).await.map(|()| false)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) async fn register_as(&self, key: ReservationKey, register: Register) -> Result<(), Error> {
        self.reserve_out(key, ReserveAction::Register(register)).await
    }

    pub(super) async fn unregister(&self, key: ReservationKey) -> Result<(), Error> {
        self.register(key, ReservationKey::NONE, false).await.map(drop)
    }

    pub(super) async fn reserve(&self, key: ReservationKey) -> Result<(), Error> {
        self.reserve_out(key, ReserveAction::Reserve(TYPE)).await
    }

    /// Takes the place of a holder, and aborts its commands where the device can do that.
    async fn preempt(&self, key: ReservationKey, victim: ReservationKey) -> Result<(), Error> {
        let preempt = |abort| ReserveAction::Preempt { victim, kind: Some(TYPE), abort };
        match self.reserve_out(key, preempt(true)).await {
            Err(error) if error.sense().is_some_and(SenseData::is_illegal_request) => {
                self.reserve_out(key, preempt(false)).await
            }
            answer => answer,
        }
    }

    /// Ends the reservation with this key, whichever path holds it.
    pub(super) async fn release(&self, key: ReservationKey) -> Result<(), Error> {
        // The holder may be a lost path; another path then replaces it, which also ends its registration.
        if !unless_conflict(self.reserve(key).await)? {
            unless_conflict(self.preempt(key, key).await)?;
        }
        // Some targets keep the reservation when the holder's registration ends.
        unless_conflict(self.end(key).await).map(drop)
    }

    /// Ends the reservation if this path holds it. If another one does, nothing happens (SPC-4 §5.13.11.2.2).
    pub(super) async fn end(&self, key: ReservationKey) -> Result<(), Error> {
        self.reserve_out(key, ReserveAction::Release(TYPE)).await
    }

    async fn reserve_out(&self, key: ReservationKey, action: ReserveAction) -> Result<(), Error> {
        let (cdb, list) = client::persistent_reserve_out(&PersistentReserveOut { key, action });
        let mut buffer = memory::allocate(&self.shared.pages, list.len())?;
        buffer.copy_from_slice(&list);
        let plan = Plan::reserve_out(self.lun, cdb, buffer.share(), self.path);
        self.carry_out(plan).await.result.map(drop)
    }
}

/// The turn to change the registrations of a unit.
pub(super) fn reserving(shared: &Shared, lun: pdu::Lun) -> Result<SharedTurn, Error> {
    let turn = shared.read(|driver| driver.units.get(&lun).map(|unit| SharedTurn::clone(&unit.reserving)));
    turn.ok_or_else(|| UsageError::SessionClosed.into())
}

/// `false` if the device answered RESERVATION CONFLICT.
pub(super) fn unless_conflict(answer: Result<(), Error>) -> Result<bool, Error> {
    match answer {
        Ok(()) => Ok(true),
        Err(error) if error.is_reservation_conflict() => Ok(false),
        Err(error) => Err(error),
    }
}
