//! A persistent reservation that keeps other initiators, and other sessions of this one, from writing (SPC-4 §5.13).
//!
//! Every path is its own I_T nexus. All of them register one key, and one reserves the unit with the type Write
//! Exclusive – Registrants Only, which lets registered paths write and no others. With Write Exclusive only one path
//! could write. With Write Exclusive – All Registrants a second copy that registers would be a holder too, and its
//! RESERVE would succeed.

use crate::driver::{Data, Plan, Shared};
use crate::path_acceptance::UnitView;
use crate::path_id::PathId;
use crate::probe::{Probe, unless_refused};
use crate::{Error, Host, Lun, NetworkError, TargetError, UsageError};
use scsi::client;
use scsi::{
    PersistentReserveOut, Register, ReservationKey, ReservationType, ReserveAction, ReserveIn, TransportId,
};
use std::fmt;

const TYPE: ReservationType = ReservationType::WriteExclusiveRegistrantsOnly;

/// The first two bytes of every key made here, "RW", which identify its maker.
const KEY_MARK: u64 = 0x5257 << 48;

/// The holder of a persistent reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationHolder {
    /// Its key; none if all registrants hold the reservation.
    pub key: ReservationKey,
    /// The initiator port, if the device reports it.
    pub port: Option<TransportId>,
}

impl ReservationHolder {
    /// Whether [`Lun::reserve`] made the key.
    #[must_use]
    pub fn is_ropewalk(&self) -> bool {
        self.key.0 >> 48 == KEY_MARK >> 48
    }
}

impl fmt::Display for ReservationHolder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.port {
            Some(port) => formatter.write_str(&port.initiator_name)?,
            None => formatter.write_str("an initiator that the target does not name")?,
        }
        write!(formatter, " (key {:#018x})", self.key.0)
    }
}

/// A reservation that [`Lun::reserve`] has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reservation {
    key: ReservationKey,
    /// If it is gone, somebody else has ended it: the target stores it, or has said so. Otherwise, a restart of the
    /// target may have.
    is_lasting: bool,
}

impl Reservation {
    /// The target says that somebody has ended it.
    pub fn was_preempted(&mut self) {
        self.is_lasting = true;
    }
}

impl Lun {
    /// Keeps all others from writing until [`Self::release`], over every path that the session has or will have. With
    /// `break_others`, takes another holder's reservation away and aborts its commands. Returns whether the unit is
    /// reserved. It is not if the device has no persistent reservations, or fails to keep one, which is logged: Linux's
    /// target answers NOT READY unless it can store them.
    ///
    /// # Errors
    /// [`TargetError::Reserved`] if another initiator holds a reservation. The unit is then unchanged.
    pub async fn reserve(&self, break_others: bool) -> Result<bool, Error> {
        let key = new_key(&*self.shared().environment.host)?;
        let lun = self.unit().lun;
        self.any_path().await?;
        // From here on, paths that join register before they are used.
        let mut reservation = Reservation { key, is_lasting: false };
        self.keep_reservation(Some(reservation));
        let mut is_lasting = true;
        for path in self.shared().read(|driver| driver.paths_to(lun)) {
            let probe = Probe { shared: self.shared(), path, lun };
            let claim = async {
                let holder = probe.holder().await?;
                probe.claim(reservation, holder.as_ref(), break_others).await
            };
            match unless_refused(claim.await) {
                Ok(Some(stores)) => is_lasting &= stores,
                Ok(None) => {
                    tracing::debug!(%lun, "the logical unit has no persistent reservations");
                    self.keep_reservation(None);
                    return Ok(false);
                }
                Err(error) => {
                    self.take_back(key, &error).await;
                    if error.sense().is_none() {
                        return Err(error);
                    }
                    tracing::warn!(%lun, %error, "not reserved: nothing keeps other initiators from writing");
                    return Ok(false);
                }
            }
        }
        reservation.is_lasting = is_lasting;
        self.keep_reservation(Some(reservation));
        Ok(true)
    }

    /// Ends what a failed [`Self::reserve`] has begun.
    async fn take_back(&self, key: ReservationKey, failure: &Error) {
        let undone = if failure.is_reservation_conflict() {
            self.keep_reservation(None);
            self.unregister(key).await
        } else {
            self.release().await
        };
        if let Err(error) = undone {
            let lun = self.unit().lun;
            tracing::warn!(%lun, %error, "the registrations could not be taken back");
        }
    }

    /// Ends the reservation made by [`Self::reserve`], and the registrations of all paths.
    ///
    /// # Errors
    /// If the target could not be told; it then keeps the reservation.
    pub async fn release(&self) -> Result<(), Error> {
        let lun = self.unit().lun;
        if self.shared().read(|driver| driver.reservation(lun)).is_none() {
            return Ok(());
        }
        let path = self.any_path().await?;
        let Some(Reservation { key, .. }) = self.keep_reservation(None) else { return Ok(()) };
        let probe = Probe { shared: self.shared(), path, lun };
        // The holder may be a lost path; another path then replaces it, which also ends its registration.
        if !unless_conflict(probe.reserve(key).await)? {
            unless_conflict(probe.preempt(key, key).await)?;
        }
        // Some targets keep the reservation when the holder's registration ends.
        unless_conflict(probe.reserve_out(key, ReserveAction::Release(TYPE)).await)?;
        self.unregister(key).await
    }

    /// Ends the registrations of all paths, and skips paths without one.
    async fn unregister(&self, key: ReservationKey) -> Result<(), Error> {
        let lun = self.unit().lun;
        for path in self.shared().read(|driver| driver.paths_to(lun)) {
            unless_conflict(Probe { shared: self.shared(), path, lun }.unregister(key).await)?;
        }
        Ok(())
    }

    /// The holder of a persistent reservation (SPC-4 §6.15); none for a device without reservations.
    ///
    /// # Errors
    /// If the device does not answer.
    pub async fn reservation_holder(&self) -> Result<Option<ReservationHolder>, Error> {
        let lun = self.unit().lun;
        let path = self.any_path().await?;
        Probe { shared: self.shared(), path, lun }.holder().await
    }

    /// Sets the reservation for which paths register, and returns the one before.
    fn keep_reservation(&self, reservation: Option<Reservation>) -> Option<Reservation> {
        let lun = self.unit().lun;
        self.shared().with(|driver, _| {
            let unit = driver.units.get_mut(&lun)?;
            std::mem::replace(&mut unit.reservation, reservation)
        })
    }

    /// A path that carries the unit's I/O, as soon as there is one.
    async fn any_path(&self) -> Result<PathId, Error> {
        let lun = self.unit().lun;
        loop {
            if let Some(path) = self.shared().read(|driver| driver.path_to(lun)) {
                return Ok(path);
            }
            let wait = Plan::inquire(lun, "TEST UNIT READY", client::test_unit_ready(), Data::None, None);
            self.shared().execute(wait).await.result?;
        }
    }
}

impl Probe<'_> {
    /// The properties that a path must show, after it has registered for a reservation of this initiator.
    pub(crate) async fn view_behind(&self, reservation: Option<Reservation>) -> Result<UnitView, Error> {
        let view = self.view().await?;
        let Some(reservation) = reservation else { return Ok(view) };
        match self.claim(reservation, view.reserved.as_ref(), false).await {
            Ok(_) => Ok(UnitView { reserved: None, ..view }),
            Err(Error::Target(TargetError::Reserved { holder, .. })) => {
                Ok(UnitView { reserved: Some(holder), ..view })
            }
            Err(error) => Err(error),
        }
    }

    /// The holder of the reservation; `None` also for a device without reservations.
    pub(crate) async fn holder(&self) -> Result<Option<ReservationHolder>, Error> {
        let bytes = self.reserve_in(ReserveIn::Reservation).await?;
        let Some(held) = bytes.and_then(|bytes| client::held_reservation(&bytes)).flatten() else {
            return Ok(None);
        };
        let bytes = self.reserve_in(ReserveIn::FullStatus).await?;
        let nexuses = bytes.map(|bytes| client::registered_nexuses(&bytes)).unwrap_or_default();
        let holder = nexuses.into_iter().find(|nexus| nexus.is_holder);
        Ok(Some(ReservationHolder { key: held.key, port: holder.and_then(|holder| holder.transport_id) }))
    }

    /// Registers this path, and ensures that the unit, which `holder` has reserved, is reserved with this key, over any
    /// path. Returns whether the target stores the registration.
    ///
    /// Whoever is registered may write, and writes of this path may be under way: it does not register for a
    /// reservation that somebody else has broken.
    async fn claim(
        &self,
        reservation: Reservation,
        holder: Option<&ReservationHolder>,
        break_others: bool,
    ) -> Result<bool, Error> {
        let Reservation { key, is_lasting } = reservation;
        let lun = self.lun;
        match holder {
            None if is_lasting => return Err(TargetError::ReservationLost { lun }.into()),
            Some(holder) if holder.key != key && !break_others => {
                return Err(TargetError::Reserved { lun, holder: holder.clone() }.into());
            }
            _ => {}
        }
        let stores = self.register(ReservationKey::NONE, key, true).await?;
        if unless_conflict(self.reserve(key).await)? {
            return Ok(stores);
        }
        match self.holder().await? {
            None => self.reserve(key).await?,
            Some(holder) if holder.key == key => {}
            Some(holder) if break_others => self.preempt(key, holder.key).await?,
            Some(holder) => return Err(TargetError::Reserved { lun, holder }.into()),
        }
        Ok(stores)
    }

    async fn reserve_in(&self, what: ReserveIn) -> Result<Option<Vec<u8>>, Error> {
        const ANSWER_BYTES: u16 = 4096;
        self.optional("PERSISTENT RESERVE IN", client::persistent_reserve_in(what, ANSWER_BYTES)).await
    }

    /// Changes this path's registration. The unit's registrations outlive a restart of a target that can store them
    /// (SPC-4 §5.13.5), which this returns: otherwise another initiator could write before this one is back.
    async fn register(
        &self,
        key: ReservationKey,
        new_key: ReservationKey,
        ignore_existing_key: bool,
    ) -> Result<bool, Error> {
        let register = |persist| {
            let (all_target_ports, others) = (false, Vec::new());
            ReserveAction::Register(Register {
                new_key,
                ignore_existing_key,
                persist,
                all_target_ports,
                others,
            })
        };
        match self.reserve_out(key, register(true)).await {
            Ok(()) => Ok(true),
            Err(error) if error.sense().is_some() => {
                self.reserve_out(key, register(false)).await.map(|()| false)
            }
            Err(error) => Err(error),
        }
    }

    async fn unregister(&self, key: ReservationKey) -> Result<(), Error> {
        self.register(key, ReservationKey::NONE, false).await.map(drop)
    }

    async fn reserve(&self, key: ReservationKey) -> Result<(), Error> {
        self.reserve_out(key, ReserveAction::Reserve(TYPE)).await
    }

    async fn preempt(&self, key: ReservationKey, victim: ReservationKey) -> Result<(), Error> {
        self.reserve_out(key, ReserveAction::Preempt { victim, kind: Some(TYPE), abort: true }).await
    }

    async fn reserve_out(&self, key: ReservationKey, action: ReserveAction) -> Result<(), Error> {
        let (cdb, list) = client::persistent_reserve_out(&PersistentReserveOut { key, action });
        let Shared { pages, .. } = self.shared;
        let (bytes, budget_bytes) = (list.len(), pages.budget_bytes());
        let mut buffer = pages.allocate(bytes).ok_or(UsageError::NoBuffer { bytes, budget_bytes })?;
        buffer.copy_from_slice(&list);
        let plan = Plan::reserve_out(self.lun, cdb, buffer.share(), self.path);
        self.shared.execute(plan).await.result.map(drop)
    }
}

/// `false` if the device answered RESERVATION CONFLICT.
fn unless_conflict(answer: Result<(), Error>) -> Result<bool, Error> {
    match answer {
        Ok(()) => Ok(true),
        Err(error) if error.is_reservation_conflict() => Ok(false),
        Err(error) => Err(error),
    }
}

/// A key that no other copy has.
fn new_key(host: &dyn Host) -> Result<ReservationKey, NetworkError> {
    let mut bytes = [0; 8];
    host.entropy(&mut bytes).map_err(|source| NetworkError::Entropy { source })?;
    Ok(ReservationKey(KEY_MARK | u64::from_be_bytes(bytes) >> 16))
}
