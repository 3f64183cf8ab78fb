//! A unit that reports a change carries no I/O over that path until the path is proven again.
//!
//! Its LUN may now lead to another disk. Commands for it wait: those for any path until one path carries the unit, and
//! flushes, which concern one nexus, with their path. The supervisor proves the path ([`crate::supervisor`]).

use super::Driver;
use super::slots::RequestId;
use crate::path_acceptance::Change;
use crate::path_id::PathId;
use crate::{Error, TargetError};
use pdu::{Instant, Lun};
use session::initiator::{Session, TaskFunction};

impl Driver {
    /// `lun` reported over a path that it has changed, or that other units may have.
    pub(super) fn doubt(&mut self, at: PathId, lun: Lun, change: Change, now: Instant) {
        let path = &mut self.paths[at];
        path.changes_told += 1;
        // A report from a unit already in doubt says nothing about the others, which report for themselves.
        let is_about_all = change == Change::AllUnits && !path.doubted.contains(&lun);
        let (doubted, accepted) = path.accepted.iter().partition(|known| is_about_all || **known == lun);
        path.accepted = accepted;
        path.doubted.extend::<Vec<Lun>>(doubted);
        path.ring();
        self.take_back_parked(at, now);
    }

    /// A command that waits for the command window has not left; it now waits for the proof instead.
    fn take_back_parked(&mut self, at: PathId, now: Instant) {
        let path = &mut self.paths[at];
        let parked = path.core.as_ref().and_then(Session::demand).map(|demand| demand.task);
        let Some((task, key)) = parked.and_then(|task| Some((task, *path.tasks.get(&task)?))) else { return };
        let request = &self.requests[key];
        if path.doubted.contains(&request.lun)
            && !request.is_question()
            && let Some(core) = &mut path.core
        {
            core.task_management(now, TaskFunction::AbortTask(task));
        }
    }

    /// Holds a flush whose path must be proven first. `false` if it need not be.
    pub(super) fn hold_in_doubt(&mut self, key: RequestId) -> bool {
        let request = &self.requests[key];
        let (lun, is_flush) = (request.lun, request.flush.is_some());
        let path = request.path.and_then(|path| self.path_mut(path));
        let Some(path) = path.filter(|path| is_flush && path.doubted.contains(&lun)) else { return false };
        path.held.push(key);
        true
    }

    /// A path cannot be proven for a unit yet. The supervisor tries again.
    pub fn leave_in_doubt(&mut self, id: PathId, lun: Lun) {
        let Some(path) = self.path_mut(id).filter(|path| path.core.is_some()) else { return };
        path.accepted.retain(|known| *known != lun);
        if path.doubted.insert(lun) {
            path.ring();
        }
    }

    /// A path provably leads to a unit.
    pub fn accept_unit(&mut self, id: PathId, lun: Lun) {
        let Some(path) = self.path_mut(id) else { return };
        path.doubted.remove(&lun);
        if !path.accepted.contains(&lun) {
            path.accepted.push(lun);
        }
        let held = std::mem::take(&mut path.held);
        self.enqueue_all(held);
    }

    /// Path `id` showed that this LUN leads to a different unit, or to none. Its unflushed writes can no longer be
    /// flushed.
    pub fn refuse_unit(&mut self, lun: Lun, id: PathId, error: &TargetError) {
        if let Some(unit) = self.units.get_mut(&lun) {
            unit.durability.nexus_lost(id);
        }
        let mut held = Vec::new();
        if let Some(path) = self.path_mut(id) {
            path.doubted.remove(&lun);
            path.refused.push((lun, error.clone()));
            held = std::mem::take(&mut path.held);
        }
        for key in held {
            if self.requests[key].lun == lun {
                self.end_request(key, Err(Error::Target(error.clone())));
            } else {
                self.enqueue(key);
            }
        }
        self.end_if_unreachable(lun);
    }
}
