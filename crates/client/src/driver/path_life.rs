//! The life of a path as the driver sees it: added, begun, joined by further connections, proven, left.

use super::Driver;
use super::path::Path;
use crate::login::{Applicant, Opened};
use crate::path_id::PathId;
use crate::portal_group::PortalGroup;
use crate::report::PathState;
use crate::{Config, Error, isid};
use pdu::{Instant, Isid, LaneId, Lun};
use session::login::initiator::Joining;

impl Driver {
    /// Adds an empty path. All paths of a target share the random part of their ISIDs.
    pub fn add_path(&mut self, portals: PortalGroup, first: Isid, connections: usize) -> PathId {
        let qualifier = u16::try_from(self.paths.len()).unwrap_or(u16::MAX);
        self.paths.add(|id| {
            let mut path = Path::new(id, isid::with_qualifier(first, qualifier), portals);
            path.connections_wanted = connections;
            path
        })
    }

    /// The leading connection of a path has logged in, so its old nexus, if any, is dead (RFC 7143 §6.3.5).
    pub fn begin_path(
        &mut self,
        id: PathId,
        opened: Opened,
        config: &Config,
        now: Instant,
    ) -> Option<LaneId> {
        let lane = self.new_lane();
        let path = self.path_mut(id).filter(|path| path.state != PathState::Gone && path.core.is_none())?;
        path.begin(now, config, lane, opened);
        let stranded = std::mem::take(&mut path.stranded);
        for key in stranded {
            self.repeat(key);
        }
        Some(lane)
    }

    /// A further connection of a path has logged in. `None` if its session has ended meanwhile.
    pub fn join_path(&mut self, id: PathId, opened: Opened, now: Instant) -> Option<LaneId> {
        let lane = self.new_lane();
        let path = self.path_mut(id)?;
        if path.core.is_none() || path.tsih != Some(opened.established.tsih) {
            return None;
        }
        path.join(now, lane, opened);
        Some(lane)
    }

    /// Whether a login failed because its portal is not of the portal group of its session, which goes on. No other
    /// connection is made there.
    pub fn pass_over_portal(&mut self, id: PathId, applicant: &Applicant, error: &Error) -> bool {
        let Some(path) = self.path_mut(id) else { return false };
        let goes_on = |joining: Joining| path.core.is_some() && path.tsih == Some(joining.tsih);
        applicant.joining.is_none_or(goes_on) && path.portals.pass_over(&applicant.portal, error)
    }

    /// A path could not be proven: its session is logged out, and may be opened again.
    pub fn leave_path(&mut self, id: PathId, now: Instant) {
        if let Some(core) = self.path_mut(id).and_then(|path| path.core.as_mut()) {
            core.logout(now);
        }
    }

    /// The end of a path's session cannot be waited for: it ends without a word.
    pub fn abandon_path(&mut self, id: PathId, now: Instant) {
        if let Some(path) = self.path_mut(id) {
            path.give_up(now);
        }
    }

    /// A path's units are proven, but for those that were opened meanwhile.
    pub fn path_up(&mut self, id: PathId) {
        if let Some(path) = self.path_mut(id).filter(|path| path.core.is_some()) {
            path.state = PathState::Up;
        }
        let luns: Vec<Lun> = self.units.keys().copied().collect();
        for lun in luns {
            if self.path(id).is_some_and(|path| !path.knows(lun)) {
                self.leave_in_doubt(id, lun);
            }
        }
        self.paths_changed = true;
    }

    /// How often units have changed on this path, or its session ended; 0 if it is gone.
    pub fn changes_told(&self, id: PathId) -> u64 {
        self.path(id).map_or(0, |path| path.changes_told)
    }
}
