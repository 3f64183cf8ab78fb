//! Disks to send commands to, and what is expected of them.

use ropewalk_scsi::{
    AdditionalSense, BlockLength, Blocks, Disk, FieldPointer, Identity, Limits, Outcome, PhysicalExponent,
    Provisioning, Sense, SenseKey, Step, TargetPort, Threshold,
};

pub fn full() -> Disk {
    Disk {
        identity: Identity::from_name("iqn.2026-01.org.example:disk/0"),
        target_port: None,
        other_ports: vec![],
        block: BlockLength::B512,
        physical_exponent: PhysicalExponent::default(),
        blocks: Blocks(100_000),
        removable: false,
        read_only: false,
        write_cache: true,
        provisioning: Provisioning::Full,
        limits: Limits::default(),
    }
}

pub fn thin() -> Disk {
    Disk {
        provisioning: Provisioning::Thin { zeroes: true, granularity: Blocks(8), threshold: None },
        ..full()
    }
}

/// Thin, of 2^20 blocks: initiators are told when no more than a quarter of them can still be allocated.
pub fn watched() -> Disk {
    let blocks = Blocks(1 << 20);
    let threshold = Threshold::from_used_percent(75, blocks);
    Disk {
        blocks,
        provisioning: Provisioning::Thin { zeroes: true, granularity: Blocks(8), threshold },
        ..full()
    }
}

/// Seen through ports in two portal groups.
pub fn ported() -> Disk {
    let other = TargetPort { portal_group_tag: 2, relative_identifier: 4, ..port() };
    Disk { target_port: Some(port()), other_ports: vec![other], ..thin() }
}

pub fn removable() -> Disk {
    Disk { removable: true, ..full() }
}

pub fn read_only() -> Disk {
    Disk { read_only: true, ..thin() }
}

pub fn port() -> TargetPort {
    TargetPort {
        target_name: "iqn.2026-01.org.example:disk".to_owned(),
        portal_group_tag: 1,
        relative_identifier: 3,
    }
}

/// A CDB of the given bytes at the given places, with zeroes between and after.
pub fn cdb(length: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; length];
    for (at, field) in fields {
        bytes[*at..at + field.len()].copy_from_slice(field);
    }
    bytes
}

/// The parameter data of a command that ends with GOOD.
pub fn data(step: Step) -> Vec<u8> {
    match step {
        Step::Done(Outcome::Good(data)) => data,
        other => panic!("expected parameter data, got {other:?}"),
    }
}

/// The sense data of a command that is refused.
pub fn refusal(step: Step) -> Sense {
    match step {
        Step::Done(Outcome::CheckCondition(sense)) => sense,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

pub fn illegal(additional: AdditionalSense) -> Sense {
    Sense::new(SenseKey::IllegalRequest, additional)
}

pub fn out_of_range(byte: u16) -> Sense {
    illegal(AdditionalSense::LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE).at(FieldPointer::cdb(byte))
}

pub fn write_protected() -> Sense {
    Sense::new(SenseKey::DataProtect, AdditionalSense::WRITE_PROTECTED)
}
