//! TCP gets its bytes across whatever the path does.

use crate::world::{counter, in_lab, lab, link, streams};
use ropewalk_lab::netem::{LinkModel, Loss, Probability, Reordering, Span};
use ropewalk_lab::workload::Direction;
use std::time::Duration;

const MEGABYTE: u64 = 1_000_000;

fn percent(percent: f64) -> Probability {
    Probability::new(percent / 100.0).expect("a percentage")
}

fn path() -> LinkModel {
    link(200, Duration::from_millis(1))
}

#[test]
fn bytes_arrive_as_they_were_sent_though_segments_are_cut_out_of_super_packets() {
    in_lab(|| {
        let lab = lab(LinkModel { loss: Loss::Random(percent(2.0)), ..path() });
        streams(&lab, 4).carry(&lab, 8 * MEGABYTE, Direction::Write).unwrap();
        assert!(lab.relay.stop().forward.path.dropped.loss.segments > 0);
    });
}

#[test]
fn bytes_arrive_as_they_were_sent_though_packets_overtake_each_other() {
    in_lab(|| {
        let reordering = Reordering { probability: percent(5.0), late: Span(Duration::from_millis(1)) };
        let lab = lab(LinkModel { reordering: Some(reordering), ..path() });
        streams(&lab, 2).carry(&lab, 4 * MEGABYTE, Direction::Write).unwrap();
        assert!(lab.relay.stop().forward.path.reordered.segments > 0);
    });
}

#[test]
fn bytes_arrive_as_they_were_sent_though_packets_arrive_twice() {
    in_lab(|| {
        let lab = lab(LinkModel { duplication: percent(5.0), ..path() });
        streams(&lab, 2).carry(&lab, 4 * MEGABYTE, Direction::Write).unwrap();
        assert!(lab.relay.stop().forward.path.duplicated.segments > 0);
    });
}

#[test]
fn a_flipped_bit_is_noticed_by_the_receiver() {
    in_lab(|| {
        let lab = lab(LinkModel { corruption: percent(5.0), ..path() });
        streams(&lab, 2).carry(&lab, 4 * MEGABYTE, Direction::Write).unwrap();
        assert!(lab.relay.report().forward.path.corrupted.segments > 0);
        assert!(counter(&lab.server.namespace, "Tcp", "InCsumErrors") > 0);
    });
}
