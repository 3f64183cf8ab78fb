//! Reservations between initiators of one server, and across its restarts.

use crate::world::*;
use pdu::InitiatorPdu;
use requirement::{Need, skip};
use ropewalk_target::{OpenError, OpenFailure, StartError, StateError};
use scsi::client::{persistent_reserve_in, persistent_reserve_out};
use scsi::{PersistentReserveOut, Register, ReservationKey, ReservationType, ReserveAction, ReserveIn};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

const GOOD: u8 = scsi::Status::Good.code();
const CHECK_CONDITION: u8 = scsi::Status::CheckCondition.code();
const CONFLICT: u8 = scsi::Status::ReservationConflict.code();
const RESERVE_6: [u8; 6] = [0x16, 0, 0, 0, 0, 0];
const TEST_UNIT_READY: [u8; 6] = [0; 6];
const ONE: ReservationKey = ReservationKey(1);
const TWO: ReservationKey = ReservationKey(2);
const REGISTRATIONS_PREEMPTED: (u8, u8) = (0x2a, 0x05);

impl Peer {
    fn ask(&mut self, key: ReservationKey, action: ReserveAction) -> Answer {
        let (cdb, list) = persistent_reserve_out(&PersistentReserveOut { key, action });
        self.command(&cdb, &list, 0)
    }

    fn register(&mut self, new_key: ReservationKey, persist: bool) -> Answer {
        let (ignore_existing_key, all_target_ports, others) = (false, false, Vec::new());
        let register = Register { new_key, ignore_existing_key, persist, all_target_ports, others };
        self.ask(ReservationKey::NONE, ReserveAction::Register(register))
    }

    fn reserve(&mut self, key: ReservationKey, kind: ReservationType) -> Answer {
        self.ask(key, ReserveAction::Reserve(kind))
    }

    fn told(&mut self, what: ReserveIn) -> Vec<u8> {
        self.command(&persistent_reserve_in(what, 1024), &[], 1024).data
    }
}

/// A world whose reservations are kept in `state`.
fn keeping(folder: &Path, state: &Path) -> Result<World, StartError> {
    serving(&[format!("0=file:{}/disk,size=1M,thin", folder.display())], state)
}

/// The same with these LUNs.
fn serving(luns: &[String], state: &Path) -> Result<World, StartError> {
    let luns: Vec<&str> = luns.iter().map(String::as_str).collect();
    let mut config = config(vec![target(TARGET, &luns)]);
    config.state_directory = Some(state.to_owned());
    World::start(config)
}

/// The files in which reservations are kept.
fn kept_in(state: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(state).expect("a directory").filter_map(Result::ok).map(|entry| entry.path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "reservations")).collect()
}

/// Host 1 reserves LUN 0, to survive a restart.
fn reserve_for_ever(world: &World) {
    let mut holder = world.initiator(1);
    assert_eq!(holder.register(ONE, true).status, GOOD);
    assert_eq!(holder.reserve(ONE, ReservationType::WriteExclusive).status, GOOD);
}

/// What host 2 is told that writes to a LUN.
fn written_by_other(world: &World, lun: u16) -> u8 {
    let mut other = world.initiator(2);
    while other.command_to(lun, &TEST_UNIT_READY, &[], 0).status != GOOD {}
    other.write_to(lun, 0, &pattern(BLOCK)).status
}

#[test]
fn a_reserved_unit_is_written_by_its_holder_only() {
    let world = World::with_lun("0=ram:64M");
    let (mut holder, mut other) = (world.initiator(1), world.initiator(2));
    assert_eq!(holder.register(ONE, false).status, GOOD);
    assert_eq!(holder.reserve(ONE, ReservationType::WriteExclusive).status, GOOD);
    assert_eq!(other.write(0, &pattern(BLOCK)).status, CONFLICT);
    assert_eq!(other.read(0, 1).status, GOOD);
    assert_eq!(holder.write(0, &pattern(BLOCK)).status, GOOD);
    assert_eq!(other.told(ReserveIn::Keys)[4..], [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn a_host_that_is_fenced_off_writes_nothing_more() {
    let world = World::with_lun("0=ram:64M");
    let (mut victim, mut fencer) = (world.initiator(1), world.initiator(2));
    assert_eq!(victim.register(ONE, false).status, GOOD);
    assert_eq!(victim.reserve(ONE, ReservationType::WriteExclusive).status, GOOD);
    assert_eq!(fencer.register(TWO, false).status, GOOD);
    // A write whose data the target waits for.
    let data = pattern(BLOCK);
    let write = victim.next_command(0, &read_write_10(0x2a, 0, 1), BLOCK, 0);
    victim.send(&InitiatorPdu::ScsiCommand(write), &[]);
    let (asked, _) = victim.receive().unwrap();
    let pdu::TargetPdu::R2t(r2t) = asked else { panic!("{asked:?}") };
    let kind = Some(ReservationType::WriteExclusive);
    let preempt = ReserveAction::Preempt { victim: ONE, kind, abort: false };
    assert_eq!(fencer.ask(TWO, preempt).status, GOOD);
    victim.send_data(r2t.lun, (r2t.itt, r2t.ttt), 0, &data);
    assert_eq!(victim.answer(&data).status, CONFLICT);
    assert_eq!(fencer.read(0, 1).data, vec![0; BLOCK]);
    assert_eq!(victim.command(&TEST_UNIT_READY, &[], 0).additional(), REGISTRATIONS_PREEMPTED);
    assert_eq!(victim.write(0, &data).status, CONFLICT);
}

#[test]
fn reservations_that_outlive_the_session_and_lock_everyone_out() {
    let world = World::with_lun("0=ram:64M");
    let (mut holder, mut other) = (world.initiator(1), world.initiator(2));
    assert_eq!(holder.command(&RESERVE_6, &[], 0).status, GOOD);
    assert_eq!(other.write(0, &pattern(BLOCK)).status, CONFLICT);
    drop(holder);
    world.wait_for(|counters| counters.sessions == 1);
    assert_eq!(other.write(0, &pattern(BLOCK)).status, GOOD);
}

#[test]
fn reservations_that_are_to_persist_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state/of/reservations");
    let world = keeping(folder.path(), &state).unwrap();
    let mut holder = world.initiator(1);
    assert_eq!(holder.told(ReserveIn::Capabilities)[2] & 1, 1);
    assert_eq!(holder.register(ONE, true).status, GOOD);
    assert_eq!(holder.reserve(ONE, ReservationType::WriteExclusive).status, GOOD);
    drop(holder);
    // As a power failure would.
    drop(world);
    let world = keeping(folder.path(), &state).unwrap();
    let (mut holder, mut other) = (world.initiator(1), world.initiator(2));
    assert_eq!(other.write(0, &pattern(BLOCK)).status, CONFLICT);
    assert_eq!(holder.write(0, &pattern(BLOCK)).status, GOOD);
    drop((holder, other));
    let _ = world.shut_down(Duration::from_secs(1));
    let [file] = &kept_in(&state)[..] else { panic!("one file") };
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn without_a_place_to_keep_them_reservations_cannot_persist() {
    let folder = tempfile::tempdir().unwrap();
    // Nor do those of a medium that forgets its data.
    let mut forgetful = config(vec![target(TARGET, &["0=ram:64M"])]);
    forgetful.state_directory = Some(folder.path().join("state"));
    let nowhere = keeping(folder.path(), Path::new("")).unwrap();
    for world in [nowhere, World::with_config(forgetful)] {
        let mut peer = world.initiator(1);
        assert_eq!(peer.told(ReserveIn::Capabilities)[2] & 1, 0);
        assert_eq!(peer.register(ONE, true).status, CHECK_CONDITION);
        assert_eq!(peer.told(ReserveIn::Keys)[4..], [0; 4]);
    }
}

#[test]
fn a_registration_that_cannot_be_stored_does_not_happen() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let world = keeping(folder.path(), &state).unwrap();
    let mut peer = world.initiator(1);
    fs::remove_dir_all(&state).unwrap();
    assert_eq!(peer.register(ONE, true).status, CHECK_CONDITION);
    assert_eq!(peer.told(ReserveIn::Keys), [0; 8]);
}

#[test]
fn damaged_reservations_are_not_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    reserve_for_ever(&keeping(folder.path(), &state).unwrap());
    let [file] = &kept_in(&state)[..] else { panic!("one file") };
    fs::write(file, "ropewalk reservations 1\n").unwrap();
    let refused = keeping(folder.path(), &state).err().unwrap();
    assert!(refused.to_string().contains(&file.display().to_string()), "{refused}");
    let StartError::Lun(OpenError { source: OpenFailure::Reservations(source), .. }) = refused else {
        panic!("{refused}")
    };
    assert!(matches!(source, StateError::Damaged { .. }));
}

#[test]
fn two_servers_keep_no_reservations_in_the_same_file() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let state = one.path().join("state");
    let named = |folder: &Path| [format!("0=file:{}/disk,size=1M,thin,id=disk", folder.display())];
    let _first = serving(&named(one.path()), &state).unwrap();
    let refused = serving(&named(other.path()), &state).err().unwrap();
    assert!(refused.to_string().contains("--state-directory"), "{refused}");
    let StartError::Lun(OpenError { source: OpenFailure::Reservations(source), .. }) = refused else {
        panic!("{refused}")
    };
    assert!(matches!(source, StateError::InUse { .. }));
    // Another target of a server of its own is nobody's business.
    let lun = format!("0=file:{}/disk,size=1M,thin", other.path().display());
    let mut config = config(vec![target("iqn.2026-01.net.example:other", &[&lun])]);
    config.state_directory = Some(state);
    World::with_config(config);
}

#[test]
fn reservations_go_with_their_disk_to_another_lun() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let disk =
        |lun: u16, name: &str| format!("{lun}=file:{}/{name},size=1M,id={name}", folder.path().display());
    reserve_for_ever(&serving(&[disk(0, "a"), disk(1, "b")], &state).unwrap());
    let swapped = serving(&[disk(0, "b"), disk(1, "a")], &state).unwrap();
    assert_eq!([0, 1].map(|lun| written_by_other(&swapped, lun)), [GOOD, CONFLICT]);
}

#[test]
fn another_disk_behind_a_lun_does_not_inherit_its_reservations() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let disk = |name: &str| [format!("0=file:{}/{name},size=1M", folder.path().display())];
    reserve_for_ever(&serving(&disk("a"), &state).unwrap());
    let kept = kept_in(&state);
    let world = serving(&disk("b"), &state).unwrap();
    assert_eq!(written_by_other(&world, 0), GOOD);
    assert_eq!(kept_in(&state), kept);
    drop(world);
    let world = serving(&disk("a"), &state).unwrap();
    assert_eq!(written_by_other(&world, 0), CONFLICT);
}

#[test]
fn a_file_of_reservations_that_is_a_symbolic_link_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    reserve_for_ever(&keeping(folder.path(), &state).unwrap());
    let [file] = &kept_in(&state)[..] else { panic!("one file") };
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(file, &elsewhere).unwrap();
    symlink(&elsewhere, file).unwrap();
    let refused = keeping(folder.path(), &state).err().unwrap();
    let StartError::Lun(OpenError { source: OpenFailure::Reservations(source), .. }) = refused else {
        panic!("{refused}")
    };
    assert!(matches!(source, StateError::File { .. }), "{source}");
}

#[test]
fn a_state_directory_that_is_a_symbolic_link_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    fs::DirBuilder::new().mode(0o700).create(&real).unwrap();
    symlink(&real, &link).unwrap();
    for state in [link.clone(), link.join(""), link.join(".")] {
        let refused = keeping(folder.path(), &state).err().unwrap();
        assert!(matches!(refused, StartError::State(StateError::SymbolicLink { .. })), "{refused}");
    }
}

#[test]
fn a_state_directory_of_another_user_is_refused() {
    const NOBODY: u32 = 65534;
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    fs::DirBuilder::new().mode(0o700).create(&state).unwrap();
    if let Err(error) = chown(&state, Some(NOBODY), None) {
        return skip(Need::Root, &format!("the directory cannot be given away: {error}"));
    }
    let refused = keeping(folder.path(), &state).err().unwrap();
    assert!(matches!(refused, StartError::State(StateError::Owner { owner: NOBODY, .. })), "{refused}");
}

#[test]
fn reservations_are_stored_where_the_directory_was_when_the_server_started() {
    let folder = tempfile::tempdir().unwrap();
    let (state, moved) = (folder.path().join("state"), folder.path().join("moved"));
    let world = keeping(folder.path(), &state).unwrap();
    fs::rename(&state, &moved).unwrap();
    fs::create_dir(&state).unwrap();
    reserve_for_ever(&world);
    assert_eq!((kept_in(&state).len(), kept_in(&moved).len()), (0, 1));
}

#[test]
fn a_state_directory_that_others_can_write_to_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
    let refused = keeping(folder.path(), &state).err().unwrap();
    assert!(matches!(refused, StartError::State(StateError::Exposed { mode: 0o777, .. })), "{refused}");
}
