//! The life of one path: log in, prove the units behind it, add connections, and start again after a loss.
//! [`replacement`] replaces the connections that a living session has lost.

use crate::driver::{Path, Shared, UnitState, Vacancies, lane};
use crate::login::{self, Applicant, Opened};
use crate::path_acceptance::{PathRefusal, UnitView, accept_path};
use crate::path_id::PathId;
use crate::portal_group::PortalGroup;
use crate::probe::Probe;
use crate::reconnect::Pauses;
use crate::report::PathState;
use crate::{Error, LoginError, NetworkError, TargetError, UsageError, replacement};
use event_listener::Event;
use futures_util::StreamExt;
use futures_util::future::{self, Either};
use futures_util::stream::FuturesUnordered;
use pdu::{Duration, Lun};
use scsi::ReservationKey;
use scsi::client::SenseData;
use session::login::initiator::{Failure, Remedy};
use std::collections::BTreeSet;
use std::io;
use std::pin::pin;
use std::sync::Arc;

/// Opens a path's session and proves it for every unit in use.
pub(crate) async fn open(shared: &Arc<Shared>, id: PathId) -> Result<(), Error> {
    let opened = lead(shared, id).await?;
    let lane = shared.with(|driver, now| driver.begin_path(id, opened, &shared.config, now));
    // The driver has not yet noted the end of the previous session; the next attempt will find it noted.
    spawn_lane(shared, id, Some(lane.ok_or(UsageError::SessionClosed)?));
    let proven = async {
        complete_bundle(shared, id).await?;
        prove(shared, id).await
    };
    // What is asked of a path without a session would wait for the next one, which is opened here.
    let proven = match future::select(pin!(proven), pin!(session_end(shared, id))).await {
        Either::Left((proven, _)) => proven,
        Either::Right(_) => Err(ended_early(shared, id)),
    };
    if let Err(error) = proven {
        leave(shared, id).await;
        return Err(error);
    }
    shared.with(|driver, _| driver.path_up(id));
    Ok(())
}

/// Makes a path's leading connection at the portal whose turn it is. Portals that turn out to be of another group than the
/// path's earlier session are passed over.
async fn lead(shared: &Arc<Shared>, id: PathId) -> Result<Opened, Error> {
    loop {
        let leader =
            shared.with(|driver, _| Some(driver.path_mut(id)?.leader(&shared.config, &shared.target_name)));
        let leader = leader.ok_or(UsageError::SessionClosed)?;
        match login::open(&shared.environment, &shared.config, &leader).await {
            Err(error) if passes_over(shared, id, &leader, &error) => {}
            ended => return ended,
        }
    }
}

/// Whether a login failed because of its portal, at which the path has no further connections.
fn passes_over(shared: &Shared, id: PathId, applicant: &Applicant, error: &Error) -> bool {
    let is_passed_over = shared.with(|driver, _| driver.pass_over_portal(id, applicant, error));
    if is_passed_over {
        tracing::info!(path = %id, portal = %applicant.portal, %error, "the portal is not of the session's group");
    }
    is_passed_over
}

/// How long a target may take to answer the logout of a session that is of no use.
const GOODBYE: Duration = Duration::from_secs(5);

/// Ends a path's session, in order if the target answers: it would keep one that was lost, and its place, for a while.
async fn leave(shared: &Shared, id: PathId) {
    shared.with(|driver, now| driver.leave_path(id, now));
    if shared.environment.within(GOODBYE, session_end(shared, id)).await.is_none() {
        shared.with(|driver, now| driver.abandon_path(id, now));
    }
}

/// Waits until a path has no session.
async fn session_end(shared: &Shared, id: PathId) {
    shared.until(|driver| driver.path(id).is_none_or(|path| path.core.is_none())).await;
}

/// The error of a path whose session ended before it was proven.
fn ended_early(shared: &Shared, id: PathId) -> Error {
    let Some(portal) = shared.read(|driver| Some(driver.path(id)?.portals.leading().clone())) else {
        return UsageError::SessionClosed.into();
    };
    let source = io::Error::new(io::ErrorKind::ConnectionAborted, "its session ended");
    NetworkError::Broken { portal, during: "login", source }.into()
}

/// Gives a path all of its wanted connections at once, as far as the target allows. The supervisor retries those that
/// broke during their login.
pub(crate) async fn join_all(shared: &Arc<Shared>, id: PathId) {
    let missing = missing(shared, id);
    if missing > 0 {
        let failures = add_connections(shared, id, missing).await;
        note_failures(shared, id, &failures);
    }
}

/// As [`join_all`], but whenever portals turn out to be of another group, the path wants only the connections that
/// `share` leaves to the portals that it still has.
pub(crate) async fn join_share(shared: &Arc<Shared>, id: PathId, share: impl Fn(&PortalGroup) -> usize) {
    loop {
        let missing = missing(shared, id);
        if missing == 0 {
            return;
        }
        let added = add_at_once(shared, id, missing).await;
        note_failures(shared, id, &added.failures);
        if added.passed_over == 0 {
            return;
        }
        shared.with(|driver, _| {
            if let Some(path) = driver.path_mut(id) {
                path.connections_wanted = share(&path.portals).max(path.connections()).max(1);
            }
        });
    }
}

/// The connections that a path wants and its session may have, besides those that it has or is to replace.
fn missing(shared: &Shared, id: PathId) -> usize {
    let missing = shared.read(|driver| {
        let path = driver.path(id)?;
        path.has_room().then(|| path.connections_to_be().saturating_sub(path.connections_expected()))
    });
    missing.unwrap_or_default()
}

fn note_failures(shared: &Shared, id: PathId, failures: &[Error]) {
    if let Some(error) = failures.first() {
        tracing::warn!(path = %id, connections = failures.len(), %error, "connections could not be added");
    }
    failures.iter().for_each(|error| note_ceiling(shared, id, error));
    let passing = failures.iter().filter(|error| replacement::may_pass(error)).count();
    if passing > 0 {
        shared.with(|driver, now| driver.connections_not_made(id, passing, now));
    }
}

/// Adds `count` connections to a path's session at once, at the portals of its group; returns the reason if some could
/// not be added.
pub(crate) async fn add_connections(shared: &Arc<Shared>, id: PathId, mut count: usize) -> Vec<Error> {
    let mut failures = Vec::new();
    while count > 0 {
        let added = add_at_once(shared, id, count).await;
        failures.extend(added.failures);
        count = added.passed_over;
    }
    failures
}

/// The logins that did not add a connection.
struct Added {
    failures: Vec<Error>,
    /// Those that failed because their portals are not of the session's group.
    passed_over: usize,
}

async fn add_at_once(shared: &Arc<Shared>, id: PathId, count: usize) -> Added {
    let closed = || Added { failures: vec![UsageError::SessionClosed.into()], passed_over: 0 };
    let adding = shared.read(|driver| driver.path(id).map(|path| Arc::clone(&path.adding)));
    let Some(adding) = adding else { return closed() };
    let _turn = adding.lock().await;
    let joiners =
        shared.with(|driver, _| driver.path_mut(id)?.joiners(&shared.config, &shared.target_name, count));
    let Some(joiners) = joiners else { return closed() };
    let joins = joiners.iter().map(|joiner| add_connection(shared, id, joiner));
    let ended = joiners.iter().zip(future::join_all(joins).await);
    let (mut failures, mut passed_over) = (Vec::new(), 0);
    for (joiner, error) in ended.filter_map(|(joiner, ended)| Some((joiner, ended.err()?))) {
        if passes_over(shared, id, joiner, &error) {
            passed_over += 1;
        } else {
            failures.push(error);
        }
    }
    Added { failures, passed_over }
}

/// Adds one connection to a path's session and to its wanted number.
pub(crate) async fn join(shared: &Arc<Shared>, id: PathId) -> Result<(), Error> {
    let failure = add_connections(shared, id, 1).await.into_iter().next();
    failure.map_or(Ok(()), Err).inspect_err(|error| note_ceiling(shared, id, error))
}

async fn add_connection(shared: &Arc<Shared>, id: PathId, joiner: &Applicant) -> Result<(), Error> {
    let opened = login::open(&shared.environment, &shared.config, joiner).await?;
    let lane = shared.with(|driver, now| driver.join_path(id, opened, now));
    spawn_lane(shared, id, lane);
    Ok(())
}

/// Records the reason why a session will have no more connections, if the error gives one.
fn note_ceiling(shared: &Shared, id: PathId, error: &Error) {
    let Error::Login(LoginError::Failed { failure, .. }) = error else { return };
    if is_ceiling(failure) {
        let reason = failure.to_string();
        shared.with(|driver, _| {
            if let Some(path) = driver.path_mut(id) {
                path.ceiling.get_or_insert(reason);
            }
        });
    }
}

/// Whether the failure shows that a session will have no more connections: the target says so, makes another session of
/// the login, or blames the initiator for it.
fn is_ceiling(failure: &Failure) -> bool {
    use pdu::LoginStatus::InitiatorError;
    failure.remedy() == Remedy::NoMoreConnections || matches!(failure, Failure::Refused(InitiatorError))
}

/// Makes the other connections of a split session, without which it carries no commands.
async fn complete_bundle(shared: &Arc<Shared>, id: PathId) -> Result<(), Error> {
    let companions =
        shared.with(|driver, _| driver.path_mut(id)?.companions(&shared.config, &shared.target_name));
    let companions = companions.ok_or(UsageError::SessionClosed)?;
    let joins = companions.iter().map(|companion| add_connection(shared, id, companion));
    future::try_join_all(joins).await.map(drop)
}

fn spawn_lane(shared: &Arc<Shared>, id: PathId, lane: Option<pdu::LaneId>) {
    if let Some(lane) = lane {
        shared.environment.spawn(lane::run(Arc::clone(shared), id, lane));
    }
}

/// Proves a path for every unit in use.
async fn prove(shared: &Arc<Shared>, id: PathId) -> Result<(), Error> {
    let luns: Vec<Lun> = shared.read(|driver| driver.units.keys().copied().collect());
    for lun in luns {
        match prove_unit(shared, id, lun).await {
            // The path may carry others meanwhile.
            Err(Error::Target(TargetError::Nonsense { .. })) => {
                shared.with(|driver, _| driver.leave_in_doubt(id, lun));
            }
            proven => proven?,
        }
    }
    Ok(())
}

/// How often in a row a unit is looked at that says each time that it has changed meanwhile.
const VIEWS_MAX: u32 = 8;

/// Lets a path carry a unit's I/O if it shows the same unit as the first path did. That it does not is no error of
/// the path, which may lead to other units rightly.
pub(crate) async fn prove_unit(shared: &Arc<Shared>, id: PathId, lun: Lun) -> Result<(), Error> {
    for _ in 0..VIEWS_MAX {
        if prove_unit_once(shared, id, lun).await? {
            return Ok(());
        }
    }
    Err(TargetError::restless(lun).into())
}

/// `false` if the unit changed, or a reservation was made or released, while the path was asked.
async fn prove_unit_once(shared: &Arc<Shared>, id: PathId, lun: Lun) -> Result<bool, Error> {
    let probe = Probe::new(shared, id, lun);
    let reservation = shared.read(|driver| driver.reservation(lun).map(|reservation| reservation.key));
    let portal = shared
        .read(|driver| driver.path(id).map(|path| path.portals.leading().to_string()))
        .unwrap_or_default();
    let (changes_told, view) = probe.view_behind(reservation).await;
    let offered = match view {
        Ok(view) => Ok(view),
        // The unit may be ready at the next attempt.
        Err(error) if error.sense().is_some_and(SenseData::is_not_ready) => return Err(error),
        Err(Error::Target(error)) => Err(error),
        Err(error) => return Err(error),
    };
    Ok(shared.with(|driver, _| {
        if driver.changes_told(id) != changes_told {
            return false;
        }
        let Some(unit) = driver.units.get(&lun) else { return true };
        if unit.reservation.map(|reservation| reservation.key) != reservation {
            return false;
        }
        match offered.and_then(|offered| judge(unit, id, reservation, &offered)) {
            Ok(()) => driver.accept_unit(id, lun),
            Err(error) => {
                tracing::warn!(path = %id, portal, %lun, %error, "the path is not used for this unit");
                driver.refuse_unit(lun, id, &error);
            }
        }
        true
    }))
}

/// Whether path `id` may carry the unit's I/O.
fn judge(
    unit: &UnitState,
    id: PathId,
    reservation: Option<ReservationKey>,
    offered: &UnitView,
) -> Result<(), TargetError> {
    let first = unit.unit.view();
    let lun = unit.unit.lun;
    // There is no other way to the unit than the one over which it was found.
    let is_first = unit.opened_over == id;
    match accept_path(&first, offered) {
        Ok(()) => Ok(()),
        Err(PathRefusal::NotOptimized(_)) if is_first => Ok(()),
        // Unless it must be shared by a reservation of ours, which somebody else has broken.
        Err(PathRefusal::Reserved(_)) if is_first && reservation.is_none() => Ok(()),
        Err(PathRefusal::Reserved(holder)) => Err(TargetError::Reserved { lun, holder }),
        Err(refusal) => Err(TargetError::Changed { lun, designator: first.designator, refusal }),
    }
}

/// Looks after a path until it is gone for good.
pub(crate) async fn run(shared: Arc<Shared>, id: PathId) {
    let looking_after = pin!(bring_back(&shared, id));
    future::select(looking_after, pin!(clear_up_doubts(&shared, id))).await;
}

/// Proves a path again for each unit that has changed.
async fn clear_up_doubts(shared: &Arc<Shared>, id: PathId) {
    let changed = shared.read(|driver| driver.path(id).map(|path| Arc::clone(&path.changed)));
    let Some(changed) = changed else { return };
    let mut under_way = BTreeSet::new();
    let mut proofs = FuturesUnordered::new();
    loop {
        let change = changed.listen();
        let doubted =
            shared.read(|driver| driver.path(id).map(|path| path.doubted.clone()).unwrap_or_default());
        for lun in doubted.into_iter().filter(|lun| under_way.insert(*lun)) {
            proofs.push(async move {
                clear_up_doubt(shared, id, lun).await;
                lun
            });
        }
        if proofs.is_empty() {
            change.await;
        } else if let Either::Right((Some(lun), _)) = future::select(change, proofs.next()).await {
            under_way.remove(&lun);
        }
    }
}

/// Proves a path again for one unit, as patiently as a lost one is called again.
async fn clear_up_doubt(shared: &Arc<Shared>, id: PathId, lun: Lun) {
    let mut pauses = Pauses::new(&shared.config.reconnect, shared.environment.now());
    let is_doubted = || shared.read(|driver| driver.path(id).is_some_and(|path| path.doubted.contains(&lun)));
    while is_doubted() {
        let Err(error) = prove_unit(shared, id, lun).await else { continue };
        match (pauses.next(&shared.environment), error) {
            (Some(pause), error) => {
                tracing::info!(path = %id, %lun, %error, "the unit that changed cannot be looked at yet");
                shared.environment.sleep(pause).await;
            }
            (None, Error::Target(error)) => shared.with(|driver, _| driver.refuse_unit(lun, id, &error)),
            // The proof is part of coming back.
            (None, _) => return shared.with(|driver, now| driver.abandon_path(id, now)),
        }
    }
}

/// Brings a path back whenever it is lost.
async fn bring_back(shared: &Arc<Shared>, id: PathId) {
    let changed = shared.read(|driver| driver.path(id).map(|path| Arc::clone(&path.changed)));
    let Some(changed) = changed else { return };
    loop {
        let change = changed.listen();
        let (state, connected) = shared.read(|driver| {
            driver.path(id).map_or((PathState::Gone, false), |path| (path.state, path.core.is_some()))
        });
        match state {
            PathState::Gone => return,
            PathState::Connecting if !connected => reinstate(shared, id, &changed).await,
            PathState::Connecting | PathState::Up => {
                if replacement::vacancies(shared, id) == Vacancies::None {
                    change.await;
                } else {
                    replacement::replace(shared, id, &changed).await;
                }
            }
        }
    }
}

/// Logs in repeatedly until it works or the time is over.
async fn reinstate(shared: &Arc<Shared>, id: PathId, changed: &Event) {
    let mut pause = shared.with(|driver, _| driver.path_mut(id).map_or(Duration::ZERO, Path::take_time2wait));
    let mut pauses = Pauses::new(&shared.config.reconnect, shared.environment.now() + pause);
    loop {
        if is_gone_within(shared, id, pause, changed).await {
            return;
        }
        let error = match open(shared, id).await {
            Ok(()) => {
                shared.with(|driver, _| driver.reinstatements += 1);
                tracing::info!(path = %id, "the session is back");
                return join_all(shared, id).await;
            }
            Err(error) => error,
        };
        let Some(next) = pauses.next(&shared.environment).filter(|_| !is_hopeless(&error)) else {
            tracing::error!(path = %id, %error, "the session is given up");
            return shared
                .with(|driver, now| driver.path_gone(id, &error.to_string(), &shared.target_name, now));
        };
        tracing::info!(path = %id, %error, "the session is not back yet");
        pause = next;
    }
}

/// Opens the first path. A connection that breaks during login proves that the target exists; from then on the path is
/// retried like a lost session. Any other failure is reported once every portal has failed.
pub(crate) async fn open_first(shared: &Arc<Shared>, id: PathId) -> Result<(), Error> {
    let mut pauses = Pauses::new(&shared.config.reconnect, shared.environment.now());
    let mut somebody_is_there = false;
    let mut others = shared.config.portals.len().saturating_sub(1);
    loop {
        let Err(error) = open(shared, id).await else { return Ok(()) };
        let broke = |error: &Error| matches!(error, Error::Network(error) if matches!(**error, NetworkError::Broken { .. }));
        somebody_is_there |= broke(&error);
        if others > 0 && matches!(error, Error::Network(_)) {
            tracing::info!(path = %id, %error, "the portal cannot be reached: trying the next");
            others -= 1;
            continue;
        }
        let pause = pauses.next(&shared.environment).filter(|_| somebody_is_there && !is_hopeless(&error));
        let Some(pause) = pause else { return Err(error) };
        tracing::info!(path = %id, %error, "the login broke: trying again");
        shared.environment.sleep(pause).await;
    }
}

/// Waits for `pause`, or until the path is gone: closed by its user, with nothing left to do.
async fn is_gone_within(shared: &Shared, id: PathId, pause: Duration, changed: &Event) -> bool {
    let until = shared.environment.now() + pause;
    loop {
        let change = changed.listen();
        if shared.read(|driver| driver.path(id).is_none_or(|path| path.state == PathState::Gone)) {
            return true;
        }
        if shared.environment.until(until, change).await.is_none() {
            return false;
        }
    }
}

/// Whether waiting is useless: the target has heard the initiator's name and refuses it.
pub(crate) fn is_hopeless(error: &Error) -> bool {
    use pdu::LoginStatus::{AuthenticationFailure, AuthorizationFailure};
    let Error::Login(LoginError::Failed { failure, .. }) = error else { return false };
    matches!(
        failure,
        Failure::Refused(AuthenticationFailure | AuthorizationFailure)
            | Failure::TargetUnproven(_)
            | Failure::AuthMethod
    )
}
