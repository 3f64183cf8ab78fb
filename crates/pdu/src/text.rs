//! Text Request and Text Response (RFC 7143 §11.10, §11.11). Their text: [`crate::text_keys`].

use crate::Lun;
use crate::error::{Field, InvalidPdu};
use crate::fields::Window;
use crate::header::{FINAL_BIT, Header};
use crate::number::{CmdSn, Itt, StatSn, Ttt};
use crate::opcode::Opcode;

/// The C bit: the text continues in the next PDU.
pub(crate) const CONTINUE_BIT: u8 = 0x40;

/// The F (or T) and C bits, which must not both be set (§11.10.2, §11.12.2).
pub(crate) fn parse_continue(header: &Header) -> Result<bool, InvalidPdu> {
    let continued = header.flags() & CONTINUE_BIT != 0;
    if continued && header.is_final() {
        return Err(header.invalid(Field::Flags, header.flags().into()));
    }
    Ok(continued)
}

pub(crate) const fn emit_flags(final_: bool, continued: bool) -> u8 {
    (if final_ { FINAL_BIT } else { 0 }) | (if continued { CONTINUE_BIT } else { 0 })
}

/// A part of the initiator's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextRequest {
    /// The I bit.
    pub immediate: bool,
    /// The F bit: the initiator regards this as the last request of its exchange.
    pub final_: bool,
    /// The C bit: the text continues in the next request. Never with `final_`.
    pub continued: bool,
    /// Copied from the response that this continues.
    pub lun: Lun,
    /// Names the exchange.
    pub itt: Itt,
    /// Copied from the response that this continues; [`Ttt::NONE`] starts anew.
    pub ttt: Ttt,
    /// Its place in the command order.
    pub cmd_sn: CmdSn,
    /// Acknowledges all responses before it on this connection.
    pub exp_stat_sn: StatSn,
    /// The length of the text.
    pub data_segment_bytes: u32,
}

impl TextRequest {
    /// Parses a header.
    ///
    /// # Errors
    /// If this is another PDU, has an AHS, names no task, or is both final and continued.
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        header.expect_without_ahs(Opcode::TextRequest)?;
        Ok(Self {
            immediate: header.is_immediate(),
            final_: header.is_final(),
            continued: parse_continue(header)?,
            lun: header.lun(),
            itt: header.expect_task_tag()?,
            ttt: header.transfer_tag(),
            cmd_sn: header.cmd_sn(),
            exp_stat_sn: header.exp_stat_sn(),
            data_segment_bytes: header.data_segment_bytes(),
        })
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        let mut header = Header::of(Opcode::TextRequest);
        header.set_immediate(self.immediate);
        header.set_flags(emit_flags(self.final_, self.continued));
        header.set_data_segment_bytes(self.data_segment_bytes);
        header.set_lun(self.lun);
        header.set_task_tag(self.itt);
        header.set_transfer_tag(self.ttt);
        header.set_cmd_sn(self.cmd_sn);
        header.set_exp_stat_sn(self.exp_stat_sn);
        header
    }
}

/// A part of the target's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextResponse {
    /// The F bit: the exchange is over.
    pub final_: bool,
    /// The C bit: the text continues in the next response. Never with `final_`.
    pub continued: bool,
    /// The next request copies it.
    pub lun: Lun,
    /// The tag of the exchange, copied from the request.
    pub itt: Itt,
    /// The next request copies it; present if and only if not `final_`.
    pub ttt: Ttt,
    /// The number of this response on its connection.
    pub stat_sn: StatSn,
    /// The command window.
    pub window: Window,
    /// The length of the text.
    pub data_segment_bytes: u32,
}

impl TextResponse {
    /// Parses a header. Keeps the Target Transfer Tag of a final response as received: the initiator must ignore it
    /// (§11.10.4).
    ///
    /// # Errors
    /// If this is another PDU, has an AHS, names no task, is both final and continued, or is not final but gives no tag
    /// to continue with (§11.11.1).
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        header.expect_without_ahs(Opcode::TextResponse)?;
        let ttt = header.transfer_tag();
        if ttt.is_none() && !header.is_final() {
            return Err(header.invalid(Field::TargetTransferTag, ttt.0));
        }
        Ok(Self {
            final_: header.is_final(),
            continued: parse_continue(header)?,
            lun: header.lun(),
            itt: header.expect_task_tag()?,
            ttt,
            stat_sn: header.stat_sn(),
            window: header.window(),
            data_segment_bytes: header.data_segment_bytes(),
        })
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        let mut header = Header::of(Opcode::TextResponse);
        header.set_flags(emit_flags(self.final_, self.continued));
        header.set_data_segment_bytes(self.data_segment_bytes);
        header.set_lun(self.lun);
        header.set_task_tag(self.itt);
        header.set_transfer_tag(self.ttt);
        header.set_stat_sn(self.stat_sn);
        header.set_window(self.window);
        header
    }
}
