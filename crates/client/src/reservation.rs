//! A persistent reservation that keeps other initiators, and other sessions of this one, from writing (SPC-4 §5.13).
//!
//! Every path is its own I_T nexus. All of them register one key, and one reserves the unit with the type Write
//! Exclusive – Registrants Only, which lets registered paths write and no others. With Write Exclusive only one path
//! could write. With Write Exclusive – All Registrants a second copy that registers would be a holder too, and its
//! RESERVE would succeed.

mod at_once;
mod claim;

pub(crate) use at_once::Unheld;

use crate::driver::{Path, Plan};
use crate::host::{self, Host};
use crate::path_id::PathId;
use crate::probe::Probe;
use crate::{Error, Lun, NetworkError, Transfer, UsageError};
use claim::{reserving, unless_conflict};
use futures_util::future::join_all;
use scsi::client;
use scsi::{ReservationKey, TransportId};
use std::fmt;

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

/// Whether [`Lun::reserve`] has reserved a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// The device has no persistent reservations, or fails to keep one, which is logged: Linux's target answers NOT
    /// READY unless it can store them.
    No,
    /// It is reserved, by ORDERED commands: the unit was reserved before it executed any command that was given after
    /// [`Lun::reserve`] had been polled first.
    InOrder,
    /// It is reserved, after an exchange of several questions and answers.
    Stepwise,
}

impl Reserved {
    /// Whether the unit is reserved.
    #[must_use]
    pub fn is_held(self) -> bool {
        self != Self::No
    }
}

/// A reservation that [`Lun::reserve`] has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub key: ReservationKey,
    /// The last time that a path saw the unit reserved with this key; `None` before any has.
    pub seen: Option<Witness>,
}

/// What a target told while the unit was reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Witness {
    /// PRGENERATION: counts the changes of registrations since the target was switched on (SPC-4 §6.15.2).
    pub generation: u32,
    /// The target stores registrations.
    pub is_stored: bool,
}

impl Reservation {
    /// Whether nobody else can have held the unit, which nobody holds now, since this initiator did: nobody has
    /// changed the registrations, the target only forgot one with its nexus, or all of them in a restart.
    const fn is_undisturbed(self, generation: u32) -> bool {
        match self.seen {
            None => true,
            Some(seen) => generation == seen.generation || (generation == 0 && !seen.is_stored),
        }
    }
}

impl Lun {
    /// Keeps all others from writing until [`Self::release`], over every path that the session has or will have. With
    /// `break_others`, takes another holder's reservation away and aborts its commands.
    ///
    /// # Errors
    /// [`TargetError::Reserved`](crate::TargetError::Reserved) if another initiator holds a reservation. The unit is
    /// then unchanged.
    pub async fn reserve(&self, break_others: bool) -> Result<Reserved, Error> {
        let lun = self.unit().lun;
        let was_connected = !self.probes().is_empty();
        let reserved = loop {
            self.any_path().await?;
            match self.reserve_where_connected(break_others).await? {
                // What was given meanwhile may have gone first.
                Some(Reserved::InOrder) if !was_connected => break Reserved::Stepwise,
                Some(reserved) => break reserved,
                None => {}
            }
        };
        if reserved == Reserved::No {
            tracing::debug!(%lun, "the logical unit is used without a persistent reservation");
        }
        Ok(reserved)
    }

    /// `None` if every path was lost meanwhile.
    async fn reserve_where_connected(&self, break_others: bool) -> Result<Option<Reserved>, Error> {
        let lun = self.unit().lun;
        let turn = reserving(self.shared(), lun)?;
        let _turn = turn.lock().await;
        let (key, unheld) = match self.shared().read(|driver| driver.reservation(lun)) {
            Some(kept) => (kept.key, None),
            None => (new_key(&*self.shared().environment.host)?, self.take_unheld()),
        };
        let reservation = Reservation { key, seen: None };
        // From here on, paths that join register before they are used.
        self.keep_reservation(Some(reservation));
        match self.claim_all(reservation, unheld, break_others).await {
            Ok(reserved) => {
                if reserved == Some(Reserved::No) {
                    self.keep_reservation(None);
                }
                Ok(reserved)
            }
            Err(error) => {
                self.take_back(key, &error).await;
                if error.sense().is_none() {
                    return Err(error);
                }
                tracing::warn!(%lun, %error, "not reserved: nothing keeps other initiators from writing");
                Ok(Some(Reserved::No))
            }
        }
    }

    /// Registers all paths, the first one alone. A path that is lost meanwhile registers in the proof that lets it come
    /// back.
    async fn claim_all(
        &self,
        reservation: Reservation,
        unheld: Option<Unheld>,
        break_others: bool,
    ) -> Result<Option<Reserved>, Error> {
        let mut paths = self.probes().into_iter();
        let (first, reserved) = loop {
            let Some(probe) = paths.next() else { return Ok(None) };
            if let Some(unheld) = unheld
                && probe.claim_at_once(reservation.key, unheld).await
            {
                break (probe, Reserved::InOrder);
            }
            match self.claim(probe, reservation, break_others).await? {
                Some(true) => break (probe, Reserved::Stepwise),
                Some(false) => return Ok(Some(Reserved::No)),
                None => {}
            }
        };
        let further: Vec<_> = paths.map(|probe| self.claim(probe, reservation, break_others)).collect();
        if further.is_empty() {
            return Ok(Some(reserved));
        }
        for claimed in join_all(further).await {
            if claimed? == Some(false) {
                return Ok(Some(Reserved::No));
            }
        }
        self.look_again(first, reservation.key).await?;
        Ok(Some(Reserved::Stepwise))
    }

    /// `None` if the path was lost meanwhile.
    async fn claim(
        &self,
        probe: Probe<'_>,
        reservation: Reservation,
        break_others: bool,
    ) -> Result<Option<bool>, Error> {
        match probe.claim(reservation, break_others).await {
            Ok(reserved) => Ok(Some(reserved)),
            Err(error) if self.is_connected(probe.path) => Err(error),
            Err(error) => {
                let Probe { lun, path, .. } = probe;
                tracing::debug!(%lun, %path, %error, "a path was lost before it could register");
                Ok(None)
            }
        }
    }

    /// Sees the number of registrations after all paths have registered: each saw another, and their answers have no
    /// order.
    async fn look_again(&self, probe: Probe<'_>, key: ReservationKey) -> Result<(), Error> {
        let lun = self.unit().lun;
        let seen = self.shared().read(|driver| driver.reservation(lun)).and_then(|kept| kept.seen);
        let is_stored = seen.is_some_and(|seen| seen.is_stored);
        match probe.confirm(key, is_stored).await {
            Err(error) if self.is_connected(probe.path) => Err(error),
            _ => Ok(()),
        }
    }

    /// A questioner for each path that carries the unit's I/O now.
    fn probes(&self) -> Vec<Probe<'_>> {
        let lun = self.unit().lun;
        let paths = self.shared().read(|driver| driver.paths_to(lun));
        paths.into_iter().map(|path| Probe::new(self.shared(), path, lun)).collect()
    }

    /// What the unit said when it was opened, for the first claim alone.
    fn take_unheld(&self) -> Option<Unheld> {
        let lun = self.unit().lun;
        self.shared().with(|driver, _| driver.units.get_mut(&lun)?.unheld.take())
    }

    fn is_connected(&self, path: PathId) -> bool {
        self.shared().read(|driver| driver.path(path).is_some_and(Path::is_connected))
    }

    /// Ends what a failed [`Self::reserve`] has begun.
    async fn take_back(&self, key: ReservationKey, failure: &Error) {
        self.keep_reservation(None);
        let undone = if failure.is_reservation_conflict() {
            self.unregister(key).await
        } else {
            self.end_reservation(key).await
        };
        if let Err(error) = undone {
            let lun = self.unit().lun;
            tracing::warn!(%lun, %error, "the registrations could not be taken back");
        }
    }

    /// Ends the reservation made by [`Self::reserve`], and the registrations of all paths.
    ///
    /// # Errors
    /// If the target could not be told. It may then keep the reservation, of which nothing is known here any more.
    pub async fn release(&self) -> Result<(), Error> {
        let lun = self.unit().lun;
        if self.shared().read(|driver| driver.reservation(lun)).is_none() {
            return Ok(());
        }
        match self.any_path().await {
            // Somebody has broken it.
            Err(error) if error.is_reservation_conflict() => {
                self.keep_reservation(None);
                return Ok(());
            }
            path => path?,
        };
        let turn = reserving(self.shared(), lun)?;
        let _turn = turn.lock().await;
        match self.keep_reservation(None) {
            Some(reservation) => self.release_over_all(reservation).await,
            None => Ok(()),
        }
    }

    /// Ends the reservation and the registrations over all paths at once, or else step by step: a path that is lost may
    /// hold the reservation.
    async fn release_over_all(&self, reservation: Reservation) -> Result<(), Error> {
        let Reservation { key, seen: Some(seen) } = reservation else {
            return self.end_reservation(reservation.key).await;
        };
        let probes = self.probes();
        let released = join_all(probes.iter().map(|probe| probe.release_at_once(key, seen))).await;
        let is_undone = released.iter().any(|released| matches!(released, Ok(true)));
        if is_undone && released.iter().all(Result::is_ok) {
            return Ok(());
        }
        if let Some(probe) = self.probes().first() {
            probe.register_to_release(key).await?;
        }
        self.end_reservation(key).await
    }

    async fn end_reservation(&self, key: ReservationKey) -> Result<(), Error> {
        let lun = self.unit().lun;
        let path = self.shared().read(|driver| driver.path_to(lun)).ok_or(UsageError::SessionClosed)?;
        Probe::new(self.shared(), path, lun).release(key).await?;
        self.unregister(key).await
    }

    /// Ends the registrations of all paths, and skips paths without one.
    async fn unregister(&self, key: ReservationKey) -> Result<(), Error> {
        let probes = self.probes();
        let answers = join_all(probes.iter().map(|probe| probe.unregister(key))).await;
        answers.into_iter().try_for_each(|answer| unless_conflict(answer).map(drop))
    }

    /// The holder of a persistent reservation (SPC-4 §6.15); none for a device without reservations.
    ///
    /// # Errors
    /// If the device does not answer.
    pub async fn reservation_holder(&self) -> Result<Option<ReservationHolder>, Error> {
        let lun = self.unit().lun;
        let path = self.any_path().await?;
        Probe::new(self.shared(), path, lun).holder().await
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
            let wait = Plan::inquire(lun, "TEST UNIT READY", client::test_unit_ready(), Transfer::None, None);
            self.shared().execute(wait).await.result?;
        }
    }
}

/// A key that no other copy has.
fn new_key(host: &dyn Host) -> Result<ReservationKey, NetworkError> {
    Ok(ReservationKey(KEY_MARK | u64::from_be_bytes(host::random(host)?) >> 16))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen_at(generation: u32, is_stored: bool) -> Reservation {
        Reservation { key: ReservationKey(1), seen: Some(Witness { generation, is_stored }) }
    }

    #[test]
    fn a_reservation_that_ended_with_its_nexus_is_made_again() {
        assert!(seen_at(3, true).is_undisturbed(3));
        assert!(!seen_at(3, true).is_undisturbed(4), "somebody has registered");
    }

    #[test]
    fn a_reservation_that_a_restart_ended_is_made_again_unless_the_target_stores_it() {
        assert!(seen_at(3, false).is_undisturbed(0));
        assert!(!seen_at(3, false).is_undisturbed(1), "somebody has registered since");
        assert!(!seen_at(3, true).is_undisturbed(0), "somebody has ended it before the restart");
    }
}
