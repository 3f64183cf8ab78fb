//! VPD page 88h, SCSI ports (SPC-4): all ports of the unit, for a command through any of them.

use crate::vital_product_data::push_port_designators;
use crate::{Disk, TargetPort};

/// The page's contents, after its header.
pub fn page(disk: &Disk) -> Vec<u8> {
    let mut page = Vec::new();
    disk.all_ports().for_each(|port| push_port(&mut page, port));
    page
}

/// A SCSI port designation descriptor. There is no initiator port.
fn push_port(page: &mut Vec<u8>, port: &TargetPort) {
    let mut designators = Vec::new();
    push_port_designators(&mut designators, port);
    page.extend([0, 0]);
    page.extend(port.relative_identifier.to_be_bytes());
    page.extend([0; 6]);
    page.extend(u16::try_from(designators.len()).unwrap_or(u16::MAX).to_be_bytes());
    page.extend(designators);
}
