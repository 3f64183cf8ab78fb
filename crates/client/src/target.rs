//! A remote target and its connections.

use crate::driver::{Driver, Path, Shared, UnitState, timer};
use crate::early_dials::{self, EarlyDials};
use crate::layout::{Layout, PATHS_MAX};
use crate::path_id::PathId;
use crate::probe::Probe;
use crate::report::Report;
use crate::{
    Config, Connections, Dial, Environment, Error, Lun, NetworkError, Portal, TargetError, UsageError,
    beginning, growth, isid, supervisor,
};
use block::Slab;
use futures_util::future::{self, Either, join_all};
use session::parameters::MAX_CONNECTIONS;
use std::pin::pin;
use std::sync::Arc;

/// One target, over one or more iSCSI sessions ("paths") of one or more connections each.
///
/// Clones are the same target. Any thread may use its methods and its [`Lun`]s. When the last clone and the last
/// [`Lun`] are dropped, outstanding operations run to their end and the sessions are logged out, as long as the
/// [`Host`](crate::Host) lives; [`Target::close`] waits for that.
#[derive(Clone)]
pub struct Target {
    handle: Arc<Handle>,
}

/// Keeps a session open while it lives.
pub(crate) struct Handle {
    pub shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.with(|driver, _| driver.close());
    }
}

impl Target {
    /// Logs in with the configured number of connections: in one iSCSI session for each portal group as far as the
    /// target allows, then in further sessions. Fewer connections are not an error; [`Self::report`] gives their number and the reason.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub async fn connect(
        environment: Environment,
        target_name: &str,
        portal: &Portal,
        config: Config,
    ) -> Result<Self, Error> {
        let target = Self::begin(environment, target_name, portal, config).await?;
        target.complete().await;
        Ok(target)
    }

    /// As [`Self::connect`], but returns with the first connection. The others log in meanwhile.
    ///
    /// # Errors
    /// If the first connection cannot be made. It is not retried, because only the caller knows how long to wait for an
    /// absent target.
    pub async fn begin(
        environment: Environment,
        target_name: &str,
        portal: &Portal,
        config: Config,
    ) -> Result<Self, Error> {
        if config.connections == Connections::Fixed(0) || config.sessions == Some(0) {
            return Err(UsageError::Config("at least one connection and one session are needed").into());
        }
        if let Connections::Fixed(connections) = config.connections
            && usize::from(connections) > usize::from(MAX_CONNECTIONS) * PATHS_MAX
        {
            return Err(UsageError::Config("more connections than 64 sessions of 64 connections").into());
        }
        let isid = isid::random(&*environment.host)?;
        let early = EarlyDials::new(Arc::clone(&environment.network));
        let environment = Environment { network: Arc::clone(&early) as Arc<dyn Dial>, ..environment };
        let shared = Shared::new(config, target_name.to_owned(), isid, environment);
        let target = Self { handle: Arc::new(Handle { shared: Arc::clone(&shared) }) };
        let layout = Layout::new(&shared.config, shared.read(Driver::first_connections), portal);
        early.begin(&*shared.environment.host, layout.early_portals(), &shared.config.socket);
        let until = shared.environment.host.sleep_until(shared.environment.now() + early_dials::LIFE);
        shared.environment.spawn(async move {
            until.await;
            early.end();
        });
        let first = shared.add_path(layout.portals_from(0), layout.connections_per_session);
        // The timer runs during the first login, too: a session that is given up waits for its target to close its
        // connections, and only a deadline ends that.
        let opened = pin!(supervisor::open_first(&shared, first));
        match future::select(opened, pin!(timer::run(Arc::clone(&shared)))).await {
            Either::Left((opened, _)) => opened?,
            Either::Right(((), opened)) => opened.await?,
        }
        shared.environment.spawn(timer::run(Arc::clone(&shared)));
        shared.environment.spawn(supervisor::run(Arc::clone(&shared), first));
        shared.with(Driver::begin);
        shared.environment.spawn(beginning::make_others(Arc::clone(&shared), first, layout));
        if shared.config.connections == Connections::Auto {
            shared.environment.spawn(growth::run(Arc::clone(&shared)));
        }
        Ok(target)
    }

    /// Waits until all connections have logged in or failed to.
    pub async fn complete(&self) {
        self.handle.shared.until(|driver| !driver.is_beginning()).await;
    }

    /// Opens a logical unit of the target and asks every path whether it leads there.
    ///
    /// # Errors
    /// If the unit does not exist, is not a disk, or does not become ready.
    pub async fn lun(&self, index: u16) -> Result<Lun, Error> {
        let shared = &self.handle.shared;
        let lun = pdu::Lun::from_index(index);
        if let Some(known) = self.known_unit(lun) {
            return Ok(known);
        }
        let path = self.open_unit(lun).await?;
        let paths: Vec<PathId> = shared.read(|driver| {
            driver
                .paths
                .iter()
                .filter(|other| other.is_connected() && other.id != path)
                .map(|other| other.id)
                .collect()
        });
        let proofs = paths.iter().map(|path| supervisor::prove_unit(shared, *path, lun));
        for (path, proof) in paths.iter().zip(join_all(proofs).await) {
            if let Err(error) = proof {
                tracing::warn!(%path, %lun, %error, "the unit cannot be proven over a path yet");
                shared.with(|driver, _| driver.leave_in_doubt(*path, lun));
            }
        }
        self.known_unit(lun).ok_or_else(|| UsageError::SessionClosed.into())
    }

    /// The units that the target shows to this initiator.
    ///
    /// # Errors
    /// If the target does not answer REPORT LUNS.
    pub async fn report_luns(&self) -> Result<Vec<pdu::Lun>, Error> {
        let path = self.any_path()?;
        Probe::new(&self.handle.shared, path, pdu::Lun(0)).luns().await
    }

    /// A sample of the sessions, connections, negotiated parameters and traffic.
    #[must_use]
    pub fn report(&self) -> Report {
        self.handle.shared.report()
    }

    /// The slab of buffers for reads and writes.
    #[must_use]
    pub fn slab(&self) -> &Slab {
        &self.handle.shared.slab
    }

    /// Adds a connection: to a session that may have one more, otherwise as a session of its own.
    ///
    /// # Errors
    /// If neither is possible, or if the connections are [tuned](Connections::Auto).
    pub async fn add_connection(&self) -> Result<(), Error> {
        self.check_untuned()?;
        growth::add_connection(&self.handle.shared).await
    }

    fn check_untuned(&self) -> Result<(), Error> {
        match self.handle.shared.config.connections {
            Connections::Fixed(_) => Ok(()),
            Connections::Auto => {
                Err(UsageError::Config("the number of connections is tuned: configure one to change it")
                    .into())
            }
        }
    }

    /// Logs out all connections but one of each session that recovers connections, because little is left to do.
    /// Outstanding commands of those connections finish first. Other sessions keep theirs until they end: when one of
    /// several connections logs out, istgt drops commands of the others.
    pub fn remove_all_but_one(&self) {
        self.handle.shared.with(|driver, now| {
            driver.end_tuning();
            let sturdy = |path: &&mut Path| path.is_connected() && path.outlives_connections();
            driver.paths.iter_mut().filter(sturdy).for_each(|path| path.remove_all_but_one(now));
        });
    }

    /// Logs out the newest connection of the session with the most. If every session has only one connection, logs out
    /// a whole session, unless it is the only one. Outstanding commands of that connection finish first.
    ///
    /// # Errors
    /// If there is only one connection, or if the connections are [tuned](Connections::Auto).
    pub fn remove_connection(&self) -> Result<(), Error> {
        self.check_untuned()?;
        let removed = self.handle.shared.with(|driver, now| {
            let connected = driver.paths.iter().filter(|path| path.is_connected()).count();
            let widest = driver
                .paths
                .iter_mut()
                .filter(|path| path.is_connected())
                .max_by_key(|path| (path.open_connections(), path.id));
            match widest {
                Some(path) if path.open_connections() > 1 => path.remove_connection(now),
                Some(path) if connected > 1 => {
                    path.log_out(now);
                    true
                }
                _ => false,
            }
        });
        if removed { Ok(()) } else { Err(UsageError::Config("the last connection stays").into()) }
    }

    /// Refuses new operations, waits for the outstanding ones and up to two seconds for connections that are logging in,
    /// logs out, and waits for that. Does not flush: unflushed writes stay in the target's cache.
    ///
    /// # Errors
    /// If the target does not answer in time; the connections are closed all the same.
    pub async fn close(self) -> Result<(), Error> {
        self.handle.shared.with(|driver, _| driver.close());
        self.until(Driver::is_over).await
    }

    /// As [`Self::close`], but returns when the network has the last logout, and does not wait for its answer. A program
    /// that has nothing more to ask can exit a round trip earlier. If it exits while the target says something else, the
    /// logout may be lost with the connection; then only the orderly end is lost.
    ///
    /// # Errors
    /// As [`Self::close`].
    pub async fn leave(self) -> Result<(), Error> {
        self.handle.shared.with(|driver, _| driver.close());
        self.until(Driver::has_left).await
    }

    /// Waits for the end of all sessions.
    async fn until(&self, is_over: fn(&Driver) -> bool) -> Result<(), Error> {
        let shared = &self.handle.shared;
        let patience = shared.config.reconnect.give_up_after + shared.config.login_timeout;
        let portal = || shared.read(|driver| driver.paths[PathId(0)].portals.leading().clone());
        match shared.environment.within(patience, shared.until(is_over)).await {
            Some(()) => Ok(()),
            None => Err(NetworkError::Timeout { portal: portal(), during: "logout" }.into()),
        }
    }

    /// Takes in what a unit says of itself over the first path that lets it finish: a session that is lost on the way
    /// comes back, and whatever is asked here may be asked again.
    async fn open_unit(&self, lun: pdu::Lun) -> Result<PathId, Error> {
        let shared = &self.handle.shared;
        let give_up_at = shared.environment.now() + shared.config.reconnect.give_up_after;
        loop {
            let changed = shared.paths_changed.listen();
            let Ok(path) = self.any_path() else {
                if let Some(reason) = shared.read(|driver| driver.refusal(lun)) {
                    return Err(reason);
                }
                changed.await;
                continue;
            };
            match self.view_first(path, lun).await {
                Ok(true) => return Ok(path),
                Ok(false) if shared.environment.now() < give_up_at => {
                    tracing::info!(%path, %lun, "the unit changed meanwhile: asking again");
                }
                Ok(false) => return Err(TargetError::restless(lun).into()),
                Err(Error::OutcomeUnknown { .. }) if shared.environment.now() < give_up_at => {
                    tracing::info!(%path, %lun, "the connection broke: asking again");
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// `false` if the unit changed meanwhile.
    async fn view_first(&self, path: PathId, lun: pdu::Lun) -> Result<bool, Error> {
        let shared = &self.handle.shared;
        let probe = Probe::new(shared, path, lun);
        let (changes_told, answers) = probe.at_once(|| probe.unit_and_reservations()).await;
        let (unit, unheld) = answers?;
        Ok(shared.with(|driver, _| {
            if driver.changes_told(path) != changes_told {
                return false;
            }
            driver.learn_target(&unit.inquiry);
            driver.units.entry(lun).or_insert_with(|| UnitState::new(Arc::new(unit), path, unheld));
            driver.accept_unit(path, lun);
            true
        }))
    }

    fn known_unit(&self, lun: pdu::Lun) -> Option<Lun> {
        let shared = &self.handle.shared;
        let (unit, generation) = shared.read(|driver| {
            let state = driver.units.get(&lun)?;
            Some((Arc::clone(&state.unit), state.durability.generation()))
        })?;
        Some(Lun::new(Arc::clone(&self.handle), unit, generation))
    }

    fn any_path(&self) -> Result<PathId, Error> {
        let path = self
            .handle
            .shared
            .read(|driver| driver.paths.iter().find(|path| path.is_connected()).map(|path| path.id));
        path.ok_or_else(|| UsageError::SessionClosed.into())
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Target").field("report", &self.report()).finish()
    }
}
