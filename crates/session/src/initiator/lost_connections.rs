//! Broken connections, each until all of its tasks have moved to other lanes. A broken connection is first logged out,
//! over another connection or by a login that reinstates it; then its tasks leave it (RFC 7143 §7.1.4.3, §7.5).

use super::ask::Ask;
use super::task::RequestTags;
use pdu::{
    Cid, CmdSn, Duration, Instant, Itt, LaneId, LogoutOutcome, LogoutReason, LogoutRequest, LogoutResponse,
    StatSn,
};
use std::collections::VecDeque;

/// The most broken connections that wait for recovery at a time. A session that loses more recovers none of them.
const LOST_CONNECTIONS_MAX: usize = crate::parameters::MAX_CONNECTIONS as usize;

/// A broken connection's name, and the time in which it can be recovered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    /// The lane that it was.
    pub(super) lane: LaneId,
    pub(super) cid: Cid,
    /// The ExpStatSN that it would have sent next.
    pub(super) exp_stat_sn: StatSn,
    /// The earliest time to log it out.
    pub(super) not_before: Instant,
    /// When the target forgets its tasks.
    pub(super) until: Instant,
}

#[derive(Debug)]
struct LostConnection {
    loss: Loss,
    stage: Stage,
    /// Its tasks that have no new lane, in the order of their CmdSNs.
    orphans: VecDeque<Itt>,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// To be logged out, not before this time if there is one.
    Broken { not_before: Option<Instant> },
    /// Its logout has been requested on this lane and not been answered.
    LoggingOut { itt: Itt, lane: LaneId, ask: Ask },
    /// Logged out. Its tasks may move, not before this time if there is one.
    Removed { not_before: Option<Instant> },
}

impl Stage {
    /// When recovery must go on.
    fn due(&self) -> Option<Instant> {
        match self {
            Self::Broken { not_before } | Self::Removed { not_before } => *not_before,
            Self::LoggingOut { ask, .. } => Some(ask.due()),
        }
    }
}

impl LostConnection {
    /// Whether its tasks may move.
    fn is_removed(&self) -> bool {
        matches!(self.stage, Stage::Removed { not_before: None })
    }

    /// The request that logs it out. It travels on another connection and carries this one's last ExpStatSN (§11.14.4).
    fn logout(&self, itt: Itt, cmd_sn: CmdSn) -> LogoutRequest {
        LogoutRequest {
            reason: LogoutReason::RemoveConnectionForRecovery,
            immediate: true,
            itt,
            cid: self.loss.cid,
            cmd_sn,
            exp_stat_sn: self.loss.exp_stat_sn,
        }
    }
}

/// Recovery has failed: nothing is left to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hopeless;

/// A session's broken connections that are not recovered.
#[derive(Debug, Default)]
pub(super) struct LostConnections {
    lost: Vec<LostConnection>,
}

impl LostConnections {
    /// Adds a broken connection. Logouts of others that it carried are to be sent again.
    pub(super) fn push(&mut self, loss: Loss, orphans: VecDeque<Itt>) -> Result<(), Hopeless> {
        for lost in &mut self.lost {
            if matches!(lost.stage, Stage::LoggingOut { lane, .. } if lane == loss.lane) {
                lost.stage = Stage::Broken { not_before: None };
            }
        }
        let stage = Stage::Broken { not_before: Some(loss.not_before) };
        self.lost.push(LostConnection { loss, stage, orphans });
        if self.lost.len() > LOST_CONNECTIONS_MAX { Err(Hopeless) } else { Ok(()) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lost.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.lost.clear();
    }

    /// The ExpStatSN with which a login restarts a connection of this name (§11.12.9).
    pub(super) fn exp_stat_sn(&self, cid: Cid) -> StatSn {
        let lost = self.lost.iter().rev().find(|lost| lost.loss.cid == cid);
        lost.map_or(StatSn(0), |lost| lost.loss.exp_stat_sn)
    }

    /// A new connection with this CID implicitly logs out the broken ones of that CID (§6.3.4).
    pub(super) fn reinstate(&mut self, cid: Cid) {
        for lost in self.lost.iter_mut().filter(|lost| lost.loss.cid == cid) {
            lost.stage = Stage::Removed { not_before: None };
        }
    }

    /// When the target first forgets a connection's tasks.
    pub(super) fn expiry(&self) -> Option<Instant> {
        self.lost.iter().map(|lost| lost.loss.until).min()
    }

    /// When [`Self::continue_at`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.lost.iter().filter_map(|lost| lost.stage.due()).min()
    }

    /// Goes on after a wait has passed. Returns the logouts that were not answered in time and must be sent again, each
    /// with its lane.
    pub(super) fn continue_at(
        &mut self,
        now: Instant,
        cmd_sn: CmdSn,
    ) -> Result<Vec<(LaneId, LogoutRequest)>, Hopeless> {
        let mut again = Vec::new();
        for lost in &mut self.lost {
            match &mut lost.stage {
                Stage::Broken { not_before } | Stage::Removed { not_before } => {
                    not_before.take_if(|not_before| *not_before <= now);
                }
                Stage::LoggingOut { lane, itt, ask } if ask.due() <= now => {
                    let (lane, itt) = (*lane, *itt);
                    if !ask.again(now) {
                        return Err(Hopeless);
                    }
                    again.push((lane, lost.logout(itt, cmd_sn)));
                }
                Stage::LoggingOut { .. } => {}
            }
        }
        Ok(again)
    }

    /// Whether a connection must be logged out now.
    pub(super) fn wants_logout(&self) -> bool {
        self.lost.iter().any(|lost| matches!(lost.stage, Stage::Broken { not_before: None }))
    }

    /// Logs out over `lane` all connections that must be logged out now.
    pub(super) fn log_out(
        &mut self,
        now: Instant,
        lane: LaneId,
        tags: &mut RequestTags,
        cmd_sn: CmdSn,
    ) -> Vec<LogoutRequest> {
        let broken = |lost: &&mut LostConnection| matches!(lost.stage, Stage::Broken { not_before: None });
        let requests = self.lost.iter_mut().filter(broken).map(|lost| {
            let itt = tags.take();
            lost.stage = Stage::LoggingOut { itt, lane, ask: Ask::new(now) };
            lost.logout(itt, cmd_sn)
        });
        requests.collect()
    }

    /// Takes the answer to a logout; `None` if this answers none. The target keeps the tasks for `default_retain`
    /// unless it says for how long.
    pub(super) fn logout_answered(
        &mut self,
        now: Instant,
        pdu: &LogoutResponse,
        default_retain: Duration,
    ) -> Option<Result<(), Hopeless>> {
        let asked = |lost: &&mut LostConnection| matches!(lost.stage, Stage::LoggingOut { itt, .. } if itt == pdu.itt);
        let lost = self.lost.iter_mut().find(asked)?;
        let wait = Duration::from_secs(pdu.wait_seconds.into());
        let not_before = Some(now + wait).filter(|_| pdu.wait_seconds > 0);
        match pdu.outcome {
            LogoutOutcome::Closed => {
                lost.stage = Stage::Removed { not_before };
                // A Time2Retain of 0 means that the target has dropped the tasks; its answers to TASK REASSIGN will say
                // so (§11.15.4).
                let retain = Some(Duration::from_secs(pdu.retain_seconds.into()));
                let retain = retain.filter(|_| pdu.retain_seconds > 0).unwrap_or(default_retain);
                lost.loss.until = now + wait + retain;
            }
            // It was logged out before. The target's answers to TASK REASSIGN will say what became of its tasks.
            LogoutOutcome::CidNotFound => lost.stage = Stage::Removed { not_before: None },
            // The same logout is tried again until the target has forgotten the tasks.
            LogoutOutcome::CleanupFailed if pdu.wait_seconds > 0 => lost.stage = Stage::Broken { not_before },
            LogoutOutcome::CleanupFailed
            | LogoutOutcome::RecoveryNotSupported
            | LogoutOutcome::Unassigned(_) => return Some(Err(Hopeless)),
        }
        Some(Ok(()))
    }

    /// The connections that are logged out, whose tasks may move.
    pub(super) fn removed(&self) -> Vec<LaneId> {
        self.lost.iter().filter(|lost| lost.is_removed()).map(|lost| lost.loss.lane).collect()
    }

    /// The orphans of the connections that are logged out.
    pub(super) fn orphans(&self) -> impl Iterator<Item = Itt> + '_ {
        self.lost.iter().filter(|lost| lost.is_removed()).flat_map(|lost| lost.orphans.iter().copied())
    }

    /// Takes an orphan out; returns its lost lane.
    pub(super) fn adopt(&mut self, task: Itt) -> Option<LaneId> {
        self.lost.iter_mut().find_map(|lost| {
            let at = lost.orphans.iter().position(|orphan| *orphan == task)?;
            lost.orphans.remove(at);
            Some(lost.loss.lane)
        })
    }

    /// Forgets orphans that have ended, then connections that no task waits for; returns the number of those
    /// connections.
    pub(super) fn end_recovered(
        &mut self,
        has_ended: impl Fn(Itt) -> bool,
        moves_from: impl Fn(LaneId) -> bool,
    ) -> usize {
        let before = self.lost.len();
        self.lost.retain_mut(|lost| {
            lost.orphans.retain(|task| !has_ended(*task));
            !lost.is_removed() || !lost.orphans.is_empty() || moves_from(lost.loss.lane)
        });
        before - self.lost.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;
    const WAIT: Duration = Duration::from_secs(2);
    const CMD_SN: CmdSn = CmdSn(7);

    fn lose(lost: &mut LostConnections, lane: u32, orphans: &[u32]) {
        let loss = Loss {
            lane: LaneId(lane),
            cid: Cid(u16::try_from(lane).expect("a small number")),
            exp_stat_sn: StatSn(100 + lane),
            not_before: NOW + WAIT,
            until: NOW + 10 * WAIT,
        };
        lost.push(loss, orphans.iter().copied().map(Itt).collect()).expect("few are lost");
    }

    fn log_out(lost: &mut LostConnections, lane: u32) -> Vec<LogoutRequest> {
        lost.continue_at(NOW + WAIT, CMD_SN).expect("nothing is late");
        lost.log_out(NOW + WAIT, LaneId(lane), &mut RequestTags::default(), CMD_SN)
    }

    #[test]
    fn a_connection_is_logged_out_with_its_own_numbers_when_time2wait_is_over() {
        let mut lost = LostConnections::default();
        lose(&mut lost, 1, &[]);
        assert!(!lost.wants_logout());
        assert_eq!(lost.deadline(), Some(NOW + WAIT));
        let requests = log_out(&mut lost, 0);
        assert_eq!((requests[0].cid, requests[0].exp_stat_sn), (Cid(1), StatSn(101)));
    }

    #[test]
    fn a_logout_whose_connection_breaks_is_to_be_sent_over_another() {
        let mut lost = LostConnections::default();
        lose(&mut lost, 1, &[]);
        log_out(&mut lost, 2);
        assert!(!lost.wants_logout());
        lose(&mut lost, 2, &[]);
        assert!(lost.wants_logout());
        assert_eq!(log_out(&mut lost, 0).len(), 2);
    }

    #[test]
    fn a_connection_is_recovered_when_its_tasks_have_ended_or_are_at_home() {
        let mut lost = LostConnections::default();
        lose(&mut lost, 1, &[7, 8]);
        lost.reinstate(Cid(1));
        assert_eq!(lost.orphans().collect::<Vec<_>>(), [Itt(7), Itt(8)]);
        assert_eq!(lost.adopt(Itt(7)), Some(LaneId(1)));
        assert_eq!(lost.end_recovered(|_| false, |_| false), 0, "one is an orphan");
        assert_eq!(lost.end_recovered(|_| true, |_| true), 0, "one is on its way");
        assert_eq!(lost.end_recovered(|_| true, |_| false), 1);
        assert!(lost.is_empty());
    }
}
