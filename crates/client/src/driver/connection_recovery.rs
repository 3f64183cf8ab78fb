//! Connections that break while their session survives (error recovery level 2, RFC 7143 §7.1.4.3).
//!
//! [`super::dispatch`] gives the commands of such a connection to others. This file only makes the new connection
//! ([`crate::replacement`]), which the session needs if it has no other.

use super::Driver;
use super::path::{Lane, Path};
use crate::path_id::PathId;
use crate::report::PathState;
use pdu::{AsyncEvent, Cid, Duration, Instant, LaneId};
use session::initiator::Counters;

/// The place of a connection that broke, or could not be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vacancy {
    /// Its CID, if the session ever had this connection.
    pub cid: Option<Cid>,
    /// The target accepts no attempt before this time.
    not_before: Instant,
}

/// The present need for connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vacancies {
    /// None are missing, or none can be made.
    None,
    /// Some are missing, but the target accepts no attempt for this long.
    Wait(Duration),
    /// The number of connections to make.
    Fill(usize),
}

/// The repairs by error recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recoveries {
    pub connections: u64,
    pub tasks: u64,
    pub pdus: u64,
}

impl Recoveries {
    /// Adds the repairs of one session.
    pub fn and(self, counters: &Counters) -> Self {
        self.plus(Self {
            connections: counters.recovered_lanes,
            tasks: counters.reassignments,
            pdus: counters.retransmissions,
        })
    }

    pub fn plus(self, other: Self) -> Self {
        Self {
            connections: self.connections + other.connections,
            tasks: self.tasks + other.tasks,
            pdus: self.pdus + other.pdus,
        }
    }
}

/// A target that stops asks for the logout of one connection after the other. A new connection would hold it up, so
/// none is made before it has asked for all.
const ASKING: Duration = Duration::from_secs(1);

/// The longest Time2Wait that can be negotiated (RFC 7143 §13.15): nobody is kept away for longer.
const TIME2WAIT_MAX_S: u16 = 3600;

impl Path {
    /// The target says that connections are to end. Those that it wants logged out, the session logs out.
    pub(super) fn take_notice(&mut self, event: AsyncEvent, now: Instant) {
        match event {
            AsyncEvent::LogoutRequest { .. } if self.vacancies.len() < self.lanes.len() => {
                self.vacancies.push(Vacancy { cid: None, not_before: now + ASKING });
            }
            AsyncEvent::SessionDrop { wait_seconds, .. } => self.time2wait_s = Some(wait_seconds),
            AsyncEvent::ConnectionDrop { wait_seconds, .. } if !self.outlives_connections() => {
                self.time2wait_s = Some(wait_seconds);
            }
            _ => {}
        }
    }

    /// Whether its commands go on when a connection ends.
    pub fn outlives_connections(&self) -> bool {
        self.parameters.is_some_and(|parameters| parameters.error_recovery_level >= 2)
    }

    /// Whether the session takes commands, or would if it had a connection.
    fn is_open(&self) -> bool {
        let accepts = |lane: &Lane| self.lane_state(lane.id).is_some_and(|state| state.accepts_commands);
        self.connections() == 0 || self.lanes.iter().any(accepts)
    }

    /// For how long to leave the target alone after the session has ended, as it said at its end, or before: once.
    pub(crate) fn take_time2wait(&mut self) -> Duration {
        let negotiated = self.parameters.map_or(0, |parameters| parameters.default_time2wait_s);
        Duration::from_secs(self.time2wait_s.take().unwrap_or(negotiated).min(TIME2WAIT_MAX_S).into())
    }

    /// The missing connections. If none is left, one comes first: the others can be logged out over it.
    pub(crate) fn vacancies(&self, now: Instant) -> Vacancies {
        let missing = self.connections_wanted.saturating_sub(self.connections()).min(self.vacancies.len());
        let Some(first) = self.vacancies.iter().map(|vacancy| vacancy.not_before).min() else {
            return Vacancies::None;
        };
        if missing == 0 || !self.is_connected() || !self.is_open() {
            return Vacancies::None;
        }
        if first > now {
            return Vacancies::Wait(first.saturating_duration_since(now));
        }
        let due = self.vacancies.iter().filter(|vacancy| vacancy.not_before <= now).count();
        Vacancies::Fill(if self.connections() == 0 { 1 } else { due.min(missing) })
    }

    /// Notes that the session has got a connection with this CID.
    pub(super) fn fill_vacancy(&mut self, cid: Cid) {
        let missing = self.connections_wanted.saturating_sub(self.connections());
        if let Some(at) = filled(&self.vacancies, cid, missing) {
            self.vacancies.remove(at);
        }
    }

    /// Gives up the vacancies and continues with the present connections; `why` is the reason for callers who ask for
    /// more.
    fn leave_vacant(&mut self, why: &str) {
        self.vacancies.clear();
        self.connections_wanted = self.connections().max(1);
        self.ceiling.get_or_insert_with(|| why.to_owned());
    }
}

/// The vacancy that a new connection fills, if `missing` more are wanted: that of its CID, or else any. None if it has a
/// place of its own, because a connection broke while others were still logging in.
fn filled(vacancies: &[Vacancy], cid: Cid, missing: usize) -> Option<usize> {
    let own = vacancies.iter().position(|vacancy| vacancy.cid == Some(cid));
    own.or((vacancies.len() > missing).then_some(0))
}

impl Driver {
    pub(super) fn connection_lost(
        &mut self,
        at: PathId,
        (lane, cid): (LaneId, Cid),
        not_before: Instant,
        now: Instant,
    ) {
        let path = &mut self.paths[at];
        tracing::info!(path = %path.id, %lane, "the session lives on; the connection is to be replaced");
        path.vacancies.push(Vacancy { cid: Some(cid), not_before });
        path.ring();
        // No command waits for an unproven session, and its supervisor is busy proving it.
        if path.state == PathState::Connecting {
            path.give_up(now);
        }
    }

    /// `count` connections could not be made for transient reasons; they are treated as if they had broken later.
    pub fn connections_not_made(&mut self, id: PathId, count: usize, now: Instant) {
        let Some(path) = self.path_mut(id).filter(|path| path.is_connected()) else { return };
        path.vacancies.extend((0..count).map(|_| Vacancy { cid: None, not_before: now }));
        path.ring();
    }

    /// A path's connections cannot be replaced. If none is left, the session is given up, so that it can be reinstated.
    pub fn replacement_failed(&mut self, id: PathId, why: &str, now: Instant) {
        let Some(path) = self.path_mut(id) else { return };
        if path.connections() > 0 {
            tracing::warn!(path = %id, why, "the connection is not replaced");
            return path.leave_vacant(why);
        }
        tracing::info!(path = %id, why, "the session cannot be gone on with");
        path.give_up(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BROKEN: [Vacancy; 1] = [Vacancy { cid: Some(Cid(7)), not_before: Instant::ZERO }];

    #[test]
    fn a_connection_takes_the_place_of_a_broken_one_by_its_name_or_as_the_last_that_was_missing() {
        assert_eq!(filled(&BROKEN, Cid(7), 1), Some(0));
        assert_eq!(filled(&BROKEN, Cid(8), 0), Some(0));
    }

    #[test]
    fn a_connection_that_was_still_to_come_leaves_the_place_of_a_broken_one_vacant() {
        assert_eq!(filled(&BROKEN, Cid(8), 1), None);
    }
}
