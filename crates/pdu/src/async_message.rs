//! Asynchronous Message: the target reports an event (RFC 7143 §11.9).

use crate::Lun;
use crate::error::InvalidPdu;
use crate::fields::Window;
use crate::header::{FINAL_BIT, Header};
use crate::number::{Cid, Itt, StatSn};
use crate::opcode::Opcode;

/// The event (§11.9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AsyncEvent {
    /// A SCSI event at the message's unit, described by its sense data.
    Scsi,
    /// The target asks for the logout of this connection.
    LogoutRequest {
        /// The longest time until the logout.
        seconds_max: u16,
    },
    /// The target is about to drop a connection.
    ConnectionDrop {
        /// The connection to be dropped (Parameter1).
        cid: Cid,
        /// Time2Wait: the time before a reconnect.
        wait_seconds: u16,
        /// Time2Retain: the time after that for which the target keeps the tasks.
        retain_seconds: u16,
    },
    /// The target is about to drop all connections of the session.
    SessionDrop {
        /// Time2Wait: the time before a reconnect.
        wait_seconds: u16,
        /// Time2Retain: the time after that for which the target keeps the tasks.
        retain_seconds: u16,
    },
    /// The target asks to negotiate: it waits for a Text Request.
    NegotiationRequest {
        /// The longest time until the Text Request.
        seconds_max: u16,
    },
    /// All tasks at the message's unit are being terminated.
    TaskTermination,
    /// Vendor-specific (248 and above) or unassigned.
    Other {
        /// AsyncEvent, as on the wire (§11.9.1).
        event: u8,
        /// AsyncVCode, which the vendor defines (§11.9.2).
        vendor_code: u8,
        /// Parameter1 to Parameter3.
        parameters: [u16; 3],
    },
}

impl AsyncEvent {
    const fn from_wire(event: u8, vendor_code: u8, parameters: [u16; 3]) -> Self {
        let [p1, p2, p3] = parameters;
        match event {
            0 => Self::Scsi,
            1 => Self::LogoutRequest { seconds_max: p3 },
            2 => Self::ConnectionDrop { cid: Cid(p1), wait_seconds: p2, retain_seconds: p3 },
            3 => Self::SessionDrop { wait_seconds: p2, retain_seconds: p3 },
            4 => Self::NegotiationRequest { seconds_max: p3 },
            5 => Self::TaskTermination,
            event => Self::Other { event, vendor_code, parameters },
        }
    }

    const fn wire(self) -> (u8, u8, [u16; 3]) {
        match self {
            Self::Scsi => (0, 0, [0; 3]),
            Self::LogoutRequest { seconds_max } => (1, 0, [0, 0, seconds_max]),
            Self::ConnectionDrop { cid, wait_seconds, retain_seconds } => {
                (2, 0, [cid.0, wait_seconds, retain_seconds])
            }
            Self::SessionDrop { wait_seconds, retain_seconds } => (3, 0, [0, wait_seconds, retain_seconds]),
            Self::NegotiationRequest { seconds_max } => (4, 0, [0, 0, seconds_max]),
            Self::TaskTermination => (5, 0, [0; 3]),
            Self::Other { event, vendor_code, parameters } => (event, vendor_code, parameters),
        }
    }
}

/// An event at the target. Its data segment is a [`SenseSegment`](crate::SenseSegment).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncMessage {
    /// The kind of event, with its parameters.
    pub event: AsyncEvent,
    /// The unit, for events of one.
    pub lun: Lun,
    /// Advanced by this message.
    pub stat_sn: StatSn,
    /// The command window.
    pub window: Window,
    /// The length of the sense segment.
    pub data_segment_bytes: u32,
}

const EVENT: usize = 36;
const VENDOR_CODE: usize = 37;
const PARAMETERS: [usize; 3] = [38, 40, 42];

impl AsyncMessage {
    /// Parses a header.
    ///
    /// # Errors
    /// If this is another PDU or has an AHS.
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        header.expect_without_ahs(Opcode::AsyncMessage)?;
        let parameters = PARAMETERS.map(|offset| header.u16_at(offset));
        Ok(Self {
            event: AsyncEvent::from_wire(header.u8_at(EVENT), header.u8_at(VENDOR_CODE), parameters),
            lun: header.lun(),
            stat_sn: header.stat_sn(),
            window: header.window(),
            data_segment_bytes: header.data_segment_bytes(),
        })
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        let mut header = Header::of(Opcode::AsyncMessage);
        header.set_flags(FINAL_BIT);
        header.set_data_segment_bytes(self.data_segment_bytes);
        header.set_lun(self.lun);
        header.set_task_tag(Itt::NONE);
        header.set_stat_sn(self.stat_sn);
        header.set_window(self.window);
        let (event, vendor_code, parameters) = self.event.wire();
        header.set_u8_at(EVENT, event);
        header.set_u8_at(VENDOR_CODE, vendor_code);
        for (offset, parameter) in PARAMETERS.into_iter().zip(parameters) {
            header.set_u16_at(offset, parameter);
        }
        header
    }
}
