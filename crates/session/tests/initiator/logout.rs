//! A session of several connections is logged out connection by connection.

use crate::world::{UNIT, World};
use pdu::{AsyncEvent, AsyncMessage, Cid, Duration, InitiatorPdu, LaneId, LogoutOutcome, LogoutReason};
use ropewalk_session::initiator::Event;
use ropewalk_session::seam::{Endpoint, LaneLoss};

/// Longer than a lane may leave its logout unanswered.
const LIMIT: Duration = Duration::from_secs(60);

/// The logouts that leave now, by lane.
fn logouts(world: &mut World, lanes: usize) -> Vec<(usize, LogoutReason)> {
    let mut asked = Vec::new();
    for lane in 0..lanes {
        for pdu in world.pull_all(lane) {
            if let InitiatorPdu::LogoutRequest(request) = pdu {
                assert_eq!(usize::from(request.cid.0), lane);
                asked.push((lane, request.reason));
            }
        }
    }
    asked
}

/// Closes the lanes that the session wants closed, as its owner does; whether it has ended in order.
fn close_lanes(world: &mut World) -> Option<bool> {
    let mut ended = None;
    loop {
        let events = world.events();
        if events.is_empty() {
            return ended;
        }
        for event in events {
            match event {
                Event::CloseLane { lane, loss, .. } => world.session.lane_lost(world.now, lane, loss),
                Event::Ended { orderly } => ended = Some(orderly),
                _ => {}
            }
        }
    }
}

#[test]
fn the_leading_connection_is_logged_out_last_and_with_the_session() {
    for level in [0, 2] {
        let mut world = World::recovering(level, 3);
        world.session.logout(world.now);
        for lane in [1, 2] {
            assert_eq!(world.pull(0), None, "others are left");
            let request = world.answer_logout(lane, LogoutOutcome::Closed, 0);
            let expected = (LogoutReason::CloseConnection, Cid(u16::try_from(lane).unwrap()));
            assert_eq!((request.reason, request.cid), expected);
            assert_eq!(close_lanes(&mut world), None);
        }
        let request = world.answer_logout(0, LogoutOutcome::Closed, 0);
        assert_eq!((request.reason, request.cid), (LogoutReason::CloseSession, Cid(0)));
        assert_eq!(close_lanes(&mut world), Some(true));
    }
}

#[test]
fn who_does_not_wait_for_the_last_answer_leaves_with_the_logout_of_the_session() {
    for level in [0, 2] {
        let mut world = World::recovering(level, 3);
        world.session.logout(world.now);
        for lane in [1, 2] {
            assert!(!world.session.has_said_goodbye());
            world.answer_logout(lane, LogoutOutcome::Closed, 0);
            assert_eq!(close_lanes(&mut world), None);
        }
        assert!(world.session.has_said_goodbye());
        let request = world.answer_logout(0, LogoutOutcome::Closed, 0);
        assert_eq!(request.reason, LogoutReason::CloseSession);
        assert_eq!(close_lanes(&mut world), Some(true));
    }
}

#[test]
fn who_leaves_while_a_command_is_outstanding_waits_for_its_answer() {
    let mut world = World::with_connections(2);
    world.write(0, 0);
    world.session.logout(world.now);
    assert!(!world.session.has_said_goodbye());
    assert_eq!(logouts(&mut world, 2), []);
}

#[test]
fn a_lane_that_does_not_answer_its_logout_does_not_hold_the_session_up_for_ever() {
    for level in [0, 2] {
        let mut world = World::recovering(level, 3);
        world.session.logout(world.now);
        let expected = [(1, LogoutReason::CloseConnection), (2, LogoutReason::CloseConnection)];
        assert_eq!(logouts(&mut world, 3), expected);
        let mut ended = None;
        let mut left = Vec::new();
        let end = world.now + LIMIT;
        while let Some(at) = world.session.poll_timeout().filter(|at| *at <= end) {
            world.pass(at.saturating_duration_since(world.now));
            ended = ended.or(close_lanes(&mut world));
            left.extend(logouts(&mut world, 1));
        }
        assert_eq!(left.first(), Some(&(0, LogoutReason::CloseSession)), "level {level}");
        assert!(ended.is_some(), "level {level}: nobody answers the last one either");
    }
}

#[test]
fn a_lane_that_breaks_during_its_logout_is_as_good_as_logged_out() {
    for level in [0, 2] {
        let mut world = World::recovering(level, 2);
        world.session.logout(world.now);
        world.pull_all(1);
        world.session.lane_lost(world.now, LaneId(1), LaneLoss::Broken);
        let request = world.answer_logout(0, LogoutOutcome::Closed, 0);
        assert_eq!(request.reason, LogoutReason::CloseSession);
        assert_eq!(close_lanes(&mut world), Some(true));
    }
}

fn ask_for_logout(world: &mut World, seconds_max: u16) {
    let message = AsyncMessage {
        event: AsyncEvent::LogoutRequest { seconds_max },
        lun: UNIT,
        stat_sn: world.take_stat_sn(0),
        window: world.window,
        data_segment_bytes: 0,
    };
    world.receive(0, &message.emit(), &[]).unwrap();
}

#[test]
fn a_second_request_to_log_out_does_not_put_the_first_off() {
    let mut world = World::with_connections(1);
    world.read(0, 512);
    ask_for_logout(&mut world, 3);
    world.pass(Duration::from_secs(2));
    ask_for_logout(&mut world, 4);
    assert_eq!(logouts(&mut world, 1), [], "the command may still end");
    world.pass(Duration::from_secs(1));
    assert_eq!(logouts(&mut world, 1), [(0, LogoutReason::CloseSession)]);
}
