//! Requests other than commands, which are not numbered, and are sent again with the same tag when no answer comes.

use super::lane::Lane;
use super::outgoing::Request;
use super::session::Session;
use crate::seam::Fault;
use pdu::{Instant, LaneId, SnackKind};

/// How often a read that stands still is asked for what may have been lost at its end.
const TAIL_ASKS_MAX: u32 = 6;

impl Session {
    /// When to send a task management request again.
    pub(super) fn function_deadline(&self) -> Option<Instant> {
        let functions = self.functions.iter().filter(|function| self.lanes.has(function.lane));
        functions.filter_map(|function| function.ask).map(|ask| ask.due()).min()
    }

    pub(super) fn ask_for_functions_again(&mut self, now: Instant) {
        for function in &mut self.functions {
            let Some(place) = self.lanes.get_mut(function.lane) else { continue };
            let Some(ask) = function.ask.as_mut().filter(|ask| ask.due() <= now) else { continue };
            if ask.again(now) {
                place.push(Request::TaskManagement(function.request));
            } else {
                // It may take as long as it takes; who asked for it may lose patience.
                function.ask = None;
            }
        }
    }

    pub(super) fn ask_for_text_again(&mut self, now: Instant, lane: LaneId) {
        if self.lanes.get_mut(lane).is_some_and(|place| !place.text_again(now)) {
            self.fail_lane(lane, Fault::Timeout("a text"));
        }
    }

    pub(super) fn ask_for_logout_again(&mut self, now: Instant, lane: LaneId) {
        let Some(place) = self.lanes.get_mut(lane) else { return };
        let Some(logout) = place.logout.as_mut() else { return };
        if logout.ask.as_mut().is_some_and(|ask| ask.again(now)) {
            let request = logout.request;
            place.push(Request::Logout(request));
        } else {
            // The deadline of its answer ends the lane.
            logout.ask = None;
        }
    }

    /// A lane answers, and yet a read on it has stood still since it was asked: perhaps the last data that the target
    /// sent was lost, or the acknowledgement that it waits for. Not so while the lane brings what may be before it.
    pub(super) fn ask_for_tails(&mut self, lane: LaneId, asked_at: Instant) {
        let owed_bytes = self.owed_bytes().get(&lane).copied().unwrap_or_default();
        let Some(place) = self.lanes.get_mut(lane).filter(|place| !place.statuses.has_gaps()) else {
            return;
        };
        let has_rested = place.inflow.has_rested_since(asked_at);
        for task in self.tasks.iter_mut() {
            let is_here =
                task.allegiance.is_some_and(|home| home.command.is_here() && home.route.response == lane);
            let stands_still = task.input.next() > 0 && task.data_in_at <= asked_at && task.ending.is_none();
            if !is_here
                || !stands_still
                || task.command.data.in_bytes() == 0
                || task.tail_asks >= TAIL_ASKS_MAX
                || !has_rested && place.inflow.is_behind(&mut task.tail_turn, owed_bytes)
            {
                continue;
            }
            task.tail_asks += 1;
            if let Some(ack) = task.data_ack.filter(|ack| ack.sent) {
                place.snack(ack.lun, SnackKind::DataAck { ttt: ack.ttt, next: ack.next });
            }
            let tail = SnackKind::DataOrR2t { itt: task.itt, begin: task.input.next(), count: 0 };
            place.snack(pdu::Lun::default(), tail);
        }
    }
}

impl Lane {
    /// Sends the last text request again; `false` if it was sent often enough.
    pub(super) fn text_again(&mut self, now: Instant) -> bool {
        let Some(text) = &mut self.text else { return false };
        if !text.ask.again(now) {
            return false;
        }
        let (pdu, data) = (text.request, text.data.clone());
        self.push(Request::Text(pdu, data));
        true
    }
}
