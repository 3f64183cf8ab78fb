//! Command retry: commands that were lost on their way leave holes in the order of commands, and are sent again with
//! the same tag and number (RFC 7143 §4.2.2.1, §7.2.1).
//!
//! A command is sent again only when it is known to be lost: the target's answer to a ping that followed it on the same
//! lane does not acknowledge it. So no data is sent twice in vain, however slow the path.

use super::ask::Ask;
use super::event::{TaskFunction, TaskId};
use super::outgoing::Request;
use super::session::Session;
use super::task_management::Asker;
use crate::seam::Fault;
use pdu::{CmdSn, Instant, Itt, LaneId, Lun, TaskManagementRequest};

/// A command that the target has not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unacknowledged {
    cmd_sn: CmdSn,
    itt: Itt,
    lun: Lun,
    pub(super) lane: LaneId,
    /// As which PDU of its lane it left.
    pulled: Option<u64>,
    /// When it was sent, and how often.
    ask: Option<Ask>,
    /// Its lane is being asked whether it arrived.
    probing: bool,
}

impl Unacknowledged {
    /// It is to be sent, perhaps once more, on this lane.
    pub(super) fn move_to(&mut self, lane: LaneId) {
        *self = Self { lane, pulled: None, probing: false, ..*self };
    }

    /// When to find out whether it arrived.
    fn due(&self) -> Option<Instant> {
        let ask = self.ask.filter(|_| self.pulled.is_some() && !self.probing)?;
        Some(ask.due())
    }
}

impl Session {
    /// A command has taken its number.
    pub(super) fn await_acknowledgement(&mut self, lane: LaneId, itt: Itt, cmd_sn: CmdSn, lun: Lun) {
        if self.recovers() {
            let command = Unacknowledged { cmd_sn, itt, lun, lane, pulled: None, ask: None, probing: false };
            self.unacknowledged.push_back(command);
        }
    }

    /// A command leaves as the PDU of this number on its lane.
    pub(super) fn command_pulled(&mut self, now: Instant, cmd_sn: CmdSn, number: u64) {
        if let Some(command) = self.unacknowledged_mut(cmd_sn) {
            command.pulled = Some(number);
            command.ask = Some(command.ask.map_or(Ask::new(now), |ask| ask.counted_from(now)));
        }
    }

    /// Numbers are taken in order, so that a command's place follows from its number.
    pub(super) fn unacknowledged_mut(&mut self, cmd_sn: CmdSn) -> Option<&mut Unacknowledged> {
        let first = self.unacknowledged.front()?.cmd_sn;
        self.unacknowledged.get_mut(cmd_sn.distance_from(first) as usize)
    }

    /// Takes note of what the target has acknowledged.
    pub(super) fn commands_acknowledged(&mut self) {
        let exp_cmd_sn = self.window.told().exp_cmd_sn;
        while self.unacknowledged.front().is_some_and(|command| command.cmd_sn.precedes(exp_cmd_sn)) {
            self.unacknowledged.pop_front();
        }
    }

    /// Whether the target has a command, or had it.
    pub(super) fn is_acknowledged(&self, cmd_sn: CmdSn) -> bool {
        cmd_sn.precedes(self.window.told().exp_cmd_sn)
    }

    /// When to find out whether the command that the target misses first has arrived.
    pub(super) fn probe_deadline(&self) -> Option<Instant> {
        self.unacknowledged.front().and_then(Unacknowledged::due)
    }

    /// Asks the lane of that command.
    pub(super) fn probe_command(&mut self, now: Instant) {
        if let Some(command) = self.unacknowledged.front_mut() {
            command.probing = true;
            let lane = command.lane;
            self.ping(now, lane);
        }
    }

    /// A ping that left `lane` as the PDU of this number was answered: what left before it and is not acknowledged, is
    /// lost. That is known of one command only, since the target acknowledges none after it.
    pub(super) fn retry_lost_command(&mut self, now: Instant, lane: LaneId, ping: u64) {
        let Some(command) = self.unacknowledged.front_mut().filter(|command| command.lane == lane) else {
            return;
        };
        command.probing = false;
        if command.pulled.is_some_and(|pulled| pulled < ping) {
            self.send_again(now, 0);
        }
    }

    /// The target says that it dropped this command because its data was damaged. `false` if that is not mended: it is
    /// not waited for, and no other copy of it was sent that could have arrived.
    pub(super) fn retry_rejected_command(&mut self, now: Instant, itt: Itt) -> bool {
        let Some(place) = self.unacknowledged.iter().position(|command| command.itt == itt) else {
            return self.tasks.get(itt).is_none_or(|task| task.is_repeated);
        };
        self.send_again(now, place);
        true
    }

    /// Sends a command that did not arrive once more. One that has ended meanwhile is aborted, so that the target waits
    /// for its number no longer (§7.11).
    fn send_again(&mut self, now: Instant, place: usize) {
        let Some(command) = self.unacknowledged.get_mut(place) else { return };
        let (lane, itt, lun, cmd_sn) = (command.lane, command.itt, command.lun, command.cmd_sn);
        if !command.ask.as_mut().is_some_and(|ask| ask.again(now)) {
            return self.fail_lane(lane, Fault::Timeout("the acknowledgement of a command"));
        }
        self.counters.retries += 1;
        if self.tasks.get(itt).is_some() {
            self.queue_command_again(lane, itt, cmd_sn);
        } else {
            self.plug(now, lane, itt, lun, cmd_sn);
        }
    }

    /// Aborts commands that have ended and that the target may still wait for, where their connection is logged out.
    pub(super) fn plug_holes_of(&mut self, now: Instant, dead: LaneId) {
        let Some(lane) = self.lane_for_requests() else { return };
        let has_ended =
            |command: &&mut Unacknowledged| command.lane == dead && self.tasks.get(command.itt).is_none();
        let mut ended = Vec::new();
        for command in self.unacknowledged.iter_mut().filter(has_ended) {
            (command.lane, command.pulled, command.ask) = (lane, Some(0), Some(Ask::new(now)));
            ended.push(*command);
        }
        for command in ended {
            self.plug(now, lane, command.itt, command.lun, command.cmd_sn);
        }
    }

    /// Aborts a command that has ended and did not arrive, so that the target does not wait for its number.
    pub(super) fn plug(&mut self, now: Instant, lane: LaneId, itt: Itt, lun: Lun, cmd_sn: CmdSn) {
        let function = TaskFunction::AbortTask(TaskId(itt.0));
        let tag = self.request_tags.take();
        let request = TaskManagementRequest {
            lun,
            referenced_task: itt,
            ref_cmd_sn: cmd_sn,
            ..self.function_request(tag, function)
        };
        self.ask(now, lane, function, request, Asker::Session);
    }

    /// Puts a command and all of its data in line on `lane` once more.
    pub(super) fn queue_command_again(&mut self, lane: LaneId, itt: Itt, cmd_sn: CmdSn) {
        if let Some(command) = self.unacknowledged_mut(cmd_sn) {
            command.move_to(lane);
        }
        self.counters.retransmissions += 1;
        let Some(task) = self.tasks.get_mut(itt) else { return };
        let again = task.start_over();
        if let Some(home) = task.allegiance {
            self.lanes.charge_bytes(home.route, again);
        }
        if let Some(place) = self.lanes.get_mut(lane) {
            place.outgoing.forget_task(itt);
            place.push(Request::Command(itt));
        }
    }
}
