//! Programs copy between the hosts of a lab, and what they copied is compared.

use crate::world::{in_lab, link, topology};
use requirement::{Need, skip};
use ropewalk_lab::netem::{Bytes, Span};
use ropewalk_lab::program_run::{ProgramError, ProgramReport, ProgramRun};
use ropewalk_lab::workload::Direction;
use ropewalk_lab::{Lab, Topology};
use std::time::Duration;

fn run(command: &[&str], direction: Direction) -> Result<ProgramReport, ProgramError> {
    let congestion_control = Some("reno".to_owned());
    let path = topology(link(144, Duration::from_millis(2)));
    let lab = Lab::build(&Topology { congestion_control, ..path }, None).unwrap();
    let program = ProgramRun {
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        direction,
        size: Bytes(1 << 20),
        expected_time: Span(Duration::from_secs(10)),
    };
    program.run(&lab, "reno", 5)
}

#[test]
fn what_a_program_copies_there_and_back_is_what_was_to_be_copied() {
    in_lab(|| {
        let there = ["qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", "{file}", "{disk}"];
        let back = ["qemu-img", "convert", "-f", "raw", "-O", "raw", "{disk}", "{file}"];
        for (command, direction) in [(&there[..], Direction::Write), (&back, Direction::Read)] {
            match run(command, direction) {
                Err(error @ ProgramError::Start { .. }) => return skip(Need::Peers, &error.to_string()),
                report => assert!(report.unwrap().congestion_controls.iter().all(|name| name == "reno")),
            }
        }
    });
}

#[test]
fn a_program_that_copies_nothing_is_found_out() {
    in_lab(|| {
        let says_it_is_done = ["true", "{file}", "{disk}"];
        let error = run(&says_it_is_done, Direction::Read).unwrap_err();
        assert!(matches!(error, ProgramError::Different { at: 0 }), "{error}");
        let error = run(&says_it_is_done, Direction::Write).unwrap_err();
        assert!(matches!(error, ProgramError::Storage(_)), "{error}");
    });
}

#[test]
fn what_a_program_says_of_its_failure_is_told() {
    in_lab(|| {
        let command = ["sh", "-c", "echo no such disk >&2; exit 3", "{file}", "{disk}"];
        let error = run(&command, Direction::Write).unwrap_err().to_string();
        assert!(error.contains("sh ended with exit status: 3: no such disk"), "{error}");
        let error = run(&["no-such-program", "{file}", "{disk}"], Direction::Write).unwrap_err().to_string();
        assert!(error.contains("no-such-program could not be started"), "{error}");
    });
}
