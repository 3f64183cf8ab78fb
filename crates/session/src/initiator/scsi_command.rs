//! A command from its submission until its PDU leaves: submitted, started on a lane, pulled (RFC 7143 §11.3).

use super::data_out::{Sequence, Unsolicited};
use super::event::{Command, Data, Demand, Event, SubmitError, TaskId};
use super::lane::Phase;
use super::outgoing::Request;
use super::session::{Life, Session};
use super::task::{Allegiance, Delivery, TASKS_MAX, Task};
use crate::lanes::Route;
use crate::parameters::SessionType;
use crate::seam::Transmit;
use pdu::{CmdSn, DataSn, Instant, Itt, LaneId, ScsiCommand, StatSn, Ttt};

impl Session {
    /// Queues a command. Its buffer is lent to the session until [`Event::Release`].
    ///
    /// # Errors
    /// [`SubmitError`] says why the command was not taken. The buffer is then not lent.
    pub fn submit(&mut self, _now: Instant, command: Command) -> Result<TaskId, SubmitError> {
        if self.parameters.session_type == SessionType::Discovery {
            return Err(SubmitError::Discovery);
        }
        if self.life != Life::Open {
            return Err(SubmitError::Closed);
        }
        if !self.has_room() {
            return Err(SubmitError::Full);
        }
        let task = self.tasks.insert(command);
        self.queue.push_back(Itt(task.0));
        Ok(task)
    }

    /// Whether the session may hold one more command.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.tasks.len() < self.limits.commands_max.min(TASKS_MAX)
    }

    /// The command at the head of the queue, if it may be started: if the command window is open, a lane takes
    /// commands, and no task management function over many tasks is being carried out.
    #[must_use]
    pub fn demand(&self) -> Option<Demand> {
        let head = self.queue.front()?;
        let may_start = self.life == Life::Open
            && self.window.is_open()
            && !self.is_fenced()
            && self.lanes.iter().any(|(id, lane)| lane.phase == Phase::Open && self.route_over(id).is_some());
        if !may_start {
            return None;
        }
        let data = self.tasks.get(*head)?.command.data;
        Some(Demand {
            task: TaskId(head.0),
            data_out_bytes: data.out_bytes(),
            data_in_bytes: data.in_bytes(),
        })
    }

    /// Starts the command at the head of the queue on `lane`: it takes its CmdSN, and leaves after the requests that
    /// were queued on that lane before. `None` if no command may be started, or none on this lane.
    pub fn start(&mut self, _now: Instant, lane: LaneId) -> Option<TaskId> {
        self.start_on(self.route_over(lane)?)
    }

    /// The route of a command that is placed on `lane`; `None` if none may be.
    pub(super) fn route_over(&self, lane: LaneId) -> Option<Route> {
        self.lanes.route_over(lane, self.parameters.split)
    }

    /// As [`Self::start`], with a given route.
    pub(super) fn start_on(&mut self, route: Route) -> Option<TaskId> {
        let demand = self.demand()?;
        let route = route.for_read(demand.data_in_bytes);
        let is_open = |lane| self.lanes.get(lane).is_some_and(|place| place.phase == Phase::Open);
        if !route.lanes().all(is_open) {
            return None;
        }
        let cmd_sn = self.window.take()?;
        let itt = self.queue.pop_front()?;
        let task = self.tasks.get_mut(itt)?;
        task.allegiance = Some(Allegiance { route, cmd_sn, command: Delivery::Never });
        let lun = task.command.lun;
        self.lanes.charge(route, task.unmoved());
        if let Some(place) = self.lanes.get_mut(route.request) {
            place.push(Request::Command(itt));
        }
        self.counters.commands += 1;
        self.await_acknowledgement(route.request, itt, cmd_sn, lun);
        Some(demand.task)
    }

    /// The PDU of a command, when its turn has come.
    pub(super) fn pull_command(
        &mut self,
        now: Instant,
        lane: LaneId,
        itt: Itt,
        budget_bytes: u32,
    ) -> Option<Transmit> {
        // A task that has ended has nothing to send, and acknowledges nothing.
        self.tasks.get(itt)?.allegiance?;
        let exp_stat_sn = self.lanes.acknowledge(lane);
        let place = self.lanes.get_mut(lane)?;
        let task = self.tasks.get_mut(itt)?;
        let allegiance = task.allegiance.as_mut()?;
        allegiance.command.leave();
        let (route, cmd_sn) = (allegiance.route, allegiance.cmd_sn);
        let unsolicited = Unsolicited::of(
            task.command.data.out_bytes(),
            &self.parameters,
            place.connection.send_segment_bytes_max,
            budget_bytes,
        );
        if unsolicited.data_out_bytes > 0 {
            task.sequences.push_back(Sequence {
                ttt: Ttt::NONE,
                offset_bytes: unsolicited.immediate_bytes,
                rest_bytes: unsolicited.data_out_bytes,
                data_sn: DataSn(0),
            });
            place.outgoing.push_task(itt);
        }
        let sent_bytes = task.sent.add(0, unsolicited.immediate_bytes);
        let moved = task.moved(sent_bytes);
        self.counters.data_out_bytes += u64::from(unsolicited.immediate_bytes);
        let header = task.command_pdu(cmd_sn, exp_stat_sn, unsolicited).emit();
        let payload = task.data_out_payload(0, unsolicited.immediate_bytes);
        let number = place.next_pdu();
        self.lanes.release_bytes(route, moved);
        self.command_pulled(now, cmd_sn, number);
        Some(Transmit { header, payload })
    }

    /// One Data-Out PDU of a task, when its turn has come. A task with more data is queued again.
    pub(super) fn pull_data_out(&mut self, lane: LaneId, itt: Itt, budget_bytes: u32) -> Option<Transmit> {
        // A task without data to send acknowledges nothing.
        self.tasks.get(itt)?.sequences.front()?;
        let exp_stat_sn = self.lanes.acknowledge(lane);
        let place = self.lanes.get_mut(lane)?;
        let task = self.tasks.get_mut(itt)?;
        let segment_bytes_max = place.connection.send_segment_bytes_max;
        let (transmit, fresh_bytes) = task.next_data_out(segment_bytes_max, budget_bytes, exp_stat_sn)?;
        let bytes = transmit.header.data_segment_bytes();
        let (route, moved) = (task.allegiance?.route, task.moved(fresh_bytes));
        self.counters.data_out_bytes += u64::from(bytes);
        self.counters.retransmissions += u64::from(fresh_bytes < bytes);
        if !task.sequences.is_empty() {
            place.outgoing.requeue_task(itt, bytes);
        }
        self.lanes.release_bytes(route, moved);
        Some(transmit)
    }

    /// Takes a task out of the session and gives its buffer back. If a data segment is still arriving in the buffer,
    /// gives it back after that.
    pub(super) fn end_task(&mut self, itt: Itt, event: impl FnOnce(&Task) -> Event) {
        let Some(task) = self.tasks.remove(itt) else { return };
        self.events.push_back(event(&task));
        self.incomplete.remove(&itt);
        self.reassignments.forget_task(itt);
        if let Some(home) = task.allegiance {
            self.lanes.release(home.route, task.unmoved());
            if let (Some(ending), Some(lane)) = (&task.ending, self.lanes.get_mut(home.route.response)) {
                lane.statuses.release(ending.stat_sn);
            }
        }
        // A task that moved may still be receiving on its former lane.
        let buffer = task.command.data.buffer();
        match self.lanes.values_mut().find(|lane| lane.is_receiving_data_of(itt)) {
            Some(lane) => lane.held = buffer,
            None => self.events.extend(buffer.map(Event::Release)),
        }
    }

    /// Reports a task lost, because it will not be answered.
    pub(super) fn lose_task(&mut self, itt: Itt) {
        self.end_task(itt, |task| Event::Lost { task: TaskId(task.itt.0), started: task.is_started() });
    }
}

impl Task {
    fn command_pdu(&self, cmd_sn: CmdSn, exp_stat_sn: StatSn, unsolicited: Unsolicited) -> ScsiCommand {
        let data = self.command.data;
        ScsiCommand {
            lun: self.command.lun,
            itt: self.itt,
            immediate: false,
            final_: unsolicited.data_out_bytes == 0,
            read: matches!(data, Data::In(_)),
            write: matches!(data, Data::Out(_)),
            attribute: self.command.attribute,
            expected_data_bytes: data.out_bytes() + data.in_bytes(),
            bidirectional_read_bytes: None,
            cmd_sn,
            exp_stat_sn,
            cdb: self.command.cdb.clone(),
            data_segment_bytes: unsolicited.immediate_bytes,
        }
    }
}
