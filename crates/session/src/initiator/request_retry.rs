//! Repeats unnumbered requests, with the same tag, when no answer comes.

use super::lane::Lane;
use super::outgoing::Request;
use super::session::Session;
use crate::seam::Fault;
use pdu::{Instant, LaneId};

/// How often a stalled read's last PDUs are requested again.
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
                // A function may take any time. Its caller decides when to stop waiting.
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
            // The deadline for the answer will end the lane.
            logout.ask = None;
        }
    }

    /// Called when the target answers a ping of `asked_at` on `lane`. A read that has stood still since then may have
    /// lost its last Data-In, or a DataACK that the target waits for: both are sent for again, unless the data may
    /// still be behind other data of the lane.
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
                place.acknowledge_data(task.itt, ack);
            }
            place.ask_for_data(task.itt, task.input.next(), 0);
        }
    }
}

impl Lane {
    /// Sends the last text request again; `false` if it may not be sent again.
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
