//! Makes further connections of a target that is in use.

use crate::driver::{Driver, Growth, Path, Shared};
use crate::layout::Layout;
use crate::path_id::PathId;
use crate::portal_group::PortalGroup;
use crate::{Error, UsageError, beginning, supervisor};
use std::sync::Arc;

/// Makes the connections that the tuner asks for, until it ends.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        let changed = shared.paths_changed.listen();
        match shared.with(Driver::grow) {
            Growth::Over => return,
            Growth::None => changed.await,
            Growth::One { pause } => {
                let added = beginning::log_in_while_open(&shared, add_connection(&shared)).await;
                if let Some(Err(error)) = &added {
                    tracing::info!(%error, "no further connection could be made");
                }
                shared.with(|driver, _| driver.grown(!matches!(added, Some(Ok(())))));
                shared.environment.sleep(pause).await;
            }
        }
    }
}

/// Adds a connection: to a session that may have one more, otherwise as a session of its own. That comes first where a
/// session would end with the first of its connections that breaks.
pub(crate) async fn add_connection(shared: &Arc<Shared>) -> Result<(), Error> {
    let roomy = shared.read(|driver| {
        let may_spread = shared.config.may_spread() && driver.may_add_session();
        let is_roomy = |path: &&Path| path.has_room() && (path.outlives_connections() || !may_spread);
        let roomy = driver.paths.iter().filter(is_roomy);
        roomy.min_by_key(|path| path.connections()).map(|path| path.id)
    });
    match roomy {
        Some(path) => supervisor::join(shared, path).await,
        None if shared.read(Driver::may_add_session) => {
            beginning::add_session(shared, next_portals(shared), 1).await
        }
        None => {
            Err(UsageError::Config("no session may have more connections, and no more sessions are allowed")
                .into())
        }
    }
}

/// The portals for one more session.
fn next_portals(shared: &Shared) -> PortalGroup {
    let (sessions, first) =
        shared.read(|driver| (driver.paths.len(), driver.paths[PathId(0)].portals.leading().clone()));
    Layout::new(&shared.config, 1, &first).portals_from(sessions)
}
