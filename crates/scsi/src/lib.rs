//! A SCSI disk: CDBs in, block operations and status out (SAM-5, SPC-4, SBC-3).
//!
//! [`Disk`] describes one logical unit; it holds no state and does no I/O. [`Disk::begin`] takes a command descriptor
//! block and returns the [`Step`] that carries it out: either the finished [`Outcome`], or a block operation that the
//! caller performs and then turns into an [`Outcome`]. Bulk data never passes through this crate; the few bytes of a
//! parameter list do ([`Disk::parameter`]).
//!
//! The owner of the logical unit keeps the state that initiators share (unit attentions, task sets, reservations).
//!
//! References name the standards' commands, pages and fields in the standards' spelling, because clause numbers change
//! from revision to revision.

#![forbid(unsafe_code)]

mod additional_sense;
mod cdb;
pub mod client;
mod compare_and_write;
mod designator;
mod disk;
mod extended_copy;
mod get_lba_status;
mod inquiry;
mod log_sense;
mod logical_block;
mod medium_access;
mod mode_page;
mod mode_select;
mod mode_sense;
mod mode_settings;
mod operation_code;
mod or_write;
mod outcome;
mod persistent_reserve_in;
mod persistent_reserve_out;
mod pre_fetch;
mod prevent_allow_medium_removal;
mod provisioning_log;
mod read;
mod read_capacity;
mod read_defect_data;
mod receive_copy_results;
mod report_luns;
mod report_supported_operation_codes;
mod report_target_port_groups;
mod request_sense;
mod reservation;
mod reservation_restriction;
mod reserve;
mod scsi_ports;
mod sense;
mod start_stop_unit;
mod status;
mod step;
mod synchronize_cache;
mod test_unit_ready;
mod third_party_copy;
mod threshold;
mod transport_id;
mod unit_absent;
mod unmap;
mod verify;
mod vital_product_data;
mod write;
mod write_and_verify;
mod write_same;

pub use additional_sense::AdditionalSense;
pub use designator::{Identity, Naa, TargetPort};
pub use disk::{Disk, Limits, PhysicalExponent, Provisioning};
pub use extended_copy::{CopyRanges, CopySegment, CopyTarget, ExtendedCopy};
pub use get_lba_status::{GetLbaStatus, ProvisioningStatus};
pub use logical_block::{BlockLength, Blocks, Extent, Lba};
pub use medium_access::MediumAccess;
pub use mode_sense::ModeSense;
pub use mode_settings::{ModeSelect, ModeSettings};
pub use outcome::Outcome;
pub use persistent_reserve_in::{
    HeldReservation, PersistentReserveIn, Registrant, ReservationStatus, ReserveIn,
};
pub use persistent_reserve_out::{PersistentReserveOut, Register, RegisterAndMove, ReserveAction};
pub use provisioning_log::ProvisioningLog;
pub use receive_copy_results::{CopyStatus, HeldCopies, ReceiveCopyStatus};
pub use report_luns::ReportLuns;
pub use request_sense::RequestSense;
pub use reservation::{ReservationKey, ReservationType};
pub use reservation_restriction::Restriction;
pub use sense::{FieldPointer, Sense, SenseFormat, SenseKey};
pub use status::Status;
pub use step::{Compare, Pattern, Step};
pub use threshold::Threshold;
pub use transport_id::TransportId;
pub use unit_absent::begin_absent;
