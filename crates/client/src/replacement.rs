//! A connection that broke is replaced in its session (RFC 7143 §7.1.4.3, §6.3.4).
//!
//! At error recovery level 2 the session lives on without it, and takes its commands to the connections that are left. A new
//! one restores the width; if none was left, it is what the commands wait for.

use crate::driver::{Shared, Vacancies};
use crate::reconnect::Pauses;
use crate::supervisor::{add_connections, is_hopeless};
use crate::{Error, LoginError};
use event_listener::Event;
use nexus::initiator::PathId;
use session::login::initiator::Remedy;
use std::sync::Arc;

/// Makes the connections that a path is missing, until it has them, cannot have them, or is lost itself.
pub(crate) async fn replace(shared: &Arc<Shared>, id: PathId, changed: &Event) {
    let mut pauses = Pauses::new(&shared.config.reconnect, shared.environment.now());
    loop {
        let change = changed.listen();
        let error = match vacancies(shared, id) {
            Vacancies::None => return,
            Vacancies::Wait(pause) => {
                // Whatever is first: what there is to do is asked again.
                let _ = shared.environment.within(pause, change).await;
                continue;
            }
            Vacancies::Fill(count) => add_connections(shared, id, count).await.into_iter().next(),
        };
        let Some(error) = error else {
            tracing::info!(path = %id, "the connection is replaced");
            pauses = Pauses::new(&shared.config.reconnect, shared.environment.now());
            continue;
        };
        let is_final = is_hopeless(&error) || session_is_gone(&error);
        let Some(pause) = pauses.next(&shared.environment).filter(|_| !is_final) else {
            return shared.with(|driver, now| driver.replacement_failed(id, &error.to_string(), now));
        };
        tracing::info!(path = %id, %error, "the connection is not replaced yet");
        let _ = shared.environment.within(pause, change).await;
    }
}

/// What is missing now.
pub(crate) fn vacancies(shared: &Shared, id: PathId) -> Vacancies {
    let now = shared.environment.now();
    shared.read(|driver| driver.path(id).map_or(Vacancies::None, |path| path.vacancies(now)))
}

/// Whether the target has forgotten the session, as one does that was started anew. That there are too many connections
/// is no such thing: it may not have noticed yet that one broke.
fn session_is_gone(error: &Error) -> bool {
    let Error::Login(LoginError::Failed { failure, .. }) = error else { return false };
    !matches!(failure.remedy(), Remedy::RetryLater | Remedy::NoMoreConnections)
}

/// Whether a connection of a session that has others could not be made for a reason that has nothing to do with it.
pub(crate) fn may_pass(error: &Error) -> bool {
    match error {
        Error::Network(_) => true,
        Error::Login(LoginError::Failed { failure, .. }) => failure.remedy() == Remedy::RetryLater,
        _ => false,
    }
}
