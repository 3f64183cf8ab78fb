//! SCSI Data-In: data of a read, and perhaps the status with the last of it (RFC 7143 §11.7).

use crate::Lun;
use crate::error::{Field, InvalidPdu};
use crate::fields::Window;
use crate::header::{FINAL_BIT, Header};
use crate::number::{DataSn, Itt, StatSn, Ttt};
use crate::opcode::Opcode;
use crate::residual::Residual;

/// The status in the last Data-In of a command: the S bit and the fields valid with it (§11.7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollapsedStatus {
    /// The number of this response on its connection.
    pub stat_sn: StatSn,
    /// The SCSI status. A target sends only good statuses this way; an initiator must accept any.
    pub status: u8,
    /// The residual of the transfer.
    pub residual: Residual,
}

/// One part of a read's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataIn {
    /// The unit; meaningful if `acknowledge` is set.
    pub lun: Lun,
    /// The task that the data belongs to.
    pub itt: Itt,
    /// The tag that a DataACK must repeat; meaningful if `acknowledge` is set, else [`Ttt::NONE`].
    pub ttt: Ttt,
    /// The last PDU of a sequence.
    pub final_: bool,
    /// The A bit: the target asks for a DataACK (§11.7.2).
    pub acknowledge: bool,
    /// The end of the command; only with `final_`.
    pub status: Option<CollapsedStatus>,
    /// The command window.
    pub window: Window,
    /// The number of this PDU in its command.
    pub data_sn: DataSn,
    /// The offset of the data, in bytes from the start of the command's data.
    pub buffer_offset: u32,
    /// The length of the data.
    pub data_segment_bytes: u32,
}

const ACKNOWLEDGE_BIT: u8 = 0x40;
const OVERFLOW_BIT: u8 = 0x04;
const UNDERFLOW_BIT: u8 = 0x02;
const STATUS_BIT: u8 = 0x01;
const STATUS: usize = 3;
const DATA_SN: usize = 36;
const BUFFER_OFFSET: usize = 40;
const RESIDUAL_COUNT: usize = 44;

impl DataIn {
    /// Parses a header.
    ///
    /// # Errors
    /// If this is another PDU, has an AHS, names no task, has a status without F, claims overflow and underflow at
    /// once, or asks for a DataACK without a tag for it.
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        header.expect_without_ahs(Opcode::DataIn)?;
        let ttt = header.transfer_tag();
        let acknowledge = header.flags() & ACKNOWLEDGE_BIT != 0;
        if acknowledge && ttt.is_none() {
            return Err(header.invalid(Field::TargetTransferTag, ttt.0));
        }
        Ok(Self {
            lun: header.lun(),
            itt: header.expect_task_tag()?,
            ttt,
            final_: header.is_final(),
            acknowledge,
            status: parse_status(header)?,
            window: header.window(),
            data_sn: DataSn(header.u32_at(DATA_SN)),
            buffer_offset: header.u32_at(BUFFER_OFFSET),
            data_segment_bytes: header.data_segment_bytes(),
        })
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        let mut header = Header::of(Opcode::DataIn);
        let mut flags = if self.final_ { FINAL_BIT } else { 0 };
        if self.acknowledge {
            flags |= ACKNOWLEDGE_BIT;
        }
        if let Some(end) = self.status {
            flags |= STATUS_BIT | end.residual.flags(OVERFLOW_BIT, UNDERFLOW_BIT);
            header.set_u8_at(STATUS, end.status);
            header.set_stat_sn(end.stat_sn);
            header.set_u32_at(RESIDUAL_COUNT, end.residual.count());
        }
        header.set_flags(flags);
        header.set_data_segment_bytes(self.data_segment_bytes);
        header.set_lun(self.lun);
        header.set_task_tag(self.itt);
        header.set_transfer_tag(self.ttt);
        header.set_window(self.window);
        header.set_u32_at(DATA_SN, self.data_sn.0);
        header.set_u32_at(BUFFER_OFFSET, self.buffer_offset);
        header
    }
}

fn parse_status(header: &Header) -> Result<Option<CollapsedStatus>, InvalidPdu> {
    let flags = header.flags();
    if flags & STATUS_BIT == 0 {
        return Ok(None);
    }
    let residual = Residual::from_wire(
        flags & OVERFLOW_BIT != 0,
        flags & UNDERFLOW_BIT != 0,
        header.u32_at(RESIDUAL_COUNT),
    );
    match residual {
        Some(residual) if header.is_final() => {
            Ok(Some(CollapsedStatus { stat_sn: header.stat_sn(), status: header.u8_at(STATUS), residual }))
        }
        _ => Err(header.invalid(Field::Flags, flags.into())),
    }
}
