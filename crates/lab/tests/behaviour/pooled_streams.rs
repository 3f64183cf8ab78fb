//! Streams carry a fixed amount of data together.

use crate::world::{in_lab, lab, link, streams};
use ropewalk_lab::workload::Direction;
use std::time::Duration;

#[test]
fn streams_that_share_a_pool_carry_all_of_it_in_either_direction() {
    in_lab(|| {
        // No multiple of the pieces that they draw.
        const BYTES: u64 = (1 << 20) + 7;
        for direction in [Direction::Write, Direction::Read] {
            let lab = lab(link(144, Duration::from_millis(2)));
            let pooled = streams(&lab, 4).carry(&lab, BYTES, direction).unwrap();
            assert_eq!(pooled.bytes.iter().sum::<u64>(), BYTES);
            assert_eq!(pooled.congestion_controls, ["reno"; 4], "those of the senders");
        }
    });
}

#[test]
fn the_time_of_a_pool_includes_the_connections() {
    in_lab(|| {
        let one_way = Duration::from_millis(20);
        let lab = lab(link(144, one_way));
        let pooled = streams(&lab, 2).carry(&lab, 2, Direction::Write).unwrap();
        assert!(pooled.elapsed >= 3 * one_way, "there, back, and there with the data: {:?}", pooled.elapsed);
    });
}
