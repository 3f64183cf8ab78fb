//! Sessions meet: reinstatement, resets, added connections, the end.

use crate::world::*;
use pdu::TaskManagementOutcome;
use pdu::{
    AsyncEvent, Cid, InitiatorPdu, Itt, LoginRequest, LoginStatus, LogoutOutcome, TargetPdu,
    TaskManagementFunction, Tsih,
};
use rustix::fs::{MemfdFlags, SealFlags};
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

const POWER_ON: (u8, u8) = (0x29, 0x00);
const NEXUS_LOST: (u8, u8) = (0x29, 0x07);
const COMMANDS_CLEARED_BY_PROTOCOL_EVENT: (u8, u8) = (0x47, 0x7f);
const COMMANDS_CLEARED_BY_ANOTHER: (u8, u8) = (0x2f, 0x00);
const UNIT_RESET: (u8, u8) = (0x29, 0x03);

/// A write that has begun and whose data is not sent.
fn begin_write(peer: &mut Peer) {
    let command = peer.next_command(0, &read_write_10(0x2a, 0, 8), 8 * BLOCK, 0);
    peer.send(&InitiatorPdu::ScsiCommand(command), &[]);
    assert!(matches!(peer.receive().unwrap().0, TargetPdu::R2t(_)));
}

#[test]
fn a_second_login_of_the_same_identity_takes_the_place_of_the_first() {
    let world = World::with_lun("0=ram:1M");
    let mut old = world.initiator(1);
    let mut new = world.connect();
    new.login(TARGET, 1).unwrap();
    old.expect_closed();
    let told = new.command(&[0], &[], 0);
    assert_eq!((told.status, told.additional()), (2, NEXUS_LOST));
    assert_eq!(new.command(&[0], &[], 0).status, 0);
    world.wait_for(|counters| counters.sessions == 1);
}

#[test]
fn an_initiator_that_hangs_up_right_after_its_logout_has_lost_no_nexus() {
    let world = World::with_lun("0=ram:1M");
    let mut peer = world.initiator(1);
    peer.send_logout();
    drop(peer);
    world.wait_for(|counters| counters.sessions == 0);
    let mut again = world.connect();
    again.login(TARGET, 1).unwrap();
    assert_eq!(again.command(&[0], &[], 0).additional(), POWER_ON);
}

#[test]
fn a_reinstated_initiator_learns_that_its_commands_were_lost() {
    let world = World::with_lun("0=ram:1M");
    let mut old = world.initiator(1);
    begin_write(&mut old);
    let mut new = world.connect();
    new.login(TARGET, 1).unwrap();
    assert_eq!(new.command(&[0], &[], 0).additional(), NEXUS_LOST);
    assert_eq!(new.command(&[0], &[], 0).additional(), COMMANDS_CLEARED_BY_PROTOCOL_EVENT);
    assert_eq!(new.command(&[0], &[], 0).status, 0);
}

#[test]
fn a_reinstating_login_waits_for_the_writes_of_the_old_session() {
    let world = World::with_lun("0=ram:1M,latency=300ms");
    let mut old = world.initiator(1);
    let command = old.next_command(0, &read_write_10(0x2a, 0, 1), BLOCK, 0);
    let command = pdu::ScsiCommand { data_segment_bytes: 512, ..command };
    old.send(&InitiatorPdu::ScsiCommand(command), &[7; BLOCK]);
    let mut new = world.connect();
    new.login(TARGET, 1).unwrap();
    new.learn_attentions();
    // Whether the old write began or not, it cannot come now.
    assert_eq!(new.write(0, &[8; BLOCK]).status, 0);
    assert_eq!(new.read(0, 1).data, [8; BLOCK]);
}

#[test]
fn a_login_does_not_wait_for_the_stuck_connection_of_the_session_that_it_replaces() {
    const READ_BLOCKS: usize = 8 << 11;
    let world = World::with_lun("0=ram:8M");
    let mut old = world.initiator(1);
    // More than both sockets hold.
    for _ in 0..4 {
        let command = old.next_command(0, &read_write_10(0x28, 0, READ_BLOCKS), 0, READ_BLOCKS * BLOCK);
        old.send(&InitiatorPdu::ScsiCommand(command), &[]);
    }
    old.receive().unwrap();
    let mut new = world.connect();
    new.login(TARGET, 1).unwrap();
    // The target has not lost patience yet: what it began to send comes whole.
    let mut rest = Vec::new();
    old.stream.read_to_end(&mut rest).unwrap();
    let mut at = 0;
    while at < rest.len() {
        let header = pdu::Header::new(rest[at..at + pdu::Header::BHS_BYTES].try_into().unwrap());
        at += pdu::Header::BHS_BYTES + header.data_segment_bytes() as usize;
    }
    assert_eq!(at, rest.len());
}

#[test]
fn initiators_with_different_isids_do_not_disturb_each_other() {
    let world = World::with_lun("0=ram:1M");
    let mut first = world.initiator(1);
    let mut second = world.initiator(2);
    assert_eq!(first.read(0, 1).status, 0);
    assert_eq!(second.read(0, 1).status, 0);
    assert_eq!(world.counters().sessions, 2);
}

#[test]
fn a_connection_joins_its_session() {
    let world = World::with_lun("0=ram:1M");
    let mut leading = world.connect();
    let tsih = leading.login(TARGET, 1).unwrap();
    leading.learn_attentions();
    let mut added = world.connect();
    added.cmd_sn = leading.cmd_sn;
    let text = format!("InitiatorName={INITIATOR}\0TargetName={TARGET}\0SessionType=Normal\0");
    let join = |request| LoginRequest { tsih, cid: Cid(1), ..request };
    assert_eq!(added.login_with(&text, join, 1), Ok(tsih));
    assert_eq!(added.read(0, 1).status, 0);
    leading.cmd_sn = added.cmd_sn;
    assert_eq!(leading.read(0, 1).status, 0);
    let counters = world.counters();
    assert_eq!((counters.sessions, counters.connections), (1, 2));
}

#[test]
fn the_server_counts_how_long_commands_waited_for_earlier_ones_on_another_connection() {
    let world = World::with_lun("0=ram:1M");
    let mut leading = world.connect();
    let tsih = leading.login(TARGET, 1).unwrap();
    leading.learn_attentions();
    let mut added = world.connect();
    added.join((leading.cmd_sn, 0), tsih, Cid(1)).unwrap();
    let before = world.counters().order_waits;
    assert_eq!((before.waited(), before.max()), (0, Duration::ZERO));
    added.cmd_sn = leading.cmd_sn.next();
    let early = added.next_command(0, &[0], 0, 0);
    added.send(&InitiatorPdu::ScsiCommand(early), &[]);
    // Its answer shows that the early command has arrived.
    let mut immediate = added.next_command(0, &[0], 0, 0);
    immediate.immediate = true;
    added.send(&InitiatorPdu::ScsiCommand(immediate), &[]);
    added.answer(&[]);
    assert_eq!(leading.command(&[0], &[], 0).status, 0);
    added.answer(&[]);
    let waits = world.counters().order_waits;
    assert_eq!((waits.commands(), waits.waited()), (before.commands() + 2, 1));
    assert!(waits.max() > Duration::ZERO && waits.percentile(100) == waits.max(), "{waits:?}");
}

#[test]
fn a_connection_cannot_join_a_session_that_is_not_there() {
    let world = World::with_lun("0=ram:1M");
    let text = format!("InitiatorName={INITIATOR}\0TargetName={TARGET}\0SessionType=Normal\0");
    let join = |request| LoginRequest { tsih: Tsih(77), cid: Cid(1), ..request };
    assert_eq!(world.connect().login_with(&text, join, 1), Err(LoginStatus::SessionDoesNotExist));
}

#[test]
fn clearing_the_task_set_tells_the_others_that_lost_commands() {
    let world = World::with_lun("0=ram:1M");
    let mut loser = world.initiator(1);
    let mut idle = world.initiator(2);
    let mut asking = world.initiator(3);
    begin_write(&mut loser);
    let outcome = asking.manage(TaskManagementFunction::ClearTaskSet);
    assert_eq!(outcome, TaskManagementOutcome::FunctionComplete);
    assert_eq!(loser.command(&[0], &[], 0).additional(), COMMANDS_CLEARED_BY_ANOTHER);
    assert_eq!(idle.command(&[0], &[], 0).status, 0);
    assert_eq!(asking.command(&[0], &[], 0).status, 0);
}

#[test]
fn a_reset_of_the_unit_is_told_to_all() {
    let world = World::with_lun("0=ram:1M");
    let mut asking = world.initiator(1);
    let mut other = world.initiator(2);
    let outcome = asking.manage(TaskManagementFunction::LogicalUnitReset);
    assert_eq!(outcome, TaskManagementOutcome::FunctionComplete);
    for peer in [&mut asking, &mut other] {
        assert_eq!(peer.command(&[0], &[], 0).additional(), UNIT_RESET);
        assert_eq!(peer.command(&[0], &[], 0).status, 0);
    }
}

#[test]
fn a_cold_reset_ends_every_session() {
    let world = World::with_lun("0=ram:1M");
    let mut asking = world.initiator(1);
    let mut other = world.initiator(2);
    asking.manage(TaskManagementFunction::TargetColdReset);
    asking.expect_closed();
    other.expect_closed();
    assert_eq!(world.initiator(1).read(0, 1).status, 0);
}

#[test]
fn a_server_that_stops_asks_its_initiators_to_log_out_and_then_closes() {
    let world = World::with_lun("0=ram:1M");
    let mut peer = world.initiator(1);
    let watcher = std::thread::spawn(move || {
        let (message, _) = peer.receive().unwrap();
        peer.expect_closed();
        message
    });
    let report = world.shut_down(Duration::from_secs(1));
    assert_eq!(report.unflushed, Vec::<String>::new());
    match watcher.join().unwrap() {
        TargetPdu::AsyncMessage(message) => {
            assert!(matches!(message.event, AsyncEvent::LogoutRequest { .. }));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_that_stops_asks_every_connection_and_waits_for_the_logout() {
    let world = World::with_lun("0=ram:1M");
    let mut leading = world.connect();
    let tsih = leading.login(TARGET, 1).unwrap();
    leading.learn_attentions();
    let mut added = world.connect();
    added.join((leading.cmd_sn, leading.itt), tsih, Cid(1)).unwrap();
    let watcher = std::thread::spawn(move || {
        for peer in [&mut leading, &mut added] {
            match peer.receive().unwrap().0 {
                TargetPdu::AsyncMessage(message) => {
                    assert_eq!(message.event, AsyncEvent::LogoutRequest { seconds_max: 59 });
                    peer.exp_stat_sn = message.stat_sn.next();
                }
                other => panic!("{other:?}"),
            }
        }
        leading.send_logout();
        assert!(matches!(leading.receive().unwrap().0, TargetPdu::LogoutResponse(_)));
        leading.expect_closed();
        added.expect_closed();
    });
    let report = world.shut_down(Duration::from_secs(60));
    assert_eq!(report, ropewalk_target::ShutdownReport::default());
    watcher.join().unwrap();
}

/// A disk whose cache cannot be written back once it is sealed.
fn sealable_disk() -> (OwnedFd, String) {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let disk = rustix::fs::memfd_create("disk", flags).unwrap();
    let lun = format!("0=file:/proc/self/fd/{},size=1M,volatile", disk.as_raw_fd());
    (disk, lun)
}

#[test]
fn a_server_that_stops_tells_its_initiators_and_its_caller_what_it_cannot_flush() {
    const DEFERRED_ERROR: u8 = 0x71;
    const WRITE_ERROR: (u8, u8) = (0x0c, 0x00);
    let (disk, lun) = sealable_disk();
    let world = World::with_lun(&lun);
    let mut peer = world.initiator(1);
    assert_eq!(peer.write(0, &[1; BLOCK]).status, 0);
    rustix::fs::fcntl_add_seals(&disk, SealFlags::WRITE).unwrap();
    let watcher = std::thread::spawn(move || {
        let TargetPdu::AsyncMessage(asked) = peer.receive().unwrap().0 else { panic!("a logout request") };
        peer.exp_stat_sn = asked.stat_sn.next();
        let told = peer.command(&[0], &[], 0);
        peer.send_logout();
        peer.expect_closed();
        told
    });
    let report = world.shut_down(Duration::from_secs(60));
    let told = watcher.join().unwrap();
    assert_eq!((told.sense[0], told.additional()), (DEFERRED_ERROR, WRITE_ERROR));
    assert_eq!((report.sessions_cut, report.unflushed), (0, vec![format!("{TARGET} LUN 0")]));
}

#[test]
fn a_server_without_sessions_stops_at_once() {
    let report = World::with_lun("0=ram:1M").shut_down(Duration::from_secs(60));
    assert_eq!(report, ropewalk_target::ShutdownReport::default());
}

#[test]
fn targets_on_several_shards_are_served_through_one_port() {
    let names = ["iqn.2026-01.net.example:a", "iqn.2026-01.net.example:b", "iqn.2026-01.net.example:c"];
    let targets = names.map(|name| target(name, &["0=ram:1M"])).to_vec();
    let world = World::with_config(ropewalk_target::Config { shards: 3, ..config(targets) });
    for (number, name) in (1..).zip(names) {
        let mut peer = world.connect();
        peer.login(name, 1).unwrap();
        peer.learn_attentions();
        assert_eq!(peer.write(0, &[number; BLOCK]).status, 0);
        assert_eq!(peer.read(0, 1).data, [number; BLOCK]);
    }
}

#[test]
fn a_server_that_is_dropped_in_the_middle_of_its_work_lets_go_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let lun = format!("0=file:{}/disk,size=1M", folder.path().display());
    let world = World::with_lun(&lun);
    let mut peer = world.initiator(1);
    begin_write(&mut peer);
    drop(world);
    peer.expect_closed();
    // Its thread may still be on its way out.
    let restart = || World::start(config(vec![target(TARGET, &[&lun])]));
    while restart().is_err() {
        std::thread::yield_now();
    }
}

/// The level of error recovery is negotiated with the leading connection.
fn login_at_level(peer: &mut Peer, level: u8) -> Tsih {
    let text = format!(
        "InitiatorName={INITIATOR}\0TargetName={TARGET}\0SessionType=Normal\0MaxConnections=8\0\
         ErrorRecoveryLevel={level}\0DefaultTime2Wait=0\0DefaultTime2Retain=20\0"
    );
    let tsih = peer.login_with(&text, |request| request, 1).unwrap();
    peer.learn_attentions();
    tsih
}

#[test]
fn a_login_of_the_same_connection_takes_its_place_in_the_session_at_every_level() {
    for level in 0..=2 {
        let world = World::with_lun("0=ram:1M");
        let mut old = world.connect();
        let tsih = login_at_level(&mut old, level);
        assert_eq!(old.write(0, &[7; BLOCK]).status, 0);
        let mut new = world.connect();
        assert_eq!(new.join((old.cmd_sn, old.itt), tsih, Cid(0)), Ok(tsih));
        old.expect_closed();
        assert_eq!(new.read(0, 1).data, [7; BLOCK]);
        world.wait_for(|counters| counters.connections == 1);
        assert_eq!(world.counters().sessions, 1);
    }
}

#[test]
fn a_write_whose_connection_breaks_goes_on_over_another_one_at_level_2() {
    let world = World::with_lun("0=ram:1M");
    let mut old = world.connect();
    let tsih = login_at_level(&mut old, 2);
    let mut other = world.connect();
    other.join((old.cmd_sn, old.itt), tsih, Cid(1)).unwrap();
    begin_write(&mut old);
    let task = Itt(old.itt);
    other.cmd_sn = old.cmd_sn;
    drop(old);
    world.wait_for(|counters| counters.connections == 1);
    assert_eq!(other.remove_for_recovery(Cid(0)), LogoutOutcome::Closed);
    assert_eq!(other.reassign(task), TaskManagementOutcome::FunctionComplete);
    let data = pattern(8 * BLOCK);
    assert_eq!(other.answer(&data).status, 0);
    assert_eq!(other.read(0, 8).data, data);
}

#[test]
fn a_session_that_lost_its_only_connection_waits_for_another_one_at_level_2() {
    let world = World::with_lun("0=ram:1M");
    let mut old = world.connect();
    let tsih = login_at_level(&mut old, 2);
    begin_write(&mut old);
    let (task, numbers) = (Itt(old.itt), (old.cmd_sn, old.itt));
    drop(old);
    world.wait_for(|counters| counters.connections == 0);
    assert_eq!(world.counters().sessions, 1);
    let mut new = world.connect();
    new.join(numbers, tsih, Cid(0)).unwrap();
    assert_eq!(new.reassign(task), TaskManagementOutcome::FunctionComplete);
    let data = pattern(8 * BLOCK);
    assert_eq!(new.answer(&data).status, 0);
    // Nothing was lost, so there is nothing else to be told.
    assert_eq!(new.read(0, 8).data, data);
}
