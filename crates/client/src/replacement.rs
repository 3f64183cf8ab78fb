//! Replaces a broken connection within its session (RFC 7143 §7.1.4.3, §6.3.4).
//!
//! At error recovery level 2 the session survives, and its commands move to the remaining connections. A new connection
//! restores the width. If none remains, the commands wait for it.

use crate::driver::{Shared, Vacancies};
use crate::path_id::PathId;
use crate::reconnect::Pauses;
use crate::supervisor::{add_connections, is_hopeless};
use crate::{Error, LoginError};
use event_listener::Event;
use session::login::initiator::Remedy;
use std::sync::Arc;

/// Makes a path's missing connections until it has them all, cannot have them, or is lost itself.
pub(crate) async fn replace(shared: &Arc<Shared>, id: PathId, changed: &Event) {
    let mut pauses = Pauses::new(&shared.config.reconnect, shared.environment.now());
    loop {
        let change = changed.listen();
        let error = match vacancies(shared, id) {
            Vacancies::None => return,
            Vacancies::Wait(pause) => {
                // The loop checks for work again after either.
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

/// The connections that are missing now.
pub(crate) fn vacancies(shared: &Shared, id: PathId) -> Vacancies {
    let now = shared.environment.now();
    shared.read(|driver| driver.path(id).map_or(Vacancies::None, |path| path.vacancies(now)))
}

/// Whether the target has forgotten the session, as after a restart. "Too many connections" is not a sign of that: the
/// target may not have noticed the break yet.
fn session_is_gone(error: &Error) -> bool {
    let Error::Login(LoginError::Failed { failure, .. }) = error else { return false };
    !matches!(failure.remedy(), Remedy::RetryLater | Remedy::NoMoreConnections)
}

/// Whether the failure of an additional connection is transient and says nothing about its session.
pub(crate) fn may_pass(error: &Error) -> bool {
    match error {
        Error::Network(_) => true,
        Error::Login(LoginError::Failed { failure, .. }) => failure.remedy() == Remedy::RetryLater,
        _ => false,
    }
}
