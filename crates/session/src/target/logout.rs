//! Logout: the orderly end of a lane, or of the session (RFC 7143 §11.14, §11.15).

use super::event::Event;
use super::immediate::{ImmediateKind, Ticket};
use super::lane::{Lane, Phase};
use super::request::Request;
use super::session::{Session, Standing};
use super::task::Task;
use super::transmit::Reply;
use crate::seam::{Destination, Fault, LaneLoss, Payload, Transmit};
use pdu::{Header, Instant, Itt, LaneId, LogoutOutcome, LogoutReason, LogoutRequest, LogoutResponse, Lun};
use std::collections::BTreeSet;

/// The connections that a logout closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    Lane(LaneId),
    Session,
}

/// A logout that waits until the tasks that it terminates have ended, because they may still write.
#[derive(Debug)]
pub(super) struct Logout {
    lane: LaneId,
    itt: Itt,
    ticket: Ticket,
    closing: Closing,
}

impl Logout {
    pub(super) fn itt(&self) -> Itt {
        self.itt
    }
}

impl Session {
    pub(super) fn receive_logout(
        &mut self,
        now: Instant,
        lane: LaneId,
        header: &Header,
        pdu: LogoutRequest,
    ) -> Result<Destination, Fault> {
        let ticket = match self.admit(lane, header, pdu.cmd_sn, ImmediateKind::Other)? {
            Ok(ticket) => ticket,
            Err(destination) => return Ok(destination),
        };
        self.accept(now, lane, pdu.cmd_sn, ticket, Request::Logout(pdu));
        Ok(Destination::None)
    }

    /// Serves a logout, when its turn has come.
    pub(super) fn log_out(&mut self, now: Instant, lane: LaneId, ticket: Ticket, pdu: &LogoutRequest) {
        let closing = match pdu.reason {
            LogoutReason::CloseSession => Ok(Closing::Session),
            // A split session needs all its connections.
            LogoutReason::CloseConnection if self.lanes.are_split() => Ok(Closing::Session),
            LogoutReason::RemoveConnectionForRecovery if self.recovers_connections() => {
                return self.log_out_for_recovery(now, lane, ticket, pdu);
            }
            // Only error recovery level 2 keeps tasks for another connection.
            LogoutReason::RemoveConnectionForRecovery => Err(LogoutOutcome::RecoveryNotSupported),
            LogoutReason::CloseConnection => {
                let is_it = |lane: &Lane| lane.phase == Phase::Open && lane.cid == pdu.cid;
                let open = self.lanes.select(is_it).next();
                let named = open.or_else(|| self.departed.find(pdu.cid));
                named.map(Closing::Lane).ok_or(LogoutOutcome::CidNotFound)
            }
        };
        match closing {
            Err(outcome) => {
                self.push_reply(
                    lane,
                    Reply::Logout { itt: pdu.itt, outcome, ticket, closing: None, retains: false },
                );
            }
            Ok(closing) => {
                self.logouts.push(Logout { lane, itt: pdu.itt, ticket, closing });
                self.terminate(now, closing);
                if let Closing::Lane(named) = closing {
                    self.close_other(lane, named);
                }
                self.conclude(now);
            }
        }
    }

    /// Removes a connection and keeps its tasks, which may be reassigned once the logout is answered (§7.2.2).
    fn log_out_for_recovery(&mut self, now: Instant, lane: LaneId, ticket: Ticket, pdu: &LogoutRequest) {
        let removed = self.remove_for_recovery(now, pdu.cid);
        self.acknowledge_departed(pdu.cid, pdu.exp_stat_sn);
        let outcome = if removed.is_some() { LogoutOutcome::Closed } else { LogoutOutcome::CidNotFound };
        let closing = removed.flatten().map(Closing::Lane);
        let retains = removed.is_some();
        self.push_reply(lane, Reply::Logout { itt: pdu.itt, outcome, ticket, closing, retains });
        if let Some(named) = removed.flatten() {
            self.close_other(lane, named);
        }
        self.give_up_late(now);
    }

    /// Closes a lane that was logged out on another one, before the answer is sent: a data segment may be arriving on
    /// it in a buffer that is now free for others.
    fn close_other(&mut self, asked_on: LaneId, named: LaneId) {
        if named != asked_on {
            self.close_lane(named);
        }
    }

    /// Takes nothing more from the closing lanes, and terminates their tasks (§11.14.5).
    pub(super) fn terminate(&mut self, now: Instant, closing: Closing) {
        let lanes: Vec<LaneId> = match closing {
            Closing::Lane(lane) => vec![lane],
            Closing::Session => self.open_lanes().collect(),
        };
        for id in &lanes {
            if let Some(lane) = self.lanes.get_mut(*id) {
                lane.phase = Phase::LoggingOut;
            }
            self.drop_exchange(*id);
            self.drop_incoming(*id);
        }
        match closing {
            Closing::Lane(lane) => {
                self.departed.forget(lane);
                self.terminate_tasks(now, &[lane], true);
            }
            Closing::Session => {
                let gone = self.departed.forget_all();
                let lanes: Vec<LaneId> = lanes.into_iter().chain(gone).collect();
                self.terminate_tasks(now, &lanes, false);
            }
        }
    }

    /// Terminates all tasks of these lanes, which need not exist any more. If `tells`, the initiator gets a unit
    /// attention.
    pub(super) fn terminate_tasks(&mut self, now: Instant, lanes: &[LaneId], tells: bool) {
        // Waiting commands count as never sent: the initiator fills their places anew (§7.11).
        for waiting in self.order.forget(|numbered| lanes.contains(&numbered.lane)) {
            self.drop_request(waiting.request);
        }
        let terminated = |task: &Task| lanes.iter().any(|lane| task.route.uses(*lane));
        let units: BTreeSet<Lun> = self
            .tasks
            .iter()
            .filter(|(_, task)| terminated(task) && !task.silent && !task.stage.is_responded())
            .map(|(_, task)| task.lun)
            .collect();
        // This includes tasks that were aborted before: the data that the initiator still owes them will not come.
        for id in self.tasks.select(terminated) {
            self.silence(now, id);
        }
        if tells {
            self.events.extend(units.into_iter().map(|lun| Event::CommandsCleared { lun }));
        }
    }

    /// Whether the answer to a logout of the whole session is still to be sent on this lane.
    pub(super) fn awaits_end_of_session(&self, lane: LaneId) -> bool {
        self.logouts.iter().any(|logout| logout.lane == lane && logout.closing == Closing::Session)
    }

    /// Answers the logouts whose tasks have ended.
    pub(super) fn conclude_logouts(&mut self) {
        let tasks = &self.tasks;
        let is_clear = |logout: &Logout| match logout.closing {
            Closing::Session => tasks.is_empty(),
            Closing::Lane(lane) => !tasks.iter().any(|(_, task)| task.route.uses(lane)),
        };
        let clear: Vec<Logout> = self.logouts.extract_if(.., |logout| is_clear(logout)).collect();
        for Logout { lane, itt, ticket, closing } in clear {
            let outcome = LogoutOutcome::Closed;
            let closing = Some(closing);
            self.push_reply(lane, Reply::Logout { itt, outcome, ticket, closing, retains: false });
        }
    }

    pub(super) fn emit_logout(
        &mut self,
        lane: LaneId,
        itt: Itt,
        outcome: LogoutOutcome,
        ticket: Ticket,
        closing: Option<Closing>,
        retains: bool,
    ) -> Option<Transmit> {
        self.redeem(ticket);
        let stat_sn = self.lanes.get_mut(lane)?.status.take();
        let header = LogoutResponse {
            outcome,
            itt,
            stat_sn,
            window: self.order.tell(),
            wait_seconds: self.parameters.default_time2wait_s,
            retain_seconds: if retains { self.parameters.default_time2retain_s } else { 0 },
        }
        .emit();
        match closing {
            Some(Closing::Lane(lane)) => self.close_lane(lane),
            Some(Closing::Session) => {
                self.standing = Standing::Ending { orderly: true };
                let lanes = self.lanes.ids();
                for lane in lanes {
                    self.close_lane(lane);
                }
            }
            None => {}
        }
        Some(Transmit { header, payload: Payload::None })
    }

    /// Closes a lane that was logged out: nothing more is sent on it.
    pub(super) fn close_lane(&mut self, id: LaneId) {
        let Some(lane) = self.lanes.get_mut(id).filter(|lane| lane.phase != Phase::LoggedOut) else {
            return;
        };
        // The driver is closing a failed lane already. The logout makes the lane's end an orderly one.
        let has_failed = core::mem::replace(&mut lane.phase, Phase::LoggedOut) == Phase::Failed;
        lane.clear_transfers();
        for reply in core::mem::take(&mut lane.replies) {
            self.drop_reply(reply);
        }
        if !has_failed {
            self.events.push_back(Event::CloseLane { lane: id, loss: LaneLoss::LoggedOut, fault: None });
        }
    }
}
