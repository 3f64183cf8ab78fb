//! Text Requests: SendTargets, in discovery and normal sessions (RFC 7143 §11.10, §11.11, appendix C).

use super::ask::Ask;
use super::data_sequence::Arrival;
use super::event::{Event, SendTargets, SendTargetsError};
use super::lane::Phase;
use super::outgoing::Request;
use super::session::Session;
use crate::peer_fault::Question;
use crate::seam::Fault;
use pdu::{
    Assembler, CmdSn, Instant, Itt, LaneId, Lun, RejectReason, StatSn, TextRequest, TextResponse, TextWriter,
    Ttt,
};

/// The longest answer that is accepted. A target with its addresses needs some 300 bytes, so this holds thousands of
/// targets.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// The most responses in one answer: several times what [`TEXT_BYTES_MAX`] needs at the default segment length of 8192
/// bytes. This limit ends an exchange of empty responses.
const RESPONSES_MAX: u32 = 1024;

/// The longest iSCSI name (§4.2.7.1).
const NAME_BYTES_MAX: usize = 223;

/// The purpose of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    SendTargets,
    /// The target asked to negotiate, and must be given the opportunity (§11.9.1). This side proposes nothing.
    Opportunity,
}

/// An exchange that has begun and not ended.
#[derive(Debug)]
pub(super) struct TextExchange {
    itt: Itt,
    purpose: Purpose,
    /// The last request, kept to be sent again.
    pub(super) request: TextRequest,
    pub(super) data: Vec<u8>,
    pub(super) ask: Ask,
    answer: Assembler,
    responses: u32,
}

impl Session {
    /// Asks the target for names and addresses of targets; [`Event::SendTargets`] or [`Event::SendTargetsRefused`]
    /// follows.
    ///
    /// # Errors
    /// [`SendTargetsError`] says why nothing was sent.
    pub fn send_targets(
        &mut self,
        now: Instant,
        lane: LaneId,
        which: &SendTargets,
    ) -> Result<(), SendTargetsError> {
        let responses = self.lanes.of_responses(lane).and_then(|responses| self.lanes.get(responses));
        let place = responses.filter(|place| place.phase == Phase::Open);
        let place = place.ok_or(SendTargetsError::Closed)?;
        if place.text.is_some() {
            return Err(SendTargetsError::Busy);
        }
        let value = match which {
            SendTargets::All => "All",
            SendTargets::Own => "",
            SendTargets::Named(name) if name.len() > NAME_BYTES_MAX => {
                return Err(SendTargetsError::NameTooLong);
            }
            SendTargets::Named(name) => name,
        };
        let mut text = TextWriter::new();
        text.push("SendTargets", value);
        self.begin_text(now, lane, Purpose::SendTargets, text.into_bytes());
        Ok(())
    }

    /// Gives the target the opportunity to negotiate that it asked for, unless an exchange is in progress.
    pub(super) fn offer_negotiation(&mut self, now: Instant, lane: LaneId) {
        if self.lanes.get(lane).is_some_and(|lane| lane.text.is_none() && lane.phase == Phase::Open) {
            self.begin_text(now, lane, Purpose::Opportunity, Vec::new());
        }
    }

    fn begin_text(&mut self, now: Instant, lane: LaneId, purpose: Purpose, text: Vec<u8>) {
        let itt = self.request_tags.take();
        let cmd_sn = self.window.current();
        let answer = Assembler::new(TEXT_BYTES_MAX);
        let request = request(itt, cmd_sn, Lun::default(), Ttt::NONE, &text);
        let ask = Ask::new(now);
        let (requests, responses) = (self.lanes.of_requests(lane), self.lanes.of_responses(lane));
        if let Some(lane) = responses.and_then(|responses| self.lanes.get_mut(responses)) {
            let data = text.clone();
            lane.text = Some(TextExchange { itt, purpose, request, data, ask, answer, responses: 0 });
        }
        if let Some(lane) = self.lanes.get_mut(requests) {
            lane.push(Request::Text(request, text));
        }
    }

    pub(super) fn receive_text(
        &mut self,
        now: Instant,
        lane: LaneId,
        pdu: &TextResponse,
        data: &[u8],
    ) -> Result<(), Fault> {
        if self.receive_status(lane, pdu.stat_sn)? == Arrival::Repeated {
            return Ok(());
        }
        let cmd_sn = self.window.current();
        let requests = self.lanes.of_requests(lane);
        let Some(place) = self.lanes.get_mut(lane) else { return Ok(()) };
        let Some(exchange) = place.text.as_mut().filter(|exchange| exchange.itt == pdu.itt) else {
            return self.late_answer(Question::Text);
        };
        exchange.responses += 1;
        let answer =
            exchange.answer.push(data, !pdu.final_).map_err(|_| Fault::Limit("the text of an answer"))?;
        if exchange.responses > RESPONSES_MAX {
            return Err(Fault::Limit("the responses that make up an answer"));
        }
        let Some(text) = answer else {
            let request = request(pdu.itt, cmd_sn, pdu.lun, pdu.ttt, &[]);
            (exchange.request, exchange.ask) = (request, Ask::new(now));
            exchange.data.clear();
            if let Some(asked_on) = self.lanes.get_mut(requests) {
                asked_on.push(Request::Text(request, Vec::new()));
            }
            return Ok(());
        };
        if exchange.purpose == Purpose::SendTargets {
            self.events.push_back(Event::SendTargets { lane: requests, text });
        }
        place.text = None;
        Ok(())
    }

    pub(super) fn text_rejected(&mut self, lane: LaneId, itt: Itt, reason: RejectReason) {
        let Some(place) = self.lanes.get_mut(lane) else { return };
        let Some(exchange) = place.text.take_if(|exchange| exchange.itt == itt) else { return };
        if exchange.purpose == Purpose::SendTargets {
            let lane = self.lanes.of_requests(lane);
            self.events.push_back(Event::SendTargetsRefused { lane, reason });
        }
    }
}

/// A request with the F bit. It is immediate, so that a closed window does not delay it.
fn request(itt: Itt, cmd_sn: CmdSn, lun: Lun, ttt: Ttt, text: &[u8]) -> TextRequest {
    TextRequest {
        immediate: true,
        final_: true,
        continued: false,
        lun,
        itt,
        ttt,
        cmd_sn,
        // Filled in when the PDU is pulled.
        exp_stat_sn: StatSn::default(),
        // A name and its key fit the shortest MaxRecvDataSegmentLength, 512 bytes (§13.12).
        data_segment_bytes: u32::try_from(text.len()).unwrap_or(u32::MAX),
    }
}
