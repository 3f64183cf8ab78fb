//! The application client's side of a disk (SAM-5 §4.5): CDBs out; sense and parameter data in.
//!
//! No parser here trusts the device: each accepts any bytes, and returns `None` if a field that it needs is missing.

mod block_limits;
mod capacity;
mod command;
mod device_identification;
mod lba_status;
mod lun_list;
mod mode_parameters;
mod reservation;
mod sense_data;
mod standard_inquiry;
mod target_port_groups;

pub use block_limits::{BlockLimits, BlockProvisioning};
pub use capacity::Capacity;
pub use command::{
    CDB_BYTES, CdbBytes, compare_and_write, get_lba_status, inquiry, inquiry_page, mode_sense_caching, page,
    read_10, read_16, read_capacity_10, read_capacity_16, report_luns, report_target_port_groups,
    synchronize_cache_10, synchronize_cache_16, test_unit_ready, unmap, unmap_parameter_list, with_blocks,
    write_10, write_16, write_same_16,
};
pub use device_identification::{Association, Designator, DesignatorKind, DeviceIdentification};
pub use lba_status::LbaStatus;
pub use lun_list::lun_list;
pub use mode_parameters::ModeParameters;
pub use reservation::{
    ReadReservation, RegisteredNexus, ReservationDescriptor, can_persist, held_reservation,
    persistent_reserve_in, persistent_reserve_out, registered_nexuses,
};
pub use sense_data::SenseData;
pub use standard_inquiry::StandardInquiry;
pub use target_port_groups::{AsymmetricAccessState, TargetPortGroup, target_port_groups};

/// The bytes at `at`; `None` if some are missing.
fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The 16-bit number at `at`.
fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_be_bytes)
}

/// The 32-bit number at `at`.
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_be_bytes)
}

/// The 64-bit number at `at`.
fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_be_bytes)
}

/// Printable ASCII of a fixed field, without the padding around it.
fn text(bytes: &[u8]) -> String {
    let printable =
        bytes.iter().map(|byte| if (b' '..=b'~').contains(byte) { char::from(*byte) } else { ' ' });
    printable.collect::<String>().trim().to_owned()
}
