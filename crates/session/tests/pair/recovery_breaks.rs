//! At error recovery level 2 connections may break at any time: no task is lost, none is carried out twice, and every
//! command has one status. Whoever drives the initiator only replaces the last connection.

use crate::world::device::GOOD;
use crate::world::wire::Path;
use crate::world::{Settings, World};
use pdu::{Duration, Instant, LaneId};
use proptest::prelude::*;
use ropewalk_session::initiator::{Event, TaskId};
use ropewalk_session::parameters::{DigestPreference, Offer};

const PIECE_BYTES: usize = 10_000;
const PIECES: usize = 3;

fn settings(seed: u64) -> Settings {
    let offer = Offer {
        error_recovery_level: 2,
        header_digest: DigestPreference::Required,
        data_digest: DigestPreference::Required,
        first_burst_bytes: 3000,
        max_burst_bytes: 4000,
        receive_segment_bytes_max: 2048,
        default_time2wait_s: 1,
        default_time2retain_s: 20,
        ..Offer::default()
    };
    Settings { initiator: offer, target: offer, seed, ..Settings::default() }
}

fn pattern(seed: usize) -> Vec<u8> {
    (0..PIECE_BYTES).map(|index| (index % 251) as u8 ^ seed as u8).collect()
}

/// Where a piece lies on the device: those that are written, then those that are read.
fn offset(piece: usize) -> usize {
    piece * PIECE_BYTES
}

/// Writes and reads under way, whose connections break.
struct Trial {
    world: World,
    writes: Vec<TaskId>,
    reads: Vec<TaskId>,
    /// Events that were looked at.
    seen: usize,
}

impl Trial {
    fn start(seed: u64, lanes: usize) -> Self {
        let delays: Vec<u64> = [5, 1, 9, 3].into_iter().cycle().take(lanes).collect();
        let mut world = World::with_delays(settings(seed), &delays);
        world.device.delay = Duration::from_millis(2);
        for piece in PIECES..2 * PIECES {
            world.device.content[offset(piece)..][..PIECE_BYTES].copy_from_slice(&pattern(piece));
        }
        let (mut writes, mut reads) = (Vec::new(), Vec::new());
        for piece in 0..PIECES {
            writes.push(world.write(offset(piece) as u32, &pattern(piece)));
            reads.push(world.read(offset(piece + PIECES) as u32, PIECE_BYTES as u32));
        }
        Self { world, writes, reads, seen: 0 }
    }

    fn is_done(world: &World) -> bool {
        world.completed.len() + world.lost.len() == 2 * PIECES
    }

    /// Runs until so many PDUs have left; `false` if all was done before.
    fn run_to(&mut self, pdus: usize) -> bool {
        self.run_until(|world| world.sent_pdus.iter().sum::<usize>() >= pdus || Self::is_done(world));
        !Self::is_done(&self.world)
    }

    fn finish(&mut self) {
        self.run_until(Self::is_done);
    }

    /// The last connection that broke, if the session needs another in its place: its CID, and from when on.
    fn needs(world: &World, seen: usize) -> Option<(u16, Instant)> {
        world.events[seen..].iter().find_map(|event| match event {
            Event::ConnectionLost { is_last: true, cid, not_before, .. } => Some((cid.0, *not_before)),
            _ => None,
        })
    }

    /// Does what a driver must do, until `done`.
    fn run_until(&mut self, done: impl Fn(&World) -> bool) {
        loop {
            let seen = self.seen;
            self.world.run_until(|world| done(world) || Self::needs(world, seen).is_some());
            let Some((cid, not_before)) = Self::needs(&self.world, seen) else { return };
            self.seen = self.world.events.len();
            self.world.run_for(not_before.saturating_duration_since(self.world.now));
            self.world.add_connection(Path::of_delay_ms(4), cid);
        }
    }

    /// That nobody but the clock has noticed anything.
    fn check(&mut self) {
        let world = &mut self.world;
        if std::mem::take(&mut world.damaged_permille) > 0 {
            // A ping that was lost again and again takes its connection, too.
            world.faults.clear();
        }
        assert!(world.lost.is_empty(), "{:?}", world.lost);
        assert!(
            world.completed.values().all(|completion| completion.status == GOOD),
            "{:?}",
            world.completed
        );
        for (piece, task) in self.writes.iter().enumerate() {
            assert_eq!(world.completed[task].data_out_bytes, PIECE_BYTES as u32);
            assert!(world.device.content[offset(piece)..][..PIECE_BYTES] == pattern(piece));
        }
        for (piece, task) in self.reads.iter().enumerate() {
            assert!(world.data[task] == pattern(piece + PIECES));
        }
        world.device.executed.sort_unstable();
        let once: Vec<u32> = (0..2 * PIECES).map(|piece| offset(piece) as u32).collect();
        assert_eq!(world.device.executed, once);
        assert!(!world.events.iter().any(|event| matches!(event, Event::Ended { .. })));
        // And the session goes on.
        let last = world.read(0, 100);
        world.run_until(|world| world.completed.contains_key(&last));
        world.run_for(Duration::from_secs(60));
        assert_eq!((world.target_ended, world.faults.as_slice()), (None, [].as_slice()));
        assert!(world.is_clean());
    }
}

/// How a connection ends.
#[derive(Clone, Copy, Debug)]
enum Break {
    /// Both ends notice.
    Both,
    /// The initiator alone notices; for the target the connection is there.
    Initiator,
    /// Nobody is told.
    Silent,
}

impl Break {
    fn apply(self, world: &mut World, lane: LaneId) {
        match self {
            Self::Both => world.kill(lane),
            Self::Initiator => world.lose_at_initiator(lane),
            Self::Silent => world.silence(lane),
        }
    }
}

/// Breaks each lane in turn after each PDU in turn.
fn at_every_pdu(lanes: usize, how: Break) {
    for lane in 0..lanes {
        let mut pdus = 0;
        loop {
            let mut trial = Trial::start(1, lanes);
            if !trial.run_to(pdus) {
                break;
            }
            how.apply(&mut trial.world, LaneId(lane as u32));
            trial.finish();
            if !matches!(how, Break::Silent) {
                trial.check();
            }
            assert!(trial.world.lost.is_empty(), "{lane} {pdus} {:?}", trial.world.lost);
            pdus += 1;
        }
        assert!(pdus > 20, "{pdus}");
    }
}

#[test]
fn one_of_two_connections_breaks_after_any_pdu() {
    at_every_pdu(2, Break::Both);
}

#[test]
fn one_of_four_connections_breaks_after_any_pdu() {
    at_every_pdu(4, Break::Both);
}

#[test]
fn the_only_connection_breaks_after_any_pdu_and_is_replaced() {
    at_every_pdu(1, Break::Both);
}

#[test]
fn a_connection_that_only_the_initiator_sees_break_is_taken_from_the_target() {
    at_every_pdu(2, Break::Initiator);
    at_every_pdu(1, Break::Initiator);
}

#[test]
fn a_connection_that_falls_silent_is_given_up_and_recovered() {
    at_every_pdu(2, Break::Silent);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn however_often_connections_break_each_command_ends_once_and_well(
        seed in any::<u64>(),
        lanes in 1_usize..5,
        damaged_permille in prop_oneof![Just(0_u64), Just(40)],
        breaks in proptest::collection::vec((0_usize..60, any::<proptest::sample::Index>(), any::<bool>()), 1..6),
    ) {
        let mut trial = Trial::start(seed, lanes);
        trial.world.damaged_permille = damaged_permille;
        let mut pdus = 0;
        for (after, which, both) in breaks {
            pdus += after;
            if !trial.run_to(pdus) {
                break;
            }
            let lanes: Vec<LaneId> =
                trial.world.lanes().into_iter().filter(|lane| trial.world.initiator.is_open(*lane)).collect();
            if !lanes.is_empty() {
                let how = if both { Break::Both } else { Break::Initiator };
                how.apply(&mut trial.world, lanes[which.index(lanes.len())]);
            }
        }
        trial.finish();
        trial.check();
    }
}
