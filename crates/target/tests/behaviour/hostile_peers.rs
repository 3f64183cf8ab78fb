//! Whoever reaches the port can be anybody: nothing that comes before a login may keep others out.

use crate::world::*;
use pdu::{InitiatorPdu, LoginRequest, LoginStatus};
use ropewalk_target::{Config, Limits};
use std::io::{self, Read, Write};
use std::time::Duration;

/// More drips than the text that was announced has bytes.
const DRIPS_MAX: usize = 9000;

fn world_with(limits: Limits) -> World {
    World::with_config(Config { limits, ..config(vec![target(TARGET, &["0=ram:64M"])]) })
}

fn expect_service(world: &World) {
    assert_eq!(world.initiator(9).read(0, 1).status, 0);
}

#[test]
fn garbage_before_login_is_hung_up_on() {
    let world = World::with_lun("0=ram:64M");
    for garbage in [vec![0; 4096], vec![0xff; 4096], b"GET / HTTP/1.1\r\n\r\n".repeat(10), pattern(100_000)] {
        let mut peer = world.connect();
        // It may be cut off before it has said all.
        let _ = peer.stream.write_all(&garbage);
        peer.expect_closed();
    }
    expect_service(&world);
    world.wait_for(|counters| counters.refused_connections == 4);
}

#[test]
fn a_connection_that_closes_before_it_has_said_who_it_is_was_not_refused() {
    let world = World::with_lun("0=ram:64M");
    let peer = world.connect();
    world.wait_for(|counters| counters.unauthenticated_connections == 1);
    drop(peer);
    world.wait_for(|counters| counters.unauthenticated_connections == 0);
    assert_eq!(world.counters().refused_connections, 0);
}

#[test]
fn half_a_pdu_and_then_silence_ends_when_time_is_up() {
    let world = world_with(Limits { login_seconds: 1, ..Limits::default() });
    let mut peer = world.connect();
    peer.stream.write_all(&[0x43; 20]).unwrap();
    expect_service(&world);
    peer.expect_closed();
    world.wait_for(|counters| counters.unauthenticated_connections == 0);
}

#[test]
fn a_login_that_drips_byte_by_byte_ends_when_time_is_up() {
    let world = world_with(Limits { login_seconds: 1, ..Limits::default() });
    let mut peer = world.connect();
    peer.stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let closed =
        |error: &io::Error| !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
    // A header announces text that takes its time.
    peer.stream.write_all(&[0x43, 0x87, 0, 0, 0, 0, 0x20, 0]).unwrap();
    for _ in 0..DRIPS_MAX {
        if peer.stream.write_all(&[0]).is_err() {
            break;
        }
        match peer.stream.read(&mut [0; 64]) {
            Ok(0) => break,
            Err(error) if closed(&error) => break,
            Ok(_) | Err(_) => {}
        }
    }
    world.wait_for(|counters| counters.unauthenticated_connections == 0 && counters.refused_connections == 1);
    expect_service(&world);
}

#[test]
fn a_login_that_never_comes_to_its_point_is_ended() {
    let world = World::with_lun("0=ram:64M");
    let mut peer = world.connect();
    let text = format!("InitiatorName={INITIATOR}\0TargetName={TARGET}\0");
    let request = peer.login_request(1, u32::try_from(text.len()).unwrap());
    let endless = LoginRequest { next_stage: None, ..request };
    peer.send(&InitiatorPdu::LoginRequest(endless), text.as_bytes());
    let empty = LoginRequest { data_segment_bytes: 0, ..endless };
    let mut answers = 0;
    while peer.receive().is_ok() {
        answers += 1;
        let mut bytes = Vec::new();
        InitiatorPdu::LoginRequest(empty).emit().write_to(&mut bytes);
        if peer.stream.write_all(&bytes).is_err() {
            break;
        }
    }
    assert!(answers < 100, "{answers} answers");
    expect_service(&world);
}

#[test]
fn a_thousand_silent_connections_keep_nobody_out() {
    let limits = Limits::default();
    let bound = limits.unauthenticated_connections;
    let world = world_with(limits);
    let mut silent = Vec::new();
    for _ in 0..1000 {
        silent.push(world.connect());
        if silent.len() > bound {
            // The oldest has been closed, and this end of it can go.
            silent.remove(0).expect_closed();
        }
        let counters = world.counters();
        assert!(counters.unauthenticated_connections <= bound + 1, "{counters:?}");
    }
    expect_service(&world);
    world.wait_for(|counters| counters.buffer_bytes == 0 && counters.connections == 0);
}

#[test]
fn connections_beyond_the_limit_are_refused_and_the_others_served() {
    let world = world_with(Limits { connections: 2, ..Limits::default() });
    let mut first = world.initiator(1);
    let mut second = world.initiator(2);
    world.connect().expect_closed();
    assert_eq!(first.read(0, 1).status, 0);
    assert_eq!(second.read(0, 1).status, 0);
}

#[test]
fn a_session_that_breaks_the_protocol_ends_alone() {
    let world = World::with_lun("0=ram:64M");
    let mut bad = world.initiator(1);
    let mut good = world.initiator(2);
    let second_login = bad.login_request(1, 0);
    bad.send(&InitiatorPdu::LoginRequest(second_login), &[]);
    bad.expect_closed();
    assert_eq!(good.read(0, 1).status, 0);
}

#[test]
fn who_floods_the_waiting_room_keeps_nobody_else_from_logging_in() {
    let world = world_with(Limits { unauthenticated_connections: 4, ..Limits::default() });
    let mut slow = world.connect_from(ELSEWHERE);
    let mut flood: Vec<_> = (0..20).map(|_| world.connect()).collect();
    world.wait_for(|counters| counters.accepted_connections == 21);
    assert!(slow.login(TARGET, 1).is_ok());
    flood[0].expect_closed();
}

#[test]
fn one_address_cannot_take_all_connections() {
    let world = world_with(Limits { connections_per_address: 2, ..Limits::default() });
    let mut greedy = [world.initiator(1), world.initiator(2)];
    world.connect().expect_closed();
    assert_eq!(world.initiator_from(ELSEWHERE, 3).read(0, 1).status, 0);
    assert!(greedy.iter_mut().all(|peer| peer.read(0, 1).status == 0));
    drop(greedy);
    world.wait_for(|counters| counters.connections == 0);
    expect_service(&world);
}

#[test]
fn one_address_cannot_take_all_sessions() {
    let world = world_with(Limits { sessions_per_address: 2, ..Limits::default() });
    let mut first = world.initiator(1);
    let _second = world.initiator(2);
    assert_eq!(world.connect().login(TARGET, 3), Err(LoginStatus::OutOfResources));
    assert_eq!(world.initiator_from(ELSEWHERE, 3).read(0, 1).status, 0);
    // A session that takes the place of another is not one more.
    assert!(world.connect().login(TARGET, 2).is_ok());
    assert_eq!(first.read(0, 1).status, 0);
}
