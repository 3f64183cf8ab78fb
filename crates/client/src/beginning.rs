//! Makes the connections of a target besides the first, while its user already works.

use crate::driver::{Driver, Path, Shared};
use crate::layout::Layout;
use crate::path_id::PathId;
use crate::portal_group::PortalGroup;
use crate::{Error, Portal, supervisor};
use futures_util::future::{self, Either, join_all};
use pdu::Duration;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

/// Makes the other connections of the first session, and then further sessions.
pub(crate) async fn make_others(shared: Arc<Shared>, first: PathId, layout: Layout) {
    let layout = if is_to_spread(&shared, first) { layout.spread() } else { layout };
    want_no_more(&shared, first, layout.connections_per_session);
    let others = async {
        if layout.by_portal_group {
            join_share(&shared, first, &layout).await;
            open_sessions_of_other_groups(&shared, &layout).await;
            take_up_the_rest(&shared, first, &layout).await;
        } else {
            supervisor::join_all(&shared, first).await;
        }
        open_further_sessions(&shared, &layout).await;
    };
    log_in_while_open(&shared, others).await;
    shared.with(|driver, _| driver.begun());
}

/// Whether each connection is to have a session of its own. A session below error recovery level 2 ends with the first
/// connection that breaks (RFC 7143 §7.1.5); and some targets do not read from connections whose next command waits for
/// one of another.
fn is_to_spread(shared: &Shared, first: PathId) -> bool {
    let ends_with_one = |path: &Path| path.is_connected() && !path.outlives_connections();
    shared.config.may_spread() && shared.read(|driver| ends_with_one(&driver.paths[first]))
}

/// Lets the path want no more connections than these.
fn want_no_more(shared: &Shared, path: PathId, connections: usize) {
    shared.with(|driver, _| {
        if let Some(path) = driver.path_mut(path) {
            path.connections_wanted = path.connections_wanted.min(connections);
        }
    });
}

/// How long a login may still last when the user closes the target.
const LAST_LOGIN: Duration = Duration::from_secs(2);

/// The output of `logins`, or `None` if the user closes the target and they do not end soon: one that hangs then would keep
/// all sessions from being logged out.
pub(crate) async fn log_in_while_open<F: Future>(shared: &Shared, logins: F) -> Option<F::Output> {
    let closed = async {
        shared.until(Driver::is_closing).await;
        shared.environment.sleep(LAST_LOGIN).await;
    };
    match future::select(pin!(logins), pin!(closed)).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(((), _)) => {
            tracing::info!("a login is given up: the target is being closed");
            None
        }
    }
}

/// Gives a session the connections at the portals of its group.
async fn join_share(shared: &Arc<Shared>, path: PathId, layout: &Layout) {
    let share = |portals: &PortalGroup| layout.share(|portal| portals.may_contain(portal));
    supervisor::join_share(shared, path, share).await;
}

/// Opens a session for each portal group besides the first: whichever portals no session may use are of others.
async fn open_sessions_of_other_groups(shared: &Arc<Shared>, layout: &Layout) {
    for (at, portal) in layout.portals.iter().enumerate() {
        let others = layout.portals[at + 1..].iter().filter(|other| !is_used(shared, other));
        let portals = PortalGroup::new(portal.clone(), others.cloned());
        let share = layout.share(|portal| portals.may_contain(portal));
        let connections = share.min(unclaimed(shared, layout));
        let is_one_too_many =
            shared.read(|driver| driver.is_closing() || driver.paths.len() >= layout.sessions_max);
        if connections == 0 || is_one_too_many || is_used(shared, portal) {
            continue;
        }
        match open_session(shared, portals, connections).await {
            Ok(path) => join_share(shared, path, layout).await,
            Err(error) => tracing::warn!(%portal, %error, "the portal could not be used: using the others"),
        }
    }
}

/// Whether the portal may be of the group of a session.
fn is_used(shared: &Shared, portal: &Portal) -> bool {
    shared.read(|driver| driver.paths.living().any(|path| path.portals.may_contain(portal)))
}

/// The configured connections that no session wants.
fn unclaimed(shared: &Shared, layout: &Layout) -> usize {
    let wanted: usize = shared.read(|driver| driver.paths.living().map(|path| path.connections_wanted).sum());
    layout.connections.saturating_sub(wanted)
}

/// Gives the first session the connections that no other has been able to take.
async fn take_up_the_rest(shared: &Arc<Shared>, first: PathId, layout: &Layout) {
    let rest = unclaimed(shared, layout);
    shared.with(|driver, _| {
        if let Some(path) = driver.path_mut(first) {
            path.connections_wanted += rest;
        }
    });
    supervisor::join_all(shared, first).await;
}

/// Opens, at once, as many further sessions as the configured connections need. If the target refuses a session, there
/// are fewer connections.
async fn open_further_sessions(shared: &Arc<Shared>, layout: &Layout) {
    if shared.read(Driver::is_closing) {
        return;
    }
    let (mut opened, each, mut sessions) = shared.read(|driver| {
        let each = driver.paths.iter().map(Path::connections).max().unwrap_or_default().max(1);
        (driver.paths.iter().map(Path::connections_expected).sum::<usize>(), each, driver.paths.len())
    });
    let mut additions = Vec::new();
    while opened < layout.connections && sessions < layout.sessions_max {
        let connections = each.min(layout.connections - opened);
        additions.push(add_session(shared, layout.portals_from(sessions), connections));
        opened += connections;
        sessions += 1;
    }
    for error in join_all(additions).await.into_iter().filter_map(Result::err) {
        tracing::warn!(%error, "a further session could not be opened: using fewer");
    }
    let report = shared.report();
    if report.connections() < layout.connections {
        let (connections, wanted) = (report.connections(), layout.connections);
        tracing::warn!(
            connections,
            wanted,
            sessions = report.sessions(),
            "the target allows fewer connections"
        );
    }
}

/// Opens a session of its own for these connections.
pub(crate) async fn add_session(
    shared: &Arc<Shared>,
    portals: PortalGroup,
    connections: usize,
) -> Result<(), Error> {
    let path = open_session(shared, portals, connections).await?;
    supervisor::join_all(shared, path).await;
    Ok(())
}

/// Opens a session that is to have this many connections, with the first of them.
async fn open_session(
    shared: &Arc<Shared>,
    portals: PortalGroup,
    connections: usize,
) -> Result<PathId, Error> {
    let path = shared.add_path(portals, connections);
    if let Err(error) = supervisor::open(shared, path).await {
        shared.with(|driver, now| driver.path_gone(path, &error.to_string(), &shared.target_name, now));
        return Err(error);
    }
    shared.environment.spawn(supervisor::run(Arc::clone(shared), path));
    Ok(path)
}
