//! Text in full feature phase: SendTargets, and MaxRecvDataSegmentLength declared anew (RFC 7143 §11.10, §11.11,
//! appendix C).

use super::event::{Event, SendTargets, TargetRecord};
use super::immediate::{ImmediateKind, Ticket};
use super::request::{Content, Request};
use super::session::Session;
use super::transmit::Reply;
use crate::discovery;
use crate::name;
use crate::negotiation::rule::Key;
use crate::seam::{Destination, Fault, LaneLoss, Payload, Transmit};
use pdu::{
    Assembler, DATA_SEGMENT_BYTES_MAX, Header, Instant, InvalidText, Itt, LaneId, Lun, RejectReason,
    TextRequest, TextResponse, TextWriter, Ttt, text_keys, text_value,
};

/// The longest text request, over all its PDUs: a value of maximum length (§6.1), and room for other keys.
const REQUEST_BYTES_MAX: usize = 2 * text_keys::VALUE_BYTES_MAX;

/// The smallest MaxRecvDataSegmentLength (§13.12).
const SEGMENT_BYTES_MIN: u64 = 512;

const REJECT: &str = "Reject";
const NOT_UNDERSTOOD: &str = "NotUnderstood";

/// A text exchange of one lane. A lane has one at a time, and a new one replaces it.
#[derive(Debug)]
pub(super) struct Exchange {
    itt: Itt,
    /// The tag that the initiator must repeat to go on.
    ttt: Ttt,
    question: Assembler,
    answer: Vec<u8>,
    answered_bytes: usize,
    /// The last request, while it waits for the driver's list of targets.
    waiting: Option<(Header, Ticket)>,
    /// The declared MaxRecvDataSegmentLength, which takes effect when the exchange has ended successfully (§7.12).
    segment_bytes_max: Option<u32>,
}

/// One Text Response.
#[derive(Debug)]
pub(super) struct TextPiece {
    pub(super) ticket: Ticket,
    final_: bool,
    continued: bool,
    itt: Itt,
    ttt: Ttt,
    text: Vec<u8>,
}

/// The answer to a complete text, and the SendTargets question that the driver must answer first.
struct Answer {
    text: TextWriter,
    send_targets: Option<Option<String>>,
    segment_bytes_max: Option<u32>,
}

impl Session {
    pub(super) fn receive_text(
        &mut self,
        now: Instant,
        lane: LaneId,
        header: &Header,
        pdu: TextRequest,
    ) -> Result<Destination, Fault> {
        let ticket = match self.admit(lane, header, pdu.cmd_sn, ImmediateKind::Other)? {
            Ok(ticket) => ticket,
            Err(destination) => return Ok(destination),
        };
        if pdu.data_segment_bytes == 0 {
            self.accept(now, lane, pdu.cmd_sn, ticket, Request::Text(pdu, Vec::new()));
            return Ok(Destination::None);
        }
        self.await_data(lane, header, Content::Text(pdu, ticket));
        Ok(Destination::Inline { bytes: pdu.data_segment_bytes })
    }

    /// Takes a complete text request.
    pub(super) fn take_text(
        &mut self,
        now: Instant,
        lane: LaneId,
        pdu: TextRequest,
        ticket: Ticket,
        text: &[u8],
    ) -> Result<(), Fault> {
        // A text that is too long will be rejected in its turn, for which its bytes need not be kept.
        let text = &text[..text.len().min(REQUEST_BYTES_MAX + 1)];
        if !self.hold_inline(text.len()) {
            return Err(Fault::Limit("text requests that wait for their turn"));
        }
        self.accept(now, lane, pdu.cmd_sn, ticket, Request::Text(pdu, text.to_vec()));
        Ok(())
    }

    /// Serves a text request, when its turn has come.
    pub(super) fn serve_text(&mut self, lane: LaneId, ticket: Ticket, pdu: &TextRequest, text: &[u8]) {
        self.release_inline(text.len());
        if pdu.ttt.is_none() {
            self.drop_exchange(lane);
            let exchange = Exchange::new(pdu.itt, self.transfer_tags.next());
            if let Some(lane) = self.lanes.get_mut(lane) {
                lane.text = Some(exchange);
            }
        }
        let exchange = self.lanes.get_mut(lane).and_then(|lane| lane.text.as_mut());
        let Some(exchange) = exchange.filter(|exchange| exchange.is_continued_by(pdu)) else {
            return self.refuse_text(lane, ticket, pdu, RejectReason::InvalidPduField);
        };
        if exchange.is_answering() {
            return match text.is_empty() {
                true => self.answer_text(lane, ticket, pdu),
                // The initiator is asking for the rest of an answer, and must not send text (§11.10.4).
                false => self.refuse_text(lane, ticket, pdu, RejectReason::ProtocolError),
            };
        }
        match exchange.question.push(text, pdu.continued) {
            Ok(None) => self.answer_text(lane, ticket, pdu),
            Ok(Some(question)) => self.take_question(lane, ticket, pdu, &question),
            Err(InvalidText::TooLong { .. }) => {
                self.refuse_text(lane, ticket, pdu, RejectReason::LongOperationReject);
            }
            Err(_) => self.refuse_text(lane, ticket, pdu, RejectReason::ProtocolError),
        }
    }

    fn take_question(&mut self, lane: LaneId, ticket: Ticket, pdu: &TextRequest, question: &[u8]) {
        let Ok(answer) = self.consider(question) else {
            return self.refuse_text(lane, ticket, pdu, RejectReason::ProtocolError);
        };
        let Some(exchange) = self.lanes.get_mut(lane).and_then(|lane| lane.text.as_mut()) else { return };
        exchange.answer.extend_from_slice(answer.text.bytes());
        exchange.segment_bytes_max = answer.segment_bytes_max.or(exchange.segment_bytes_max);
        match answer.send_targets {
            Some(target_name) => {
                exchange.waiting = Some((pdu.emit(), ticket));
                self.events.push_back(Event::SendTargets(SendTargets { lane, itt: pdu.itt, target_name }));
            }
            None => self.answer_text(lane, ticket, pdu),
        }
    }

    /// The answer to the keys of a complete text.
    fn consider(&self, question: &[u8]) -> Result<Answer, InvalidText> {
        let mut answer = Answer { text: TextWriter::new(), send_targets: None, segment_bytes_max: None };
        for pair in text_keys::pairs(question) {
            let (name, value) = pair?;
            match Key::from_name(name) {
                Some(Key::SendTargets) if answer.send_targets.is_none() => match self.targets_named(value) {
                    Some(wanted) => answer.send_targets = Some(wanted),
                    None => answer.text.push(name, REJECT),
                },
                Some(Key::MaxRecvDataSegmentLength) => {
                    let bounds = SEGMENT_BYTES_MIN..=DATA_SEGMENT_BYTES_MAX.into();
                    match text_value::numerical(value, bounds).map(u32::try_from) {
                        Ok(Ok(bytes)) => answer.segment_bytes_max = Some(bytes),
                        _ => answer.text.push(name, REJECT),
                    }
                }
                // Declarations need no answer.
                Some(Key::InitiatorAlias | Key::NodeArchitecture) => {}
                // All other keys belong to the login.
                Some(_) => answer.text.push(name, REJECT),
                None => answer.text.push(name, NOT_UNDERSTOOD),
            }
        }
        Ok(answer)
    }

    /// The targets that a value of SendTargets names (appendix C): in a discovery session all or one; in a normal
    /// session only the session's own. The outer `None` means an invalid value.
    fn targets_named(&self, value: &str) -> Option<Option<String>> {
        let own = &self.target_name;
        match (self.is_discovery(), value) {
            (true, "All") => Some(None),
            (true, "") | (false, "All") => None,
            (false, "") => Some(Some(own.clone())),
            (false, name) if !name::is_same(name, own) => None,
            (_, name) => Some(Some(name.to_owned())),
        }
    }

    /// Answers [`Event::SendTargets`]. An answer to an abandoned exchange is dropped.
    pub fn send_targets(&mut self, _now: Instant, request: &SendTargets, records: &[TargetRecord]) {
        let Some(exchange) = self.lanes.get_mut(request.lane).and_then(|lane| lane.text.as_mut()) else {
            return;
        };
        if exchange.itt != request.itt {
            return;
        }
        let Some((header, ticket)) = exchange.waiting.take() else { return };
        exchange.answer.extend(discovery::write(records));
        if let Ok(pdu) = TextRequest::parse(&header) {
            self.answer_text(request.lane, ticket, &pdu);
        }
    }

    /// Sends as much of the answer as one PDU holds. Ends the exchange if neither side has more to send.
    fn answer_text(&mut self, lane_id: LaneId, ticket: Ticket, pdu: &TextRequest) {
        let Some(lane) = self.lanes.get_mut(lane_id) else { return self.redeem(ticket) };
        let segment_bytes_max = lane.parameters.send_segment_bytes_max as usize;
        let Some(exchange) = &mut lane.text else { return self.redeem(ticket) };
        let rest = exchange.answer.get(exchange.answered_bytes..).unwrap_or_default();
        let (text, continued) = text_keys::segments(rest, segment_bytes_max).next().unwrap_or((&[], false));
        let final_ = pdu.final_ && !continued;
        let piece = TextPiece {
            ticket,
            final_,
            continued,
            itt: exchange.itt,
            ttt: if final_ { Ttt::NONE } else { exchange.ttt },
            text: text.to_vec(),
        };
        exchange.answered_bytes += text.len();
        if final_ {
            if let Some(bytes) = exchange.segment_bytes_max {
                lane.parameters.send_segment_bytes_max = bytes;
            }
            lane.text = None;
        }
        self.push_reply(lane_id, Reply::Text(piece));
    }

    fn refuse_text(&mut self, lane: LaneId, ticket: Ticket, pdu: &TextRequest, reason: RejectReason) {
        self.drop_exchange(lane);
        self.redeem(ticket);
        // The data segment has been taken already, so only the header is returned.
        let header = TextRequest { data_segment_bytes: 0, ..*pdu }.emit();
        if let Err(fault) = self.refuse(lane, &header, reason) {
            self.events.push_back(Event::CloseLane { lane, loss: LaneLoss::Broken, fault: Some(fault) });
        }
    }

    /// Gives up a lane's exchange.
    pub(super) fn drop_exchange(&mut self, lane: LaneId) {
        let exchange = self.lanes.get_mut(lane).and_then(|lane| lane.text.take());
        if let Some((_, ticket)) = exchange.and_then(|exchange| exchange.waiting) {
            self.redeem(ticket);
        }
    }

    pub(super) fn emit_text(&mut self, lane: LaneId, piece: TextPiece) -> Option<Transmit> {
        self.redeem(piece.ticket);
        let stat_sn = self.lanes.get_mut(lane)?.status.take();
        let header = TextResponse {
            final_: piece.final_,
            continued: piece.continued,
            lun: Lun::default(),
            itt: piece.itt,
            ttt: piece.ttt,
            stat_sn,
            window: self.order.tell(),
            data_segment_bytes: u32::try_from(piece.text.len()).unwrap_or(u32::MAX),
        }
        .emit();
        let payload = if piece.text.is_empty() { Payload::None } else { Payload::Inline(piece.text) };
        Some(Transmit { header, payload })
    }
}

impl Exchange {
    fn new(itt: Itt, ttt: Ttt) -> Self {
        Self {
            itt,
            ttt,
            question: Assembler::new(REQUEST_BYTES_MAX),
            answer: Vec::new(),
            answered_bytes: 0,
            waiting: None,
            segment_bytes_max: None,
        }
    }

    /// Whether a request continues this exchange, at a time when one may.
    fn is_continued_by(&self, pdu: &TextRequest) -> bool {
        let is_addressed = pdu.ttt.is_none() || pdu.ttt == self.ttt;
        pdu.itt == self.itt && is_addressed && self.waiting.is_none()
    }

    pub(super) fn itt(&self) -> Itt {
        self.itt
    }

    /// Whether a part of the answer waits for the initiator to ask for it.
    fn is_answering(&self) -> bool {
        self.answered_bytes < self.answer.len()
    }
}
