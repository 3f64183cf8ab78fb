//! Makes the connections of a target besides the first, while its user already works.

use crate::driver::{Driver, Shared};
use crate::layout::Layout;
use crate::path_id::PathId;
use crate::{Error, Portal, supervisor};
use futures_util::future::join_all;
use std::sync::Arc;

/// Makes the other connections of the first session, and then further sessions.
pub(crate) async fn make_others(shared: Arc<Shared>, first: PathId, layout: Layout) {
    supervisor::join_all(&shared, first).await;
    open_further_sessions(&shared, &layout).await;
    shared.with(|driver, _| driver.begun());
}

/// Opens, at once, as many further sessions as the configured connections need. If the target refuses a session, there
/// are fewer connections.
async fn open_further_sessions(shared: &Arc<Shared>, layout: &Layout) {
    if shared.read(Driver::is_closing) {
        return;
    }
    let mut opened = shared.report().connections();
    let each = opened.max(1);
    let mut additions = Vec::new();
    let mut sessions = 1;
    while opened < layout.connections && sessions < layout.sessions_max {
        let connections = each.min(layout.connections - opened);
        let portal = &layout.portals[sessions % layout.portals.len()];
        additions.push(add_session(shared, portal, connections));
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
    portal: &Portal,
    connections: usize,
) -> Result<(), Error> {
    let path = shared.add_path(portal, connections);
    if let Err(error) = supervisor::open(shared, path).await {
        shared.with(|driver, now| driver.path_gone(path, &error.to_string(), &shared.target_name, now));
        return Err(error);
    }
    shared.environment.spawn(supervisor::run(Arc::clone(shared), path));
    supervisor::join_all(shared, path).await;
    Ok(())
}
