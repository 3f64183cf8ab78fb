//! How long requests take, as a theory or an estimate says.

use super::{Experiment, Form, Quantity, SCSI, Theory, with_setup};

#[test]
fn several_requests_at_a_time_wait_for_each_other_when_the_network_is_full() {
    let predict = |depth: u16| {
        let text = SCSI.replace("depth = 1", &format!("depth = {depth}"));
        let plan = Experiment::parse(&text).unwrap().plan(Form::Quick).unwrap();
        let value = |theory: Theory| theory.value(&plan.cells[3].setup, Quantity::RequestTime, Some(0.0005));
        value(Theory::TimeModel).unwrap()
    };
    assert!((predict(1) - 0.0575).abs() < 0.001, "a round trip, and the time of its data: {}", predict(1));
    assert!((predict(8) - 8.0 * 0.037).abs() < 0.002, "the network is full: {}", predict(8));
}

/// The prediction for the SCSI experiment at 20 ms, with this read percentage and half the rate on the way back.
fn with_slow_way_back(theory: Theory, read_percent: u8, depth: u16, y: Quantity) -> f64 {
    let read_percent = format!("depth = {depth}\n    read_percent = {read_percent}");
    let text = SCSI
        .replace("depth = 1", &read_percent)
        .replace("congestion_control", "backward = { rate = \"470.5Mbit\" }\n    congestion_control");
    let plan = Experiment::parse(&text).unwrap().plan(Form::Quick).unwrap();
    theory.value(&plan.cells[3].setup, y, Some(0.0)).unwrap()
}

#[test]
fn a_mix_is_as_fast_as_the_direction_that_its_share_fills_first() {
    for theory in [Theory::Link, Theory::TimeModel] {
        let value = |read_percent| with_slow_way_back(theory, read_percent, 64, Quantity::Throughput);
        let writes = value(0);
        for (read_percent, share_of_writes) in [(20, 1.25), (50, 1.0), (80, 0.625), (100, 0.5)] {
            let share = value(read_percent) / writes;
            assert!((share - share_of_writes).abs() < 1e-6, "{theory:?}, {read_percent} %: {share}");
        }
    }
}

#[test]
fn a_mix_is_sent_from_the_buffers_of_both_ends() {
    let value = |read_percent: u8| {
        let text = SCSI.replace("depth = 1", &format!("depth = 64\n    read_percent = {read_percent}"));
        let plan = Experiment::parse(&text).unwrap().plan(Form::Quick).unwrap();
        assert_eq!(plan.describe(2), "RTT 20ms, buffer default");
        Theory::TimeModel.value(&plan.cells[2].setup, Quantity::Throughput, Some(0.0)).unwrap()
    };
    assert!((value(100) / value(0) - 1.0).abs() < 1e-6);
    assert!((value(50) / value(0) - 2.0).abs() < 1e-6, "{} {}", value(50), value(0));
}

#[test]
fn data_is_transferred_as_fast_as_its_own_direction_lets_it() {
    let time = |read_percent| with_slow_way_back(Theory::TimeModel, read_percent, 1, Quantity::TransferTime);
    assert!((time(100) - 2.0 * time(0)).abs() < 1e-6, "a read comes the slower way");
    assert!((time(50) - 1.5 * time(0)).abs() < 1e-6, "in the mean");
}

/// The estimated time of a list at a round trip of 20 ms, without the time before and after the workload.
fn estimate_of_list(depth: u16, list: &str) -> f64 {
    let setup = |list: &str| {
        let replay = format!("workload.replay = {{ depth = {depth}, requests = \"\"\"{list}\"\"\" }}");
        let text = with_setup(&format!("rtt = \"20ms\"\nlink = {{ rate = \"100Mbit\" }}\n[scsi]\n{replay}"));
        Experiment::parse(&text).unwrap().plan(Form::Quick).unwrap().cells[0].setup.estimate().as_secs_f64()
    };
    setup(list) - setup("")
}

#[test]
fn a_list_takes_as_long_as_its_times_say() {
    let time = estimate_of_list(4, "0, read, 0, 8\n90, write, 0, 8\n");
    assert!((90.0..90.1).contains(&time), "{time}");
}

#[test]
fn a_list_that_is_faster_than_its_depth_lets_it_takes_a_round_trip_for_each_request() {
    let list = "0, read, 0, 8\n".repeat(100);
    let time = estimate_of_list(1, &list);
    assert!((2.0..2.2).contains(&time), "{time}");
    let time = estimate_of_list(10, &list);
    assert!((0.2..0.22).contains(&time), "{time}");
}

#[test]
fn a_list_that_is_faster_than_the_path_takes_as_long_as_its_data() {
    let time = estimate_of_list(100, &"0, read, 0, 2048\n".repeat(100));
    assert!((8.4..9.0).contains(&time), "100 MiB at 100 Mbit/s: {time}");
}

#[test]
fn a_send_buffer_that_is_too_small_costs_a_pause_for_each_time_it_is_filled() {
    let plan = Experiment::parse(SCSI).unwrap().plan(Form::Quick).unwrap();
    let predict = |cell: usize, theory: Theory| {
        theory.value(&plan.cells[cell].setup, Quantity::TransferTime, Some(0.0005)).unwrap()
    };
    assert_eq!(plan.describe(2), "RTT 20ms, buffer default");
    let (ideal, limited) = (predict(2, Theory::Ideal), predict(2, Theory::TimeModel));
    // Six times two thirds of a buffer of a mebibyte, and five pauses of a round trip less the time that these take.
    let pause = 0.020 - ideal / 6.0;
    assert!((limited - ideal - 5.0 * pause).abs() < 0.0002, "{ideal} {limited}");
    assert!((predict(3, Theory::TimeModel) - ideal).abs() < 1e-6, "without the limit nothing is different");
    assert!((predict(0, Theory::TimeModel) - ideal).abs() < 1e-6, "nor without a distance");
}
