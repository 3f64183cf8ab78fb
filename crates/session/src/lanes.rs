//! The connections of a session by their lane numbers, and the route of each task over them. Both roles.

use pdu::LaneId;

/// How much of one task's data a lane sends before the next task has its turn. Commands of usual lengths are served one
/// after the other: each ends as early as possible, and its data is still in the processor's cache.
pub(crate) const TURN_BYTES: u32 = 1 << 20;

/// The lanes of a task. In an ordinary session both are the same (RFC 7143 §4.2.5.1), but no other code relies on that.
/// A task whose route loses either lane is an orphan: it keeps its route until it is given another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The lane of its command and Data-Out.
    pub(crate) request: LaneId,
    /// The lane of its R2Ts, Data-In and status.
    pub(crate) response: LaneId,
}

impl Route {
    /// A route that uses one lane in both directions.
    pub(crate) fn over(lane: LaneId) -> Self {
        Self { request: lane, response: lane }
    }

    pub(crate) fn uses(self, lane: LaneId) -> bool {
        self.request == lane || self.response == lane
    }
}

/// The lanes of a session, in the order of their numbers. They are few, and every PDU looks for its own several times.
#[derive(Debug)]
pub(crate) struct Lanes<L> {
    table: Vec<(LaneId, L)>,
}

impl<L> Lanes<L> {
    pub(crate) fn new() -> Self {
        Self { table: Vec::new() }
    }

    /// Adds a lane whose number is new to the session.
    pub(crate) fn add(&mut self, id: LaneId, lane: L) {
        let place = self.table.partition_point(|(known, _)| *known < id);
        self.table.insert(place, (id, lane));
    }

    /// Takes out a lost lane.
    pub(crate) fn lose(&mut self, id: LaneId) -> Option<L> {
        let place = self.table.iter().position(|(known, _)| *known == id)?;
        Some(self.table.remove(place).1)
    }

    pub(crate) fn get(&self, id: LaneId) -> Option<&L> {
        self.iter().find(|(known, _)| *known == id).map(|(_, lane)| lane)
    }

    pub(crate) fn get_mut(&mut self, id: LaneId) -> Option<&mut L> {
        self.table.iter_mut().find(|(known, _)| *known == id).map(|(_, lane)| lane)
    }

    pub(crate) fn has(&self, id: LaneId) -> bool {
        self.get(id).is_some()
    }

    /// A copy of all lane numbers, so that the caller can change the lanes in a loop.
    pub(crate) fn ids(&self) -> Vec<LaneId> {
        self.select(|_| true).collect()
    }

    /// The numbers of the lanes that match.
    pub(crate) fn select(&self, matches: impl Fn(&L) -> bool) -> impl Iterator<Item = LaneId> {
        self.iter().filter(move |(_, lane)| matches(lane)).map(|(id, _)| id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LaneId, &L)> {
        self.table.iter().map(|(id, lane)| (*id, lane))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &L> {
        self.table.iter().map(|(_, lane)| lane)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut L> {
        self.table.iter_mut().map(|(_, lane)| lane)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }
}
