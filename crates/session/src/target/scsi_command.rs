//! A SCSI command from its arrival to the driver (RFC 7143 §11.3).

use super::command_order::Arrival;
use super::data_in::DataIn;
use super::data_out::{DataOut, Sequence};
use super::event::{Command, Event, Response, TaskId};
use super::immediate::{ImmediateKind, Ticket};
use super::request::{Content, Request};
use super::session::Session;
use super::task::{Allegiance, Answer, Stage, Task};
use crate::lanes::Route;
use crate::peer_fault::PeerFault;
use crate::seam::{Allocation, Buffers, Destination, Fault, PayloadRef};
use pdu::{Header, Instant, Itt, LaneId, RejectReason, ScsiCommand};

/// TASK SET FULL (SAM-5 §5.3.1).
const TASK_SET_FULL: u8 = 0x28;

/// How much data a command may transfer out and in. A command of one direction has one Expected Data Transfer Length; a
/// bidirectional one has another for its read, in an AHS (§11.2.2.4).
fn expected_bytes(command: &ScsiCommand) -> (u32, u32) {
    let out = if command.write { command.expected_data_bytes } else { 0 };
    let in_ = match (command.read, command.bidirectional_read_bytes) {
        (true, Some(bytes)) => bytes,
        (true, None) => command.expected_data_bytes,
        (false, _) => 0,
    };
    (out, in_)
}

impl Session {
    pub(super) fn receive_command(
        &mut self,
        now: Instant,
        lane: LaneId,
        header: &Header,
        command: ScsiCommand,
        buffers: &mut dyn Buffers,
    ) -> Result<Destination, Fault> {
        if let Err(fault) = self.check_unsolicited(&command) {
            return self.refuse_fault(lane, header, fault);
        }
        let arrival = self.order.classify(command.cmd_sn);
        if !command.immediate && !self.is_expected(command.cmd_sn) {
            return Ok(self.discard_data(lane, header));
        }
        let in_turn = command.immediate || arrival == Arrival::Next;
        if command.immediate && self.admit_immediate(lane, ImmediateKind::Other).is_none() {
            return self.refuse(lane, header, RejectReason::ImmediateCommandReject);
        }
        let bytes = command.data_segment_bytes;
        let task = self.new_task(now, lane, command, in_turn, buffers);
        let buffer = task.data_out.buffer;
        if bytes == 0 {
            self.accept_command(now, lane, header, task)?;
            return Ok(Destination::None);
        }
        self.await_data(lane, header, Content::Command(Box::new(task)));
        Ok(match buffer {
            Some(Allocation { buffer, .. }) => {
                Destination::Buffer(PayloadRef { buffer, offset_bytes: 0, bytes })
            }
            None => Destination::Discard { bytes },
        })
    }

    /// Checks that the initiator sends no more unsolicited data than was negotiated (§13.10, §13.11, §13.14).
    fn check_unsolicited(&self, command: &ScsiCommand) -> Result<(), PeerFault> {
        let immediate_bytes = command.data_segment_bytes;
        if immediate_bytes > 0 && !self.parameters.immediate_data {
            return Err(PeerFault::ImmediateDataForbidden);
        }
        if immediate_bytes > expected_bytes(command).0.min(self.parameters.first_burst_bytes) {
            return Err(PeerFault::ImmediateDataTooLong);
        }
        if !command.final_ && self.parameters.initial_r2t {
            return Err(PeerFault::UnsolicitedDataForbidden);
        }
        Ok(())
    }

    /// A task for `command`, with a buffer if its data comes unsolicited.
    ///
    /// A command whose turn has not come gets no more memory than the window promised: the rest is for the command that
    /// fills the hole, because the others wait for it. A command gets no more either while older ones wait for room,
    /// because it may have to wait for them.
    fn new_task(
        &mut self,
        now: Instant,
        lane: LaneId,
        command: ScsiCommand,
        in_turn: bool,
        buffers: &mut dyn Buffers,
    ) -> Task {
        let (out_bytes, in_bytes) = expected_bytes(&command);
        let unsolicited_end = match command.final_ {
            true => command.data_segment_bytes,
            false => out_bytes.min(self.parameters.first_burst_bytes),
        };
        let mut data_out = DataOut::new(now, out_bytes, unsolicited_end);
        let route = self.lanes.route_over(lane, self.parameters.split);
        let mut response = None;
        if unsolicited_end > 0 {
            let is_first = in_turn && self.starved.is_empty();
            let preferred = if is_first { out_bytes.min(self.limits.transfer_bytes_max) } else { 0 };
            data_out.buffer = buffers.allocate(unsolicited_end, preferred.max(unsolicited_end));
            if data_out.buffer.is_none() {
                response = Some(Response { status: TASK_SET_FULL, sense: Vec::new(), wanted_bytes: 0 });
            }
        }
        if !command.final_ {
            self.watch_sequences_from(now);
            let start = command.data_segment_bytes;
            data_out.sequences.push_back(Sequence::unsolicited(start, unsolicited_end - start));
        }
        Task {
            itt: command.itt,
            lun: command.lun,
            attribute: command.attribute,
            cdb: command.cdb,
            cmd_sn: command.cmd_sn,
            immediate: command.immediate,
            arrived_at: now,
            route: route.unwrap_or(Route::over(lane)).for_read(in_bytes),
            stage: Stage::Waiting,
            silent: false,
            data_out,
            data_in: DataIn::new(in_bytes, self.retransmits()),
            response,
            is_fenced: false,
            is_retired: false,
            snack_tag: 0,
            failure: None,
            allegiance: Allegiance::Original,
        }
    }

    /// Takes a command whose immediate data, if any, has arrived.
    pub(super) fn accept_command(
        &mut self,
        now: Instant,
        lane: LaneId,
        header: &Header,
        mut task: Task,
    ) -> Result<(), Fault> {
        task.arrived_at = now;
        let (cmd_sn, ticket) = (task.cmd_sn, task.ticket());
        if self.is_in_progress(task.itt) {
            if task.immediate {
                self.redeem(ticket);
            }
            self.release_buffers(task);
            return self.refuse_fault(lane, header, PeerFault::TagInUse).map(drop);
        }
        // A new command waits while a function over many tasks is active, which must not affect it.
        if task.immediate && (self.functions.holds_commands() || self.awaits_rest()) {
            let id = self.tasks.insert(task);
            self.functions.hold(id);
            return Ok(());
        }
        let id = self.tasks.insert(task);
        self.accept(now, lane, cmd_sn, ticket, Request::Command(id));
        Ok(())
    }

    /// Whether a tag is in use. A tag is free once the initiator has the response, which it may have while its
    /// acknowledgement is on its way.
    fn is_in_progress(&mut self, itt: Itt) -> bool {
        let Some(id) = self.tasks.find(itt) else { return false };
        let is_answered = self.tasks.get(id).is_some_and(|task| task.stage.is_responded());
        if is_answered {
            self.tasks.release_tag(id);
        }
        !is_answered
    }

    /// Hands a command to the driver, when its turn has come.
    pub(super) fn hand_out(&mut self, now: Instant, id: TaskId) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        if task.silent || task.response.is_some() {
            task.stage = Stage::Ended(Answer::Settling);
            self.settle(now, id);
            return;
        }
        task.stage = Stage::Executing;
        self.counters.commands += 1;
        let order_wait = (!task.immediate).then(|| now.saturating_duration_since(task.arrived_at));
        if let Some(wait) = order_wait {
            self.order_waits.record(wait);
        }
        self.events.push_back(Event::Command(Command {
            task: id,
            cmd_sn: (!task.immediate).then_some(task.cmd_sn),
            order_wait,
            lun: task.lun,
            attribute: task.attribute,
            cdb: task.cdb.clone(),
            data_out_bytes: task.data_out.expected_bytes,
            data_in_bytes: task.data_in.expected_bytes,
        }));
    }
}

impl Task {
    /// The place that the command occupies until it has been answered.
    pub(super) fn ticket(&self) -> Ticket {
        if self.immediate {
            Ticket::Immediate(self.route.request, ImmediateKind::Other)
        } else {
            Ticket::Numbered
        }
    }
}
