//! What an analysis shows a person.

mod world;

use ropewalk_observe::report::{Cell, Figure, Report, Standing};
use world::{MS, World, data_in, r2t, read, response, write};

/// A write with a pause of a round trip amid its data, and one that has to ask; then a read.
fn report() -> Report {
    let mut world = World::new();
    let pdu = write(1, 4000, 4000);
    let (first, rest) = pdu.split_at(1000);
    world.at(20).initiator(first).at(33).initiator(rest).at(43).target(&response(1));
    world.at(50).initiator(&write(2, 4096, 0)).at(60).target(&r2t(2, 0, 4096));
    world.at(62).initiator(&world::data_out(2, 0, 4096, true)).at(73).target(&response(2));
    world.at(80).initiator(&read(3, 2048)).at(91).target(&data_in(3, 2048, true));
    world.analyse().0.report("a.pcap")
}

fn figure<'a>(report: &'a Report, title: &str) -> &'a Figure {
    let mut figures = report.sections.iter().flat_map(|section| &section.figures);
    figures.find(|figure| figure.title == title).unwrap_or_else(|| panic!("no figure {title:?}"))
}

fn names(figure: &Figure) -> Vec<&str> {
    figure.series.iter().map(|series| series.name.as_str()).collect()
}

#[test]
fn a_capture_without_holes_is_called_whole() {
    let report = report();
    assert_eq!(report.title, "iSCSI in a.pcap");
    assert!(report.verdicts.iter().all(|verdict| verdict.standing == Standing::Good));
}

#[test]
fn a_capture_that_misses_a_segment_says_so_first() {
    let mut world = World::new();
    let pdu = write(1, 4000, 4000);
    world.at(20).initiator(&pdu[..1000]).initiator_unseen(&pdu[1000..2000]).initiator(&pdu[2000..]);
    world.at(40).target(&response(1));
    let report = world.analyse().0.report("a.pcap");
    assert!(report.verdicts.iter().any(|verdict| verdict.text == "the capture missed segments"));
}

#[test]
fn the_bytes_of_a_stream_are_flat_while_it_is_silent() {
    let report = report();
    let sent = &figure(&report, "Bytes sent against time").series[0];
    assert_eq!(sent.name, "to the target");
    let last = sent.points.last().expect("there is data");
    let pdus = write(1, 4000, 4000).len() + write(2, 4096, 0).len() + world::data_out(2, 0, 4096, true).len();
    assert_eq!(last.y, (pdus + read(3, 2048).len()) as f64);
    let in_pause = |x: f64| (0.021..0.032).contains(&x);
    assert!(!sent.points.iter().any(|point| in_pause(point.x)), "nothing was sent then");
    let before = sent.points.iter().rfind(|point| point.x < 0.021).expect("the first part was sent");
    let after = sent.points.iter().find(|point| point.x > 0.032).expect("the rest was sent");
    assert_eq!((before.y, after.y), (1000.0, 1000.0));
}

#[test]
fn what_is_in_flight_is_shown_beside_the_window() {
    let report = report();
    let flight = figure(&report, "In flight");
    assert_eq!(
        names(flight),
        ["to the target", "window of the target", "to the initiator", "window of the initiator"]
    );
    let most = flight.series[0].points.iter().map(|point| point.y).fold(0.0, f64::max);
    assert_eq!(most, world::data_out(2, 0, 4096, true).len() as f64);
}

#[test]
fn round_trips_are_those_of_both_sides() {
    let report = report();
    let round_trips = figure(&report, "Round trips");
    assert_eq!(names(round_trips), ["to the target", "to the initiator"]);
    assert!(round_trips.series[0].points.iter().any(|point| (point.y - 0.010).abs() < 1e-9));
}

#[test]
fn every_command_has_its_times_in_the_figure_of_its_kind() {
    let report = report();
    let writes = figure(&report, "How long writes took");
    assert_eq!(names(writes), ["turnaround", "Ta", "Tb", "Tc"]);
    assert_eq!(writes.series[1].points.len(), 2);
    assert_eq!(figure(&report, "How long reads took").series[0].points.len(), 1);
}

#[test]
fn gaps_that_wait_for_an_r2t_are_told_from_others() {
    let report = report();
    let gaps = figure(&report, "Gaps amid data");
    assert_eq!(names(gaps), ["data could have been sent", "waiting for an R2T"]);
    let pause = &gaps.series[0].points[0];
    assert_eq!((pause.x, pause.y), (0.020, 0.013));
    let longest = &gaps.table.as_ref().expect("it has a table of its own").rows[0].cells;
    assert_eq!(longest[1], Cell::Number(13.0 * MS as f64 / 1e9));
}

#[test]
fn the_shares_of_a_cycle_add_up() {
    let report = report();
    let table = &report.sections[1].tables[1];
    assert_eq!(table.rows.len(), 2, "writes and reads");
    for row in &table.rows {
        let number = |cell: &Cell| if let Cell::Number(number) = cell { *number } else { 0.0 };
        let sum: f64 = row.cells[1..].iter().map(number).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }
}
