//! The texts of a login in both directions, each in as many PDUs as it needs (RFC 7143 §6.1, §6.2).

use super::{DATA_SEGMENT_BYTES_MAX, PDUS_MAX, TEXT_BYTES_MAX};
use pdu::{Assembler, InvalidText, TextWriter};

/// The texts of one login.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    incoming: Assembler,
    received_bytes: usize,
    received_pdus: u32,
    outgoing: Vec<u8>,
    sent_bytes: usize,
}

/// The content of a peer's PDU.
pub(super) enum Incoming {
    /// A piece of a text (C bit): the peer waits for an empty PDU before it continues.
    Piece,
    /// The peer waits for the next piece of this side's text.
    GoOn,
    /// A whole text.
    Text(Vec<u8>),
}

/// How a peer's texts break a limit or the rules of continuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    /// The text does not consist of `key=value` pairs, or is too long.
    #[error(transparent)]
    Text(#[from] InvalidText),
    /// More than [`PDUS_MAX`] PDUs.
    #[error("the login took more than {PDUS_MAX} PDUs")]
    TooManyPdus,
    /// A data segment longer than [`DATA_SEGMENT_BYTES_MAX`].
    #[error("a data segment of more than {DATA_SEGMENT_BYTES_MAX} bytes during login")]
    SegmentTooLong,
    /// Text came where an empty PDU was due, because this side's text was continued.
    #[error("text came before the other side's text was complete")]
    Interrupted,
}

impl Exchange {
    pub(super) const fn new() -> Self {
        Self {
            incoming: Assembler::new(TEXT_BYTES_MAX),
            received_bytes: 0,
            received_pdus: 0,
            outgoing: Vec::new(),
            sent_bytes: 0,
        }
    }

    /// Takes one PDU's data segment; `continued` is its C bit.
    pub(super) fn receive(&mut self, data: &[u8], continued: bool) -> Result<Incoming, ExchangeError> {
        self.received_pdus += 1;
        if self.received_pdus > PDUS_MAX {
            return Err(ExchangeError::TooManyPdus);
        }
        if data.len() > DATA_SEGMENT_BYTES_MAX as usize {
            return Err(ExchangeError::SegmentTooLong);
        }
        self.received_bytes += data.len();
        if self.received_bytes > TEXT_BYTES_MAX {
            return Err(InvalidText::TooLong { bytes_max: TEXT_BYTES_MAX }.into());
        }
        if self.is_sending() {
            let empty = data.is_empty() && !continued;
            return if empty { Ok(Incoming::GoOn) } else { Err(ExchangeError::Interrupted) };
        }
        Ok(self.incoming.push(data, continued)?.map_or(Incoming::Piece, Incoming::Text))
    }

    /// Sets the next text to send. The previous one must have been sent.
    pub(super) fn send(&mut self, text: TextWriter) {
        self.outgoing = text.into_bytes();
        self.sent_bytes = 0;
    }

    /// Whether there is more to send.
    pub(super) fn is_sending(&self) -> bool {
        self.sent_bytes < self.outgoing.len()
    }

    /// Whether the rest of the text fits one PDU.
    pub(super) fn is_last_piece(&self) -> bool {
        self.outgoing.len() - self.sent_bytes <= DATA_SEGMENT_BYTES_MAX as usize
    }

    /// The next data segment. [`Self::is_sending`] is its C bit afterwards.
    pub(super) fn next_piece(&mut self) -> Vec<u8> {
        let end = self.outgoing.len().min(self.sent_bytes + DATA_SEGMENT_BYTES_MAX as usize);
        let piece = self.outgoing[self.sent_bytes..end].to_vec();
        self.sent_bytes = end;
        piece
    }
}
