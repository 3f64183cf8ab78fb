//! Shows the tuner slices of time, and carries out what it decides: sets connections aside, calls on spare ones, and asks
//! for more ([`crate::growth`]).

use super::Driver;
use super::path::{Lane, Path};
use crate::path_id::PathId;
use crate::report::PathState;
use crate::{Config, Connections, Environment};
use framing::{Congestion, SocketOptions, SocketOptionsError, UnsentLimit};
use pdu::{Duration, Instant, LaneId};
use policy::tuner::{Decision, Experience, Law, Slice, TUNED_CONNECTIONS_MAX, Terms};
use policy::{Seen, Tuner};
use std::cmp::{Ordering, Reverse};

/// A spare connection is logged out after this time.
const SPARE_MAX: Duration = Duration::from_secs(60);

/// One that cannot be logged out yet is looked at again after this time.
const SPARE_LOOK: Duration = Duration::from_secs(10);

/// The most sessions that are logged out because they are spare. Each path is kept when its session is gone.
const RETIRED_SESSIONS_MAX: u64 = 64;

/// The most decisions that are kept, the first ones.
const DECISIONS_MAX: usize = 1024;

/// What the growth of a target's connections waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    /// A decision.
    None,
    /// One more connection, and a pause before the next.
    One {
        /// How long it lasts.
        pause: Duration,
    },
    /// Nothing: there will be no more.
    Over,
}

/// The tuner, and what it has decided.
pub(super) struct Tuning {
    /// `None` where the number of connections is fixed.
    tuner: Option<Box<dyn Tuner>>,
    /// The connections that are to work, and those that were to before the last decision.
    wanted: usize,
    wanted_before: usize,
    /// Their congestion control.
    law: Law,
    /// BBR; `None` if it is not allowed.
    bbr: Option<Congestion>,
    /// More are to be made until as many work.
    is_growing: bool,
    /// One of those logs in.
    is_logging_in: bool,
    slice: Option<Begun>,
    /// The shortest round trip in the last slice; zero if that is not known.
    rtt_min: Duration,
    /// When the slice ends, or the next one may begin; `None` while nothing is to do.
    slice_due: Option<Instant>,
    /// When the next spare connection is to be logged out.
    spare_due: Option<Instant>,
    decisions: Vec<Decision>,
    experience: Experience,
}

/// The beginning of a slice.
#[derive(Clone, Copy)]
struct Begun {
    at: Instant,
    /// When the slice is long enough.
    until: Instant,
    connections: usize,
    /// The lanes that had been made until then.
    lanes_made: u32,
    answered_bytes: u64,
    seen: Seen,
}

impl Tuning {
    pub fn new(config: &Config, environment: &Environment) -> Self {
        let (tuner, wanted) = match config.connections {
            Connections::Fixed(connections) => (None, connections.into()),
            Connections::Auto => {
                let terms = Terms {
                    connections_max: config.tuning.connections_max,
                    as_flows: config.tuning.as_flows,
                    experience: config.tuning.experience,
                };
                let tuner = (environment.tuner)(terms);
                let wanted = allowed(tuner.connections_at_first());
                (Some(tuner), wanted)
            }
        };
        Self {
            tuner,
            wanted,
            wanted_before: wanted,
            law: Law::Configured,
            bbr: config.tuning.bbr.clone().map(Congestion::named),
            is_growing: false,
            is_logging_in: false,
            slice: None,
            rtt_min: Duration::ZERO,
            slice_due: None,
            spare_due: None,
            decisions: Vec::new(),
            experience: config.tuning.experience,
        }
    }

    pub fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    pub fn experience(&self) -> Experience {
        self.experience
    }

    pub fn due(&self) -> Option<Instant> {
        [self.slice_due, self.spare_due].into_iter().flatten().min()
    }
}

impl Driver {
    /// The connections to begin with, before anything is decided.
    pub fn first_connections(&self) -> usize {
        self.tuning.wanted
    }

    /// Whether one more session is allowed.
    pub fn may_add_session(&self) -> bool {
        self.paths.living().count() < self.sessions_max
    }

    /// Leaves the number of connections as it is.
    pub fn end_tuning(&mut self) {
        self.tuning.tuner = None;
        (self.tuning.slice_due, self.tuning.spare_due) = (None, None);
        self.paths_changed = true;
    }

    /// Whether a further connection is to be made now. It then logs in, until [`Self::grown`].
    pub fn grow(&mut self, now: Instant) -> Growth {
        let Some(tuner) = self.tuning.tuner.as_ref().filter(|_| !self.closing) else { return Growth::Over };
        let pause = tuner.login_pause(now);
        let is_connecting = self.paths.iter().any(|path| path.state == PathState::Connecting);
        if is_connecting || !self.tuning.is_growing || self.working_lanes().count() >= self.tuning.wanted {
            return Growth::None;
        }
        self.tuning.is_logging_in = true;
        Growth::One { pause }
    }

    /// A further connection has logged in, or has failed to.
    pub fn grown(&mut self, has_failed: bool) {
        self.tuning.is_logging_in = false;
        self.tuning.is_growing &= !has_failed;
        // A slice of these connections may end before the next one logs in.
        (self.tuning.slice, self.tuning.slice_due) = (None, None);
        self.paths_changed = true;
    }

    /// Whether connections log in that no session has lost. Nothing is logged out before they have: a session that ends
    /// while one of its connections logs in does not end in order.
    pub(super) fn is_logging_in(&self) -> bool {
        self.is_beginning || self.tuning.is_logging_in
    }

    fn working_lanes(&self) -> impl Iterator<Item = &Lane> {
        self.paths.iter().flat_map(Path::working_lanes)
    }

    /// Begins a slice when there is work, and shows it to the tuner when it has ended.
    pub(super) fn tune(&mut self, now: Instant) {
        if self.tuning.tuner.is_none() || self.is_beginning || self.closing {
            (self.tuning.slice_due, self.tuning.spare_due) = (None, None);
            return;
        }
        let is_due = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        let may_begin = self.tuning.slice_due.is_none() && !self.operations.is_empty();
        let is_next_slice = is_due(self.tuning.slice_due) || may_begin;
        if !is_next_slice && !is_due(self.tuning.spare_due) {
            return;
        }
        if is_next_slice {
            self.show_slice(now);
        }
        self.keep_wanted_working(now);
        self.close_spare(now);
        if is_next_slice {
            let until = self.slice_end(now);
            self.tuning.slice = self.begin_slice(now, until);
            self.tuning.slice_due = Some(until);
        }
        self.set_due(now);
    }

    /// Shows the tuner the slice that has just ended, and follows its decision.
    fn show_slice(&mut self, now: Instant) {
        let Some(since) = self.tuning.slice.take() else { return };
        let seen = self.looks.seen().since(&since.seen);
        self.tuning.rtt_min = seen.rtt_min();
        let ended = self.slice(&since, &seen, now);
        if let Some((slice, tuner)) = ended.zip(self.tuning.tuner.as_mut()) {
            let decision = tuner.decide(&slice);
            self.tuning.experience = tuner.experience().unwrap_or(self.tuning.experience);
            decision.into_iter().for_each(|decision| self.follow(decision));
        }
    }

    /// None begins while spare connections still carry commands: the answers to later ones wait for theirs.
    fn begin_slice(&self, now: Instant, until: Instant) -> Option<Begun> {
        let seen = self.looks.seen();
        let are_spare_idle = !self.paths.iter().any(Path::has_busy_spare_lanes);
        are_spare_idle.then_some(Begun {
            at: now,
            until,
            connections: self.working_lanes().count(),
            lanes_made: self.next_lane,
            answered_bytes: self.answered_bytes,
            seen,
        })
    }

    /// The end of a slice that begins now.
    fn slice_end(&self, now: Instant) -> Instant {
        let known = Some(self.tuning.rtt_min).filter(|rtt| !rtt.is_zero());
        now + Slice::length_on(known.unwrap_or_else(|| self.looks.seen().rtt_min()))
    }

    /// What was seen since; `None` if connections have come or gone or one logs in, or if that is too short.
    fn slice(&self, since: &Begun, seen: &Seen, now: Instant) -> Option<Slice> {
        let connections = self.working_lanes().count();
        let are_the_same = (since.connections, since.lanes_made) == (connections, self.next_lane);
        (are_the_same && !self.tuning.is_logging_in && now >= since.until).then(|| {
            // Answers come late: the first ones when all that is under way has been moved.
            let answered =
                (self.answered_bytes - since.answered_bytes, now.saturating_duration_since(since.at));
            let (moved_bytes, length) = seen.carried().unwrap_or(answered);
            Slice {
                end: now,
                length,
                connections: number(connections),
                law: self.tuning.law,
                connections_max: self.connections_max(),
                may_use_bbr: self.tuning.bbr.is_some(),
                moved_bytes,
                diagnosis: seen.diagnose(),
            }
        })
    }

    /// The most connections that there can be, as far as is known.
    fn connections_max(&self) -> u32 {
        let of_sessions: usize = self.paths.living().map(Path::connections_max).sum();
        let further = self.sessions_max.saturating_sub(self.paths.living().count());
        number(of_sessions + further).min(TUNED_CONNECTIONS_MAX)
    }

    fn follow(&mut self, decision: Decision) {
        tracing::info!(%decision, "tuning");
        self.tuning.wanted_before = self.tuning.wanted;
        self.tuning.wanted = allowed(decision.connections);
        self.tuning.law = if self.tuning.bbr.is_some() { decision.law } else { Law::Configured };
        self.tuning.is_growing = decision.connections > decision.connections_before;
        self.paths_changed = true;
        if self.tuning.decisions.len() < DECISIONS_MAX {
            self.tuning.decisions.push(decision);
        }
    }

    /// Sets connections beyond the wanted number aside, or calls on spare ones.
    fn keep_wanted_working(&mut self, now: Instant) {
        let working = self.working_lanes().count();
        match working.cmp(&self.tuning.wanted) {
            Ordering::Greater => self.set_aside(working - self.tuning.wanted, now),
            Ordering::Less => self.call_on(self.tuning.wanted - working),
            Ordering::Equal => self.tuning.is_growing = false,
        }
        self.keep_law();
    }

    /// Gives working connections the congestion control that is wanted, also those that have logged in since. If one
    /// refuses BBR, none is asked again.
    fn keep_law(&mut self) {
        if let Err(error) = self.give_law() {
            tracing::info!(%error, "no connection uses BBR: one refuses it");
            (self.tuning.bbr, self.tuning.law) = (None, Law::Configured);
            // Those that took BBR can go back to what they had, and those that made way for them work again.
            let _ = self.give_law();
            self.tuning.wanted = self.tuning.wanted_before;
        }
    }

    fn give_law(&mut self) -> Result<(), SocketOptionsError> {
        let law = self.tuning.law;
        let lanes = self.paths.iter_mut().flat_map(|path| &mut path.lanes);
        for lane in lanes.filter(|lane| !lane.is_spare() && lane.law != law) {
            let congestion = match law {
                Law::Configured => lane.socket.congestion.clone(),
                Law::Bbr => self.tuning.bbr.clone(),
            };
            // What the socket may keep unsent follows its path already.
            let unsent = UnsentLimit::System;
            let options = SocketOptions { congestion, unsent, ..lane.socket.clone() };
            let in_force = lane.connection.apply(&options)?;
            (lane.law, lane.congestion) = (law, in_force.congestion);
        }
        Ok(())
    }

    /// Sets aside the connections with the smallest congestion windows, of equal ones the newest. What they have begun, they
    /// finish.
    fn set_aside(&mut self, count: usize, now: Instant) {
        let mut working: Vec<(u64, LaneId)> = self.working_lanes().map(rank).collect();
        working.sort_unstable_by_key(|(window_bytes, lane)| (*window_bytes, Reverse(lane.0)));
        for (_, lane) in working.into_iter().take(count) {
            self.placement.forget(lane);
            let lanes = self.paths.iter_mut().flat_map(|path| &mut path.lanes);
            lanes.filter(|known| known.id == lane).for_each(|lane| lane.spare_since = Some(now));
        }
    }

    /// Lets the connections work again that were set aside last.
    fn call_on(&mut self, count: usize) {
        let spare = self.paths.iter().flat_map(Path::spare_lanes);
        let mut spare: Vec<_> = spare.map(|lane| (Reverse(lane.spare_since), lane.id)).collect();
        spare.sort_unstable();
        spare.truncate(count);
        let lanes = self.paths.iter_mut().flat_map(|path| &mut path.lanes);
        let called = lanes.filter(|lane| spare.iter().any(|(_, called)| *called == lane.id));
        called.for_each(|lane| lane.spare_since = None);
    }

    /// Logs out what has been spare for long: sessions, and connections of sessions that such a logout cannot harm.
    fn close_spare(&mut self, now: Instant) {
        self.log_out_spare_sessions(now);
        for path in self.paths.iter_mut().filter(|path| path.is_connected() && path.outlives_connections()) {
            let is_old = |lane: &&Lane| lane.spare_since.is_some_and(|since| now >= since + SPARE_MAX);
            let old: Vec<LaneId> = path.spare_lanes().filter(is_old).map(|lane| lane.id).collect();
            for lane in old {
                self.retired_connections += u64::from(path.remove_lane(now, lane));
            }
        }
    }

    fn log_out_spare_sessions(&mut self, now: Instant) {
        let is_short = self.working_lanes().count() < self.tuning.wanted;
        let is_reserved = self.units.values().any(|unit| unit.reservation.is_some());
        if is_short || is_reserved || self.is_logging_in() || self.retired_sessions >= RETIRED_SESSIONS_MAX {
            return;
        }
        let is_old = |path: &&Path| path.spare_until().is_some_and(|until| now >= until);
        let spare = self.paths.iter().filter(|path| path.has_only_spare_lanes() && path.is_at_rest());
        let retired = spare.filter(is_old).find_map(|path| Some((path.id, self.heir_of(path)?)));
        let Some((id, heir)) = retired else { return };
        tracing::info!(path = %id, "all its connections have been spare for long");
        // Nothing is outstanding, so the cache has all that was written over it. Another path can flush that already.
        self.units.values_mut().for_each(|unit| unit.durability.hand_over(id, heir));
        self.paths[id].log_out(now);
        self.retired_sessions += 1;
    }

    /// Another path that works, to the same portal group and to each unit that this one leads to. A session of another
    /// group is kept: it is a way of its own.
    fn heir_of(&self, spare: &Path) -> Option<PathId> {
        let works = |path: &&Path| path.state == PathState::Up && path.working_lanes().next().is_some();
        let leads_there = |path: &&Path| {
            let is_of_group = path.portals.tag() == spare.portals.tag();
            is_of_group && spare.accepted.iter().all(|lun| path.accepted.contains(lun))
        };
        self.paths.iter().filter(works).find(leads_there).map(|path| path.id)
    }

    /// Where nothing is to do, there is no slice.
    fn set_due(&mut self, now: Instant) {
        if self.operations.is_empty() {
            (self.tuning.slice, self.tuning.slice_due) = (None, None);
        }
        // What cannot be logged out when it is due is looked at again.
        let again = now + SPARE_LOOK;
        let spare = self.paths.iter().filter_map(Path::spare_until);
        self.tuning.spare_due = spare.map(|until| if until > now { until } else { again }).min();
    }
}

impl Path {
    /// Spare connections that are lost are not replaced, nor made again in the next session.
    pub(super) fn want_no_spare(&mut self, is_lost: impl Fn(&Lane) -> bool) {
        let lost = self.lanes.iter().filter(|lane| lane.is_spare() && is_lost(lane)).count();
        self.connections_wanted = self.connections_wanted.saturating_sub(lost).max(1);
    }

    /// The present connections and those still expected that are not spare.
    pub(super) fn working_connections_to_be(&self) -> usize {
        self.connections_to_be().saturating_sub(self.spare_lanes().count())
    }

    /// The most connections that its session may have, as far as is known.
    pub(super) fn connections_max(&self) -> usize {
        match self.parameters {
            Some(_) if self.is_connected() && self.ceiling.is_none() => self.session_limit(),
            _ => self.connections(),
        }
    }

    /// The spare connections that are not being logged out.
    fn spare_lanes(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter().filter(|lane| lane.is_spare() && self.is_open_lane(lane))
    }

    /// The connections that are neither spare nor being logged out.
    pub(super) fn working_lanes(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter().filter(|lane| !lane.is_spare() && self.is_open_lane(lane))
    }

    fn has_busy_spare_lanes(&self) -> bool {
        let is_busy =
            |lane: &Lane| self.lane_state(lane.id).is_some_and(|state| state.outstanding_commands > 0);
        self.lanes.iter().any(|lane| lane.is_spare() && is_busy(lane))
    }

    /// Whether all its open connections are spare.
    fn has_only_spare_lanes(&self) -> bool {
        self.is_connected() && self.spare_lanes().count() > 0 && self.working_lanes().count() == 0
    }

    /// When it, or one of its connections, is to be logged out because that has been spare for long.
    fn spare_until(&self) -> Option<Instant> {
        let spare = self.spare_lanes().filter_map(|lane| lane.spare_since);
        let since = match (self.has_only_spare_lanes(), self.outlives_connections()) {
            (true, _) => spare.max(),
            (false, true) => spare.min(),
            (false, false) => None,
        };
        since.map(|since| since + SPARE_MAX)
    }
}

/// The order in which connections are set aside.
fn rank(lane: &Lane) -> (u64, LaneId) {
    (lane.measurement.last().map_or(0, |path| path.congestion_window_bytes), lane.id)
}

/// The connections that a tuner gets when it asks for so many.
fn allowed(connections: u32) -> usize {
    connections.clamp(1, TUNED_CONNECTIONS_MAX) as usize
}

/// A number of connections.
fn number(connections: usize) -> u32 {
    u32::try_from(connections).unwrap_or(u32::MAX)
}
