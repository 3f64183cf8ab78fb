//! Command retry: a command that was lost on its way leaves a hole in the order of commands, and is sent again with the
//! same ITT and CmdSN (RFC 7143 §4.2.2.1, §7.2.1).
//!
//! A command is sent again only when it is known to be lost: the target has answered a ping that followed it on the same
//! lane, the answer expects just this command, and every command before it had ended when the ping left. No data is sent
//! twice in vain, however slow the path or the disk: Linux 6.12 executes commands that arrived out of order one by one,
//! and expects each of them, although it has it, until the one before is done.

use super::ask::Ask;
use super::event::{TaskFunction, TaskId};
use super::outgoing::Request;
use super::session::Session;
use super::task::{Task, Tasks};
use super::task_management::Asker;
use crate::seam::Fault;
use pdu::{CmdSn, Instant, Itt, LaneId, Lun, TaskManagementRequest};
use std::collections::VecDeque;

/// A command that the target has not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Command {
    cmd_sn: CmdSn,
    itt: Itt,
    lun: Lun,
    lane: LaneId,
    /// The number among its lane's PDUs with which it left; `None` before that.
    pulled: Option<u64>,
    /// When it was sent, and how often. `None` before it leaves.
    ask: Option<Ask>,
    /// A ping on its lane is finding out whether it arrived.
    probing: bool,
}

impl Command {
    /// Plans to send it on this lane, perhaps not for the first time.
    fn move_to(&mut self, lane: LaneId) {
        *self = Self { lane, pulled: None, probing: false, ..*self };
    }

    /// When to ping its lane to find out whether it arrived.
    fn due(&self) -> Option<Instant> {
        let ask = self.ask.filter(|_| self.pulled.is_some() && !self.probing)?;
        Some(ask.due())
    }
}

/// Commands that the target has not acknowledged, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Unacknowledged {
    commands: VecDeque<Command>,
}

impl Unacknowledged {
    fn push(&mut self, lane: LaneId, itt: Itt, cmd_sn: CmdSn, lun: Lun) {
        self.commands.push_back(Command { cmd_sn, itt, lun, lane, pulled: None, ask: None, probing: false });
    }

    /// Finds a command by its number. CmdSNs are taken in order, so the number gives the place.
    fn get_mut(&mut self, cmd_sn: CmdSn) -> Option<&mut Command> {
        let first = self.commands.front()?.cmd_sn;
        self.commands.get_mut(cmd_sn.distance_from(first) as usize)
    }

    /// Drops all commands before this number: the target has them.
    fn acknowledge_before(&mut self, exp_cmd_sn: CmdSn) {
        while self.commands.front().is_some_and(|command| command.cmd_sn.precedes(exp_cmd_sn)) {
            self.commands.pop_front();
        }
    }

    /// When to find out whether the first unacknowledged command has arrived.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.commands.front().and_then(Command::due)
    }

    /// Returns the lane that is to be pinged for that command now.
    fn probe(&mut self) -> Option<LaneId> {
        let command = self.commands.front_mut()?;
        command.probing = true;
        Some(command.lane)
    }

    /// The first unacknowledged command, if it is for `lane` and the target no longer works on any before it: if a ping
    /// that leaves now, after it, finds that the target expects it, it is lost.
    pub(super) fn first_in_doubt(&self, lane: LaneId, tasks: &Tasks) -> Option<CmdSn> {
        let first = self.commands.front().filter(|command| command.lane == lane)?.cmd_sn;
        let mut homes = tasks.iter().filter_map(|task| task.allegiance);
        (!homes.any(|home| home.cmd_sn.precedes(first))).then_some(first)
    }

    /// The target answered the ping that left `lane` as PDU number `ping`, and `lost` is what that reveals. Returns the
    /// first unacknowledged command if it is that one and left there before the ping; if not, another ping is due later.
    /// Later commands stay uncertain, because the target cannot acknowledge them before this one.
    fn lost_before(&mut self, now: Instant, lane: LaneId, ping: u64, lost: Option<CmdSn>) -> Option<CmdSn> {
        let command = self.commands.front_mut().filter(|command| command.lane == lane)?;
        command.probing = false;
        let is_lost = lost == Some(command.cmd_sn) && command.pulled.is_some_and(|pulled| pulled < ping);
        if !is_lost {
            command.ask = command.ask.map(|ask| ask.counted_from(now));
        }
        is_lost.then_some(command.cmd_sn)
    }

    fn find(&self, itt: Itt) -> Option<CmdSn> {
        self.commands.iter().find(|command| command.itt == itt).map(|command| command.cmd_sn)
    }

    /// Marks the commands of a lost lane to be sent again.
    pub(super) fn orphan(&mut self, lane: LaneId) {
        self.commands
            .iter_mut()
            .filter(|command| command.lane == lane)
            .for_each(|command| command.move_to(lane));
    }

    /// Moves the matching commands of a lost lane to another lane, which aborts them.
    fn adopt(
        &mut self,
        now: Instant,
        lost: LaneId,
        lane: LaneId,
        matches: impl Fn(Itt) -> bool,
    ) -> Vec<Command> {
        let mut adopted = Vec::new();
        for command in self.commands.iter_mut().filter(|command| command.lane == lost && matches(command.itt))
        {
            (command.lane, command.pulled, command.ask) = (lane, Some(0), Some(Ask::new(now)));
            adopted.push(*command);
        }
        adopted
    }

    pub(super) fn clear(&mut self) {
        self.commands.clear();
    }
}

impl Session {
    /// Notes a command that has taken its CmdSN.
    pub(super) fn await_acknowledgement(&mut self, lane: LaneId, itt: Itt, cmd_sn: CmdSn, lun: Lun) {
        if self.recovers() {
            self.unacknowledged.push(lane, itt, cmd_sn, lun);
        }
    }

    /// Notes that a command leaves as PDU `number` of its lane.
    pub(super) fn command_pulled(&mut self, now: Instant, cmd_sn: CmdSn, number: u64) {
        if let Some(command) = self.unacknowledged.get_mut(cmd_sn) {
            command.pulled = Some(number);
            command.ask = Some(command.ask.map_or(Ask::new(now), |ask| ask.counted_from(now)));
        }
    }

    /// Drops the commands that ExpCmdSN acknowledges.
    pub(super) fn commands_acknowledged(&mut self) {
        self.unacknowledged.acknowledge_before(self.window.told().exp_cmd_sn);
    }

    /// Whether the target has received a command.
    pub(super) fn is_acknowledged(&self, cmd_sn: CmdSn) -> bool {
        cmd_sn.precedes(self.window.told().exp_cmd_sn)
    }

    /// Pings the lane of the first unacknowledged command.
    pub(super) fn probe_command(&mut self, now: Instant) {
        if let Some(lane) = self.unacknowledged.probe() {
            self.ping(now, lane);
        }
    }

    /// Sends the command again that the answer to the ping with PDU number `ping` on `lane` shows to be lost.
    pub(super) fn retry_lost_command(&mut self, now: Instant, lane: LaneId, ping: u64, lost: Option<CmdSn>) {
        if let Some(cmd_sn) = self.unacknowledged.lost_before(now, lane, ping, lost) {
            self.send_again(now, cmd_sn);
        }
    }

    /// The target rejected this command because its data was damaged: sends it again. `false` if it is not sent again:
    /// the target does not wait for it, and no other copy of it could have arrived.
    pub(super) fn retry_rejected_command(&mut self, now: Instant, itt: Itt) -> bool {
        let Some(cmd_sn) = self.unacknowledged.find(itt) else {
            return self.tasks.get(itt).is_none_or(Task::is_repeated);
        };
        self.send_again(now, cmd_sn);
        true
    }

    /// Sends a lost command once more. If its task has ended meanwhile, aborts it instead, so that the target no longer
    /// waits for its CmdSN (§7.11).
    fn send_again(&mut self, now: Instant, cmd_sn: CmdSn) {
        let Some(command) = self.unacknowledged.get_mut(cmd_sn) else { return };
        let (lane, itt, lun) = (command.lane, command.itt, command.lun);
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

    /// Aborts commands of a logged-out connection whose tasks have ended and whose CmdSN the target may still wait for.
    pub(super) fn plug_holes_of(&mut self, now: Instant, dead: LaneId) {
        let Some(lane) = self.lane_for_requests() else { return };
        let has_ended = |itt| self.tasks.get(itt).is_none();
        let ended = self.unacknowledged.adopt(now, dead, lane, has_ended);
        for command in ended {
            self.plug(now, lane, command.itt, command.lun, command.cmd_sn);
        }
    }

    /// Aborts a command that did not arrive and whose task has ended, so that the target does not wait for its CmdSN.
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

    /// Queues a command with all of its data on `lane` once more.
    pub(super) fn queue_command_again(&mut self, lane: LaneId, itt: Itt, cmd_sn: CmdSn) {
        if let Some(command) = self.unacknowledged.get_mut(cmd_sn) {
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

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;
    const LANE: LaneId = LaneId(1);

    /// Two commands, numbered from `first`, that left as PDUs 1 and 2 of a lane.
    fn sent(first: CmdSn) -> Unacknowledged {
        let mut unacknowledged = Unacknowledged::default();
        for number in 0..2 {
            unacknowledged.push(LANE, Itt(number), first.plus(number), Lun::default());
        }
        for number in 0..2 {
            let command = unacknowledged.get_mut(first.plus(number)).expect("a command");
            (command.pulled, command.ask) = (Some(u64::from(number) + 1), Some(Ask::new(NOW)));
        }
        unacknowledged
    }

    #[test]
    fn only_the_first_is_lost_and_only_if_it_left_before_the_ping() {
        let first = CmdSn(u32::MAX);
        let mut unacknowledged = sent(first);
        assert_eq!(unacknowledged.lost_before(NOW, LaneId(2), 3, Some(first)), None);
        assert_eq!(unacknowledged.lost_before(NOW, LANE, 1, Some(first)), None);
        assert_eq!(unacknowledged.lost_before(NOW, LANE, 3, None), None);
        assert_eq!(unacknowledged.lost_before(NOW, LANE, 3, Some(first)), Some(first));
        unacknowledged.acknowledge_before(first.next());
        assert_eq!(unacknowledged.lost_before(NOW, LANE, 3, Some(first)), None);
        let second = first.next();
        assert_eq!(unacknowledged.lost_before(NOW, LANE, 3, Some(second)), Some(second));
        unacknowledged.acknowledge_before(first.plus(2));
        assert_eq!(unacknowledged.lost_before(NOW, LANE, 3, Some(first.plus(2))), None);
    }

    #[test]
    fn a_lane_that_is_being_asked_has_no_deadline() {
        let mut unacknowledged = sent(CmdSn(7));
        assert!(unacknowledged.deadline().is_some());
        assert_eq!(unacknowledged.probe(), Some(LANE));
        assert_eq!(unacknowledged.deadline(), None);
        unacknowledged.lost_before(NOW, LANE, 1, None);
        assert!(unacknowledged.deadline().is_some());
        unacknowledged.orphan(LANE);
        assert_eq!(unacknowledged.deadline(), None, "it has not left anew");
    }
}
