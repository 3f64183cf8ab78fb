//! REPORT TARGET PORT GROUPS (SPC-4): the ports of the unit, and their access states.
//!
//! Asymmetric logical unit access is implicit: only the target could change it, and it never does. Every group is
//! active/optimized.

use std::collections::BTreeMap;

use crate::cdb::Cdb;
use crate::{Disk, FieldPointer, Outcome, Sense, Step};

const LENGTH_BYTES: usize = 4;
const EXTENDED_HEADER: u8 = 0b001;

/// Begins the command, which only a disk with known ports has.
pub fn begin(disk: &Disk, cdb: &Cdb) -> Result<Step, Sense> {
    let mut data = vec![0; LENGTH_BYTES];
    match cdb.u8::<1>() >> 5 {
        0 => {}
        // RETURN DATA FORMAT, and an IMPLICIT TRANSITION TIME of zero: there is no transition.
        EXTENDED_HEADER => data.extend([EXTENDED_HEADER << 4, 0, 0, 0]),
        _ => return Err(Sense::invalid_field_in_cdb(FieldPointer::cdb_bit(1, 7))),
    }
    for (group, ports) in groups(disk) {
        push_group(&mut data, group, &ports);
    }
    let length = u32::try_from(data.len() - LENGTH_BYTES).unwrap_or(u32::MAX);
    data[..LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
    Ok(Step::Done(Outcome::parameter_data(data, cdb.u32::<6>())))
}

/// Relative target port identifiers by target port group, which is the iSCSI target portal group.
fn groups(disk: &Disk) -> BTreeMap<u16, Vec<u16>> {
    let mut groups: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
    for port in disk.all_ports() {
        groups.entry(port.portal_group_tag).or_default().push(port.relative_identifier);
    }
    groups
}

/// TARGET PORT COUNT has one byte; an iSCSI portal group is one port.
fn push_group(data: &mut Vec<u8>, group: u16, ports: &[u16]) {
    const ACTIVE_OPTIMIZED: u8 = 0x0;
    /// `AO_SUP`: the unit never enters another state.
    const ACTIVE_OPTIMIZED_SUPPORTED: u8 = 0x01;
    let ports = ports.get(..usize::from(u8::MAX)).unwrap_or(ports);
    let count = u8::try_from(ports.len()).unwrap_or(u8::MAX);
    data.extend([ACTIVE_OPTIMIZED, ACTIVE_OPTIMIZED_SUPPORTED]);
    data.extend(group.to_be_bytes());
    data.extend([0, 0, 0, count]);
    for port in ports {
        data.extend([0, 0]);
        data.extend(port.to_be_bytes());
    }
}
