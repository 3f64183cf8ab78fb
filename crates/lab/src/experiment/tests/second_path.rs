//! A second path, to the server's second address.

use super::{Experiment, Form, assert_more_refused};
use std::time::Duration;

const TWO_PATHS: &str = r#"
    title = "A test"
    [setup]
    rtt = "40ms"
    link = { rate = "100Mbit", loss = { random = "0.1%" } }
    congestion_control = "reno"
    second = { rtt = "10ms", link = { rate = "30Mbit" } }
    [setup.scsi]
    session = { connections = 4 }
    workload.pattern = { request_size = "64KiB", end.requests = 10 }
"#;

#[test]
fn the_second_path_is_as_the_first_but_for_what_it_says() {
    let plan = Experiment::parse(TWO_PATHS).unwrap().plan(Form::Quick).unwrap();
    let setup = &plan.cells[0].setup;
    let topology = setup.topology(1);
    let second = topology.second.expect("it was asked for");
    assert_eq!(topology.addresses, 2);
    assert_eq!(second.round_trip(), Duration::from_millis(10));
    assert_eq!(second.forward.rate, netem::Rate::megabits_per_second(30));
    assert_eq!(second.forward.loss, topology.path.forward.loss);
    let together = setup.payload_bits_per_second(0.0) / 1e6;
    assert!((120.0..130.0).contains(&together), "{together} Mbit/s");
}

#[test]
fn packets_are_no_longer_than_both_paths_allow() {
    let narrow = TWO_PATHS.replace("rate = \"30Mbit\"", "rate = \"30Mbit\", mtu = 1400");
    let plan = Experiment::parse(&narrow).unwrap().plan(Form::Quick).unwrap();
    assert_eq!(plan.cells[0].setup.mtu(), 1400);
}

#[test]
fn a_second_path_is_for_sessions() {
    assert_more_refused("[setup.second]", &["setup.second is for scsi"]);
}
