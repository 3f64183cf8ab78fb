//! Commands to a disk, with parameter lists.

use scsi::{
    BlockLength, Blocks, Disk, Extent, Identity, Limits, Outcome, PhysicalExponent, Provisioning, Step,
};

/// Commands are 6 to 16 bytes long, with AHS up to 260 (SPC-4).
const CDB_BYTES_MAX: usize = 260;

/// The first byte describes the disk, the second is the length of a CDB; the CDB and its parameter list follow.
///
/// # Panics
/// If the disk does, or lets a command do more than it may.
pub fn cdb_with_data(input: &[u8]) {
    let [settings, cdb_bytes, rest @ ..] = input else { return };
    let disk = disk(*settings);
    let (cdb, list) = rest.split_at(rest.len().min(usize::from(*cdb_bytes)).min(CDB_BYTES_MAX));
    let step = disk.begin(cdb);
    check(&disk, &step);
    let step = step.with_data_out(list.len() as u64, disk.block);
    check(&disk, &step);
    if let Step::Parameter { bytes } = step {
        let list = &list[..list.len().min(bytes as usize)];
        let then = disk.parameter(cdb, list);
        assert!(!matches!(then, Step::Parameter { .. }), "a parameter list is asked for once");
        check(&disk, &then);
    }
    check(&disk, &scsi::begin_absent(cdb));
}

/// Whatever a command asks for, it is within the disk, within its limits, and no more than the answer may hold.
fn check(disk: &Disk, step: &Step) {
    let within = |extent: &Extent| {
        let end = extent.lba.0.checked_add(extent.blocks.0);
        assert!(end.is_some_and(|end| end <= disk.blocks.0), "{step:?} leaves the disk");
    };
    let transfer = |extent: &Extent| {
        within(extent);
        let bytes = disk.block.times(extent.blocks);
        assert!(bytes <= disk.limits.transfer_bytes_max.into(), "{step:?} transfers too much");
    };
    match step {
        Step::Read { extent, .. }
        | Step::Write { extent, .. }
        | Step::WriteAndVerify { extent, .. }
        | Step::OrWrite { extent, .. } => transfer(extent),
        Step::CompareAndWrite { extent, .. } => {
            transfer(extent);
            assert!(extent.blocks.0 <= disk.limits.compare_and_write_blocks_max.into());
        }
        Step::Verify { extent, .. } | Step::Flush { extent, .. } | Step::PreFetch { extent, .. } => {
            within(extent);
        }
        Step::WriteSame { extent, .. } => {
            within(extent);
            assert!(extent.blocks <= disk.limits.write_same_blocks_max);
        }
        Step::Unmap(extents) => {
            extents.iter().for_each(within);
            assert!(extents.len() <= disk.limits.unmap_descriptors_max as usize);
        }
        Step::GetLbaStatus(request) => {
            within(&request.extent);
            let _ = request.respond([]);
        }
        Step::ReportLuns(request) => drop(request.respond([0, 1 << 48])),
        Step::RequestSense(request) => drop(request.respond(None)),
        Step::Done(Outcome::CheckCondition(sense)) => {
            let _ = sense.to_fixed();
        }
        // The rest names no block.
        _ => {}
    }
    let writes = matches!(
        step,
        Step::Write { .. }
            | Step::WriteAndVerify { .. }
            | Step::OrWrite { .. }
            | Step::CompareAndWrite { .. }
            | Step::WriteSame { .. }
            | Step::Unmap(_)
    );
    assert!(!(writes && disk.read_only), "{step:?} on a disk that cannot be written");
}

/// Every kind of disk.
fn disk(settings: u8) -> Disk {
    let block = if settings & 1 == 0 { BlockLength::B512 } else { BlockLength::B4096 };
    let provisioning = match settings & 2 {
        0 => Provisioning::Full,
        _ => Provisioning::Thin { zeroes: settings & 4 == 0, granularity: Blocks(8), threshold: None },
    };
    Disk {
        identity: Identity::from_name("iqn.2026-11.org.example:disk/0"),
        target_port: None,
        other_ports: Vec::new(),
        block,
        physical_exponent: PhysicalExponent::default(),
        blocks: if settings & 8 == 0 { Blocks(100_000) } else { Blocks(u64::MAX >> 12) },
        removable: settings & 64 != 0,
        read_only: settings & 16 != 0,
        write_cache: settings & 32 != 0,
        provisioning,
        limits: Limits::default(),
    }
}
