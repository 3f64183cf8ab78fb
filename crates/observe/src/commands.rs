//! The SCSI commands of one connection, followed by their task tags.

use crate::command::{Command, Gap};
use crate::pdu_cutter::{Cut, Sender};
use pdu::{Header, InitiatorPdu, Instant, Itt, TargetPdu};
use std::collections::HashMap;

/// The state of a direction at its previous captured bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before {
    pub(crate) at: Option<Instant>,
    pub(crate) in_flight_bytes: u64,
    pub(crate) window_bytes: Option<u64>,
    /// The shortest pause that counts as a gap.
    pub(crate) gap_ns_min: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Commands {
    open: HashMap<Itt, Command>,
    /// The data that the open commands are to move.
    pub(crate) outstanding_bytes: u64,
    pub(crate) ended: Vec<Command>,
    /// Commands without room to follow them.
    pub(crate) not_kept: u64,
    /// Commands without a captured status.
    pub(crate) without_status: u64,
    /// The last command that ended, if nothing was outstanding then or began since.
    idle_since: Option<(usize, Instant)>,
}

impl Commands {
    pub(crate) fn outstanding(&self) -> usize {
        self.open.len()
    }

    /// Commands that are open at the end of the capture, or were given up before.
    pub(crate) fn unended(&self) -> u64 {
        self.without_status + self.open.len() as u64
    }

    /// Processes a cut of one direction. `room` is the number of commands that may still be kept, over all connections.
    pub(crate) fn cut(&mut self, sender: Sender, cut: &Cut<'_>, before: &Before, room: &mut usize) {
        match *cut {
            Cut::Header { header, first } => {
                self.silence(header, first.at, before);
                match sender {
                    Sender::Initiator => self.begin(header, first.at, room),
                    Sender::Target => self.data_in_begun(header, first.at),
                }
            }
            Cut::Data { header, stamp } => self.silence(header, stamp.at, before),
            Cut::End { header, first, stamp, .. } => match sender {
                Sender::Initiator => self.initiator_sent(header, first.at, stamp.at),
                Sender::Target => self.target_sent(header, first.at, stamp.at),
            },
            Cut::Lost { .. } => self.open.values_mut().for_each(|command| command.whole = false),
        }
    }

    fn begin(&mut self, header: &Header, at: Instant, room: &mut usize) {
        match InitiatorPdu::parse(header) {
            Ok(InitiatorPdu::ScsiCommand(pdu)) => {
                if let Some((index, since)) = self.idle_since.take() {
                    self.ended[index].until_next_ns = Some(at.0.saturating_sub(since.0));
                }
                // Its tag is reused: a repetition, or the previous command's status was not captured.
                self.give_up(pdu.itt, room);
                if *room == 0 {
                    self.not_kept += 1;
                    return;
                }
                *room -= 1;
                self.outstanding_bytes += u64::from(pdu.expected_data_bytes);
                self.open.insert(pdu.itt, Command::begin(&pdu, at, self.open.len() + 1));
            }
            Ok(InitiatorPdu::DataOut(pdu)) => {
                if let Some(command) = self.open.get_mut(&pdu.itt) {
                    command.data_out_begun(at);
                }
            }
            _ => {}
        }
    }

    fn data_in_begun(&mut self, header: &Header, at: Instant) {
        if let Ok(TargetPdu::DataIn(pdu)) = TargetPdu::parse(header)
            && let Some(command) = self.open.get_mut(&pdu.itt)
        {
            command.data_in(at, at, 0);
        }
    }

    fn give_up(&mut self, itt: Itt, room: &mut usize) {
        if let Some(command) = self.open.remove(&itt) {
            *room += 1;
            self.outstanding_bytes -= u64::from(command.expected_bytes);
            self.without_status += 1;
        }
    }

    fn initiator_sent(&mut self, header: &Header, first: Instant, last: Instant) {
        let Some(command) = self.open.get_mut(&header.task_tag()) else { return };
        match InitiatorPdu::parse(header) {
            Ok(InitiatorPdu::ScsiCommand(pdu)) if command.begun == first => {
                command.command_sent(last, pdu.data_segment_bytes, pdu.final_);
            }
            Ok(InitiatorPdu::DataOut(pdu)) => command.data_sent(last, pdu.data_segment_bytes, pdu.final_),
            _ => {}
        }
    }

    fn target_sent(&mut self, header: &Header, first: Instant, last: Instant) {
        let Some(command) = self.open.get_mut(&header.task_tag()) else { return };
        let status = match TargetPdu::parse(header) {
            Ok(TargetPdu::R2t(_)) => {
                command.r2t(last);
                return;
            }
            Ok(TargetPdu::DataIn(pdu)) => {
                command.data_in(first, last, pdu.data_segment_bytes);
                let Some(status) = pdu.status else { return };
                status.status
            }
            Ok(TargetPdu::ScsiResponse(pdu)) => pdu.status,
            _ => return,
        };
        command.ended = Some((last, status));
        self.end(header.task_tag(), last);
    }

    fn end(&mut self, itt: Itt, at: Instant) {
        let Some(command) = self.open.remove(&itt) else { return };
        self.outstanding_bytes -= u64::from(command.expected_bytes);
        self.idle_since = self.open.is_empty().then_some((self.ended.len(), at));
        self.ended.push(command);
    }

    /// Records the pause of its direction, if this is data of a command that was moving.
    fn silence(&mut self, header: &Header, at: Instant, before: &Before) {
        let Some(command) = self.open.get_mut(&header.task_tag()) else { return };
        let Some(since) = before.at.filter(|since| *since >= command.begun) else { return };
        let duration_ns = at.0.saturating_sub(since.0);
        let carries_data = header.data_segment_bytes() > 0;
        if carries_data && command.is_moving() && duration_ns > before.gap_ns_min {
            command.gap(Gap {
                at_ns: since.0,
                duration_ns,
                in_flight_bytes: before.in_flight_bytes,
                window_bytes: before.window_bytes,
                waiting_for_r2t: command.is_waiting_for_r2t(),
            });
        }
    }
}
