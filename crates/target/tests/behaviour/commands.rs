//! Commands reach the disk and come back, whatever is behind the LUN.

use crate::world::*;
use ropewalk_target::StartError;

/// Longer than one piece of a read, and than one burst.
const LONG: usize = 5 << 20;

const CHECK_CONDITION: u8 = scsi::Status::CheckCondition.code();

fn what_is_written_is_read_back(lun: &str) {
    let world = World::with_lun(lun);
    let mut peer = world.initiator(1);
    for (lba, bytes) in [(0, BLOCK), (7, 9 * BLOCK), (4096, LONG)] {
        let data = pattern(bytes);
        assert_eq!(peer.write(lba, &data).status, 0);
        let answer = peer.read(lba, bytes / BLOCK);
        assert_eq!(answer.status, 0);
        assert!(answer.data == data, "{bytes} bytes at {lba}");
    }
    assert_eq!(peer.command(&[0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[], 0).status, 0);
    drop(peer);
    world.wait_for(|counters| counters.buffer_bytes == 0);
}

#[test]
fn what_is_written_to_memory_is_read_back() {
    what_is_written_is_read_back("0=ram:64M");
}

#[test]
fn what_is_written_to_a_file_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    what_is_written_is_read_back(&format!("0=file:{}/disk,size=64M,thin", folder.path().display()));
}

#[test]
fn what_is_written_to_a_slow_and_forgetful_disk_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    what_is_written_is_read_back(&format!("0=file:{path}/disk,size=64M,volatile,rate=512M,latency=1ms"));
}

#[test]
fn a_read_only_unit_takes_no_writes_whatever_is_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("disk");
    std::fs::File::create(&file).unwrap().set_len(1 << 20).unwrap();
    for lun in ["0=ram:64M,ro".to_owned(), format!("0=file:{},ro", file.display())] {
        let world = World::with_lun(&lun);
        let mut peer = world.initiator(1);
        assert_eq!(peer.write(0, &pattern(BLOCK)).status, CHECK_CONDITION, "{lun}");
        assert_eq!(peer.read(0, 1).data, vec![0; BLOCK]);
    }
}

#[test]
fn a_restarted_server_serves_the_same_disk_under_the_same_identity() {
    let folder = tempfile::tempdir().unwrap();
    let lun = format!("0=file:{}/disk,size=64M", folder.path().display());
    let mut seen = Vec::new();
    for _ in 0..2 {
        let world = World::with_lun(&lun);
        let mut peer = world.initiator(1);
        let identity = peer.command(&[0x12, 1, 0x83, 0, 255, 0], &[], 255).data;
        let content = peer.read(3, 1).data;
        assert_eq!(peer.write(3, &pattern(BLOCK)).status, 0);
        seen.push((identity, content));
        drop(peer);
        world.shut_down(std::time::Duration::ZERO);
    }
    assert_eq!(seen[0].0, seen[1].0);
    assert_eq!(seen[1].1, pattern(BLOCK));
}

#[test]
fn compare_and_write_writes_only_over_what_it_expects() {
    let world = World::with_lun("0=ram:64M");
    let mut peer = world.initiator(1);
    let mut cdb = [0; 16];
    (cdb[0], cdb[9], cdb[13]) = (0x89, 5, 1);
    let halves = |old: u8, new: u8| [[old; BLOCK], [new; BLOCK]].concat();
    assert_eq!(peer.command(&cdb, &halves(0, 1), 0).status, 0);
    let miscompare = peer.command(&cdb, &halves(0, 2), 0);
    assert_eq!((miscompare.status, miscompare.additional()), (2, (0x1d, 0)));
    assert_eq!(peer.read(5, 1).data, [1; BLOCK]);
}

/// A server whose LUN 0 is a file, with these options.
fn file_lun(folder: &tempfile::TempDir, options: &str) -> Result<World, StartError> {
    let lun = format!("0=file:{},{options}", folder.path().join("disk").display());
    World::start(config(vec![target(TARGET, &[&lun])]))
}

/// USED LBA MAPPING RESOURCE COUNT of the logical block provisioning log page.
fn used_sets(peer: &mut Peer) -> u32 {
    let page = peer.command(&[0x4d, 0, 0x4c, 0, 0, 0, 2, 0, 64, 0], &[], 64).data;
    u32::from_be_bytes([page[8], page[9], page[10], page[11]])
}

#[test]
fn a_thin_file_tells_how_much_of_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let world = file_lun(&folder, "size=8M,thin,threshold=75%").unwrap();
    let mut peer = world.initiator(1);
    assert_eq!(used_sets(&mut peer), 0);
    assert_eq!(peer.write(0, &[1; 1 << 20]).status, 0);
    assert_eq!(peer.command(&[0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[], 0).status, 0);
    // Of the 1024 threshold sets of this file, an eighth.
    assert!(used_sets(&mut peer) >= 128);
}

#[test]
fn only_a_thin_lun_has_a_threshold() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(file_lun(&folder, "size=8M,threshold=75%"), Err(StartError::Lun(_))));
}
