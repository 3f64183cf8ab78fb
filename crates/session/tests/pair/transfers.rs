//! Data moves whole and right between both roles, however it was negotiated to move.

use crate::world;
use crate::world::device::GOOD;
use crate::world::{Settings, World};
use proptest::prelude::*;
use ropewalk_session::parameters::{DigestPreference, Offer};

fn pattern(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = world::wire::Random::new(seed);
    (0..bytes).map(|_| random.below(256) as u8).collect()
}

/// Writes and reads back these (offset, length) pairs, none overlapping, all at once.
fn move_data(settings: Settings, delays_ms: &[u64], pieces: &[(u32, usize)]) {
    let mut world = World::with_delays(settings, delays_ms);
    let written: Vec<_> = pieces
        .iter()
        .map(|&(offset, bytes)| {
            let bytes = pattern(bytes, u64::from(offset) + 1);
            (world.write(offset, &bytes), offset, bytes)
        })
        .collect();
    world.run();
    assert_eq!(world.faults, []);
    for (task, offset, bytes) in &written {
        let completion = &world.completed[task];
        assert_eq!((completion.status, completion.underflow_bytes), (GOOD, 0));
        assert!(world.device.content[*offset as usize..].starts_with(bytes), "at {offset}");
    }
    let read: Vec<_> =
        written.iter().map(|(_, offset, bytes)| (world.read(*offset, bytes.len() as u32), bytes)).collect();
    world.run();
    assert_eq!(world.faults, []);
    for (task, bytes) in read {
        assert_eq!(world.completed[&task].data_in_bytes as usize, bytes.len());
        assert_eq!(&world.data[&task], bytes);
    }
    assert!(world.is_clean());
}

fn offer(initial_r2t: bool, immediate_data: bool, max_outstanding_r2t: u16) -> Offer {
    Offer {
        initial_r2t,
        immediate_data,
        max_outstanding_r2t,
        first_burst_bytes: 4096,
        max_burst_bytes: 8192,
        receive_segment_bytes_max: 1536,
        ..Offer::default()
    }
}

#[test]
fn every_combination_of_initial_r2t_and_immediate_data_moves_the_right_bytes() {
    for initial_r2t in [false, true] {
        for immediate_data in [false, true] {
            for max_outstanding_r2t in [1, 3] {
                let offer = offer(initial_r2t, immediate_data, max_outstanding_r2t);
                let settings = Settings { initiator: offer, target: offer, ..Settings::default() };
                move_data(
                    settings,
                    &[3, 9],
                    &[(0, 1), (100, 512), (4096, 4096), (10_000, 4097), (20_000, 50_001), (80_000, 1536)],
                );
            }
        }
    }
}

#[test]
fn digests_of_headers_and_data_match() {
    let offer = Offer {
        header_digest: DigestPreference::Required,
        data_digest: DigestPreference::Required,
        ..offer(false, true, 2)
    };
    let settings = Settings { initiator: offer, target: offer, ..Settings::default() };
    move_data(settings, &[1], &[(7, 13), (1000, 20_003)]);
}

#[test]
fn one_segment_can_be_as_long_as_a_segment_can_be() {
    let offer = Offer {
        first_burst_bytes: (1 << 24) - 1,
        max_burst_bytes: (1 << 24) - 1,
        receive_segment_bytes_max: (1 << 24) - 1,
        ..Offer::default()
    };
    let settings =
        Settings { initiator: offer, target: offer, budget_bytes: u32::MAX, ..Settings::default() };
    move_data(settings, &[1], &[(0, world::DEVICE_BYTES as usize)]);
}

#[test]
fn more_commands_than_the_window_admits_are_all_carried_out() {
    let settings = Settings { window_commands: 3, ..Settings::default() };
    let pieces: Vec<_> = (0..50).map(|index| (index * 5000, 3000)).collect();
    move_data(settings, &[2, 7, 11, 1], &pieces);
}

fn any_offer() -> impl Strategy<Value = Offer> {
    let sizes = (512_u32..20_000, 512_u32..40_000, 512_u32..20_000);
    (any::<bool>(), any::<bool>(), 1_u16..5, sizes).prop_map(
        |(initial_r2t, immediate_data, max_outstanding_r2t, (first, burst, segment))| Offer {
            initial_r2t,
            immediate_data,
            max_outstanding_r2t,
            first_burst_bytes: first.min(burst),
            max_burst_bytes: burst,
            receive_segment_bytes_max: segment,
            ..Offer::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_parameters_move_the_right_bytes(
        initiator in any_offer(),
        target in any_offer(),
        window_commands in 1_u32..20,
        budget_bytes in 512_u32..30_000,
        seed in any::<u64>(),
        delays_ms in proptest::collection::vec(0_u64..30, 1..6),
        lengths in proptest::collection::vec(1_usize..60_000, 1..12),
    ) {
        let settings = Settings { initiator, target, window_commands, budget_bytes, seed, ..Settings::default() };
        let pieces: Vec<_> = lengths.iter().enumerate().map(|(index, bytes)| (index as u32 * 60_000, *bytes)).collect();
        move_data(settings, &delays_ms, &pieces);
    }
}
