//! SNACK: asks for PDUs that were lost on the way to this side, and acknowledges data (RFC 7143 §11.16).

use super::ask::Ask;
use super::data_sequence::{Arrival, Hole};
use super::lane::Lane;
use super::outgoing::Request;
use super::session::Session;
use super::status_sequence::Gap;
use crate::peer_fault::PeerFault;
use crate::seam::{Fault, Transmit};
use pdu::{DataSn, Instant, Itt, LaneId, Lun, RejectReason, Snack, SnackKind, StatSn, TargetPdu, Ttt};
use std::collections::BTreeMap;

/// The most SNACKs that wait on one lane to leave. PDUs that find no room are asked for at the next repetition.
const SNACKS_MAX: u32 = 64;

/// A DataACK that the target has asked for with the A bit (§11.7.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct DataAck {
    pub(super) lun: Lun,
    pub(super) ttt: Ttt,
    /// The first DataSN that is not acknowledged.
    pub(super) next: DataSn,
    pub(super) sent: bool,
}

impl Session {
    /// Takes the StatSN of a response on `lane`. The next PDU to leave acknowledges it.
    pub(super) fn receive_status(&mut self, lane: LaneId, stat_sn: StatSn) -> Result<Arrival, Fault> {
        self.take_status(lane, stat_sn, false)
    }

    /// Takes the StatSN of a response on `lane`, and asks for missing responses before it. A response that `is_held` is
    /// not acknowledged yet.
    pub(super) fn take_status(
        &mut self,
        lane: LaneId,
        stat_sn: StatSn,
        is_held: bool,
    ) -> Result<Arrival, Fault> {
        let recovers = self.recovers();
        self.told_next_status(lane, stat_sn)?;
        let Some(place) = self.lanes.get_mut(lane) else { return Ok(Arrival::New) };
        if !recovers {
            place.statuses.receive_in_order(stat_sn)?;
        } else if place.statuses.receive(stat_sn, is_held)? == Arrival::Repeated {
            return Ok(Arrival::Repeated);
        } else {
            place.status_arrived();
        }
        if self.is_fenced() {
            self.acknowledge(lane);
        }
        Ok(Arrival::New)
    }

    /// Whether `lane` owes more acknowledgements than its share of half the command window. A target keeps each command
    /// until its response is acknowledged, and a lane that gets no more commands acknowledges nothing: Linux 6.12 keeps
    /// two windows of commands and eight more, and then reads nothing, not even an acknowledgement. A lane alone cannot
    /// owe more than one window.
    pub(super) fn owes_too_much(&self, lane: LaneId) -> bool {
        let Some(lane) = self.lanes.get(lane) else { return false };
        let lanes = u32::try_from(self.lanes.len()).unwrap_or(u32::MAX);
        let share = (self.window.width() / 2 / lanes).max(1);
        lanes > 1 && lane.statuses.owed() > share
    }

    /// The target says that it has sent all responses before `next`: asks for the missing ones.
    pub(super) fn told_next_status(&mut self, lane: LaneId, next: StatSn) -> Result<(), Fault> {
        if self.recovers()
            && let Some(place) = self.lanes.get_mut(lane)
            && let Some(gap) = place.statuses.told(next)?
        {
            place.ask_for_gap(gap);
        }
        Ok(())
    }

    /// The SNACK of a task whose turn has come. If the task has ended meanwhile, there is nothing to ask for, and its
    /// response acknowledges its data: Linux 6.12 drops a connection on which a DataACK follows that acknowledgement.
    pub(super) fn pull_snack(&mut self, lane: LaneId, snack: Snack, itt: Itt) -> Option<Transmit> {
        if self.tasks.get(itt).is_none() {
            self.lanes.get_mut(lane)?.snacks -= 1;
            self.acknowledge(lane);
            return None;
        }
        self.pull_request(lane, Request::Snack(snack, Some(itt)))
    }

    /// Asks for missing PDUs of a command.
    pub(super) fn ask_for_hole(&mut self, lane: LaneId, itt: Itt, hole: Option<Hole>) {
        let Some((begin, count)) = hole else { return };
        let Some(place) = self.lanes.get_mut(lane) else { return };
        // Lost R2Ts are left to the target, which repeats them by itself (§7.1.4.1).
        if self.tasks.get(itt).is_some_and(|task| task.command.data.in_bytes() > 0) {
            let ask = Ask::new(place.liveness.heard_at());
            self.incomplete.entry(itt).or_insert(ask);
        }
        place.ask_for_data(itt, begin, count);
    }

    /// Called when missing data of a command may have come. Sends a pending DataACK if nothing before it is missing.
    /// Stops the repetition of SNACKs if nothing is missing at all, else restarts its pause.
    pub(super) fn data_progressed(&mut self, itt: Itt) {
        let Some(task) = self.tasks.get_mut(itt) else { return };
        let Some(allegiance) = task.allegiance else { return };
        let Some(place) = self.lanes.get_mut(allegiance.route.response) else { return };
        if let Some(ack) = task.data_ack.as_mut().filter(|ack| !ack.sent && task.input.next() >= ack.next.0) {
            ack.sent = true;
            place.acknowledge_data(itt, *ack);
        }
        if task.input.holes().next().is_none() {
            self.incomplete.remove(&itt);
        } else if let Some(ask) = self.incomplete.get_mut(&itt) {
            *ask = Ask::new(place.liveness.heard_at());
        }
    }

    /// Asks again for missing data whose repetition is due, unless it may still be behind other data of its lane.
    pub(super) fn ask_for_missing_data_again(&mut self, now: Instant) {
        self.note_arriving_segments(now);
        let owed_bytes = self.owed_bytes();
        for (itt, ask) in self.incomplete.iter_mut().filter(|(_, ask)| ask.due() <= now) {
            let home = self.tasks.get(*itt).and_then(|task| task.allegiance).map(|home| home.route.response);
            if let Some((id, lane)) = home.and_then(|home| Some((home, self.lanes.get(home)?))) {
                ask.wait_behind(now, &lane.inflow, owed_bytes.get(&id).copied().unwrap_or_default());
            }
        }
        let due = self.incomplete.iter().filter(|(_, ask)| ask.due() <= now);
        let due: Vec<Itt> = due.map(|(itt, _)| *itt).collect();
        due.into_iter().for_each(|itt| self.ask_for_data_again(now, itt));
    }

    /// Asks again for missing responses on `lane`, unless they may still be behind data of the lane.
    pub(super) fn ask_for_statuses_again(&mut self, now: Instant, lane: LaneId) {
        self.note_arriving_segments(now);
        let owed_bytes = self.owed_bytes().get(&lane).copied().unwrap_or_default();
        let Some(place) = self.lanes.get_mut(lane) else { return };
        let Some(ask) = place.statuses.asked.as_mut() else { return };
        ask.wait_behind(now, &place.inflow, owed_bytes);
        if ask.due() <= now && !place.repeat_status_snacks(now) {
            self.fail_lane(lane, Fault::Timeout("a response to be sent again"));
        }
    }

    /// Notes that lanes in the middle of a data segment are not silent.
    fn note_arriving_segments(&mut self, now: Instant) {
        for lane in self.lanes.values_mut().filter(|lane| lane.incoming.is_some()) {
            lane.inflow.go_on(now);
        }
    }

    /// The Data-In that each lane has yet to bring, in bytes.
    pub(super) fn owed_bytes(&self) -> BTreeMap<LaneId, u64> {
        let mut owed_bytes = BTreeMap::new();
        for task in self.tasks.iter().filter(|task| task.command.data.in_bytes() > 0) {
            if let Some(home) = task.allegiance {
                *owed_bytes.entry(home.route.data_in).or_default() += u64::from(task.unmoved_bytes);
            }
        }
        owed_bytes
    }

    fn ask_for_data_again(&mut self, now: Instant, itt: Itt) {
        let goes_on = self.incomplete.get_mut(&itt).is_some_and(|ask| ask.again(now));
        let home = self.tasks.get(itt).and_then(|task| task.allegiance);
        let Some(lane) = home.map(|home| home.route.response).filter(|_| goes_on) else {
            self.incomplete.remove(&itt);
            if let Some(home) = home {
                self.fail_lane(home.route.response, Fault::Timeout("data to be sent again"));
            }
            return;
        };
        let (Some(task), Some(place)) = (self.tasks.get(itt), self.lanes.get_mut(lane)) else { return };
        for (begin, count) in task.input.holes() {
            place.ask_for_data(itt, begin, count);
        }
    }

    /// Asks at once for a Data-In PDU that was sent again and came damaged again.
    fn ask_for_damaged_again(&mut self, lane: LaneId, itt: Itt, data_sn: DataSn) {
        let Some(place) = self.lanes.get_mut(lane) else { return };
        let now = place.liveness.heard_at();
        if self.incomplete.get_mut(&itt).is_some_and(|ask| ask.again(now)) {
            place.ask_for_data(itt, data_sn.0, 1);
        }
    }

    /// Asks at once for a response that was sent again and came damaged again.
    fn ask_for_damaged_status_again(&mut self, lane: LaneId, stat_sn: StatSn) {
        let Some(place) = self.lanes.get_mut(lane) else { return };
        let now = place.liveness.heard_at();
        if place.statuses.asked.as_mut().is_some_and(|ask| ask.again(now)) {
            place.ask_for_statuses((stat_sn, 1));
        }
    }

    /// Takes the Reject of a SNACK.
    pub(super) fn snack_rejected(&mut self, lane: LaneId, reason: RejectReason, rejected: &Snack) {
        match rejected.kind {
            // A read whose data cannot be sent again fails; a write needs nothing (§7.8).
            SnackKind::DataOrR2t { itt, .. } if reason == RejectReason::SnackReject => {
                self.incomplete.remove(&itt);
                if let Some(task) = self.tasks.get_mut(itt) {
                    task.data_refused = true;
                    self.data_arrived(itt);
                }
            }
            SnackKind::Status { .. } if reason == RejectReason::SnackReject => {
                self.fail_lane(lane, PeerFault::StatusForgotten.into());
            }
            // The response was requested twice, and acknowledged after the first answer; or it was requested on
            // suspicion and had not been sent.
            SnackKind::Status { .. }
            | SnackKind::DataOrR2t { .. }
            | SnackKind::DataAck { .. }
            | SnackKind::ResegmentedData { .. } => {}
        }
    }

    /// Drops a PDU whose data was damaged: all of it counts as lost (§7.8).
    pub(super) fn lose_pdu(&mut self, lane: LaneId, pdu: &TargetPdu) -> Result<(), Fault> {
        if !self.recovers() {
            return Err(Fault::DataDigest);
        }
        let status = match pdu {
            TargetPdu::DataIn(pdu) => {
                if let Some(task) = self.task_on(lane, pdu.itt)? {
                    let was_missed = !task.input.has(pdu.data_sn.0);
                    let hole = task.input.told(pdu.data_sn.next().0);
                    if hole.is_none() && was_missed {
                        self.ask_for_damaged_again(lane, pdu.itt, pdu.data_sn);
                    }
                    self.ask_for_hole(lane, pdu.itt, hole);
                }
                pdu.status.map(|status| status.stat_sn)
            }
            TargetPdu::ScsiResponse(pdu) => Some(pdu.stat_sn),
            TargetPdu::TextResponse(pdu) => Some(pdu.stat_sn),
            TargetPdu::AsyncMessage(pdu) => Some(pdu.stat_sn),
            TargetPdu::Reject(pdu) => Some(pdu.stat_sn),
            TargetPdu::NopIn(pdu) => pdu.itt.is_some().then_some(pdu.stat_sn),
            // These carry no data.
            TargetPdu::R2t(_)
            | TargetPdu::TaskManagementResponse(_)
            | TargetPdu::LogoutResponse(_)
            | TargetPdu::LoginResponse(_) => None,
        };
        let Some(stat_sn) = status else { return Ok(()) };
        let was_missed = self.lanes.get(lane).is_some_and(|place| place.statuses.is_missing(stat_sn));
        self.told_next_status(lane, stat_sn.next())?;
        if was_missed {
            self.ask_for_damaged_status_again(lane, stat_sn);
        }
        Ok(())
    }
}

impl Lane {
    /// Asks for so many Data-In PDUs or R2Ts of a task, or, with 0, for all from the first on.
    pub(super) fn ask_for_data(&mut self, itt: Itt, begin: u32, count: u32) {
        self.snack(Some(itt), Lun::default(), SnackKind::DataOrR2t { itt, begin, count });
    }

    /// Sends the DataACK that the target has asked for.
    pub(super) fn acknowledge_data(&mut self, itt: Itt, ack: DataAck) {
        self.snack(Some(itt), ack.lun, SnackKind::DataAck { ttt: ack.ttt, next: ack.next });
    }

    fn ask_for_statuses(&mut self, (begin, count): Gap) {
        self.snack(None, Lun::default(), SnackKind::Status { begin, count });
    }

    /// Queues a SNACK, for a task if it is for one, unless too many wait.
    fn snack(&mut self, of: Option<Itt>, lun: Lun, kind: SnackKind) {
        if self.snacks < SNACKS_MAX {
            self.snacks += 1;
            // ExpStatSN is filled in when it is pulled.
            self.push(Request::Snack(Snack { kind, lun, exp_stat_sn: StatSn::default() }, of));
        }
    }

    fn ask_for_gap(&mut self, gap: Gap) {
        self.statuses.asked.get_or_insert(Ask::new(self.liveness.heard_at()));
        self.ask_for_statuses(gap);
    }

    /// Stops the repetition of status SNACKs if no response is missing any more.
    fn status_arrived(&mut self) {
        if self.statuses.asked.is_some() && !self.statuses.has_gaps() {
            self.statuses.asked = None;
        }
    }

    /// Asks for all missing responses once more; `false` if that may not be repeated.
    fn repeat_status_snacks(&mut self, now: Instant) -> bool {
        let goes_on = self.statuses.asked.as_mut().is_some_and(|ask| ask.again(now));
        if goes_on {
            self.statuses.gaps().into_iter().for_each(|gap| self.ask_for_statuses(gap));
        } else {
            self.statuses.asked = None;
        }
        goes_on
    }
}
