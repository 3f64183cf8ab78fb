//! Programs copy between the hosts of a lab, and what they copied is compared.

use crate::world::{in_lab, link, reno, topology};
use requirement::{Need, skip};
use ropewalk_lab::netem::{Bytes, Span};
use ropewalk_lab::program_run::{Extents, ProgramError, ProgramReport, ProgramRun, ServerProgram};
use ropewalk_lab::workload::Direction;
use ropewalk_lab::{Lab, Topology};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::BTreeMap;
use std::time::Duration;

fn run(command: &[&str], direction: Direction) -> Result<ProgramReport, ProgramError> {
    program(command, direction, None).run(&lab(), &reno(), 5)
}

fn lab() -> Lab {
    let congestion_control = Some("reno".to_owned());
    let path = topology(link(144, Duration::from_millis(2)));
    Lab::build(&Topology { congestion_control, ..path }, None).unwrap()
}

fn program(command: &[&str], direction: Direction, server: Option<ServerProgram>) -> ProgramRun {
    ProgramRun {
        command: words(command),
        direction,
        size: Bytes(1 << 20),
        extents: None,
        expected_time: Span(Duration::from_secs(10)),
        chooses_congestion_control: false,
        rehearsals: 0,
        server,
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn what_a_program_keeps_of_a_rehearsal_it_finds_again() {
    in_lab(|| {
        let script =
            "test ! -e $XDG_STATE_HOME/kept || { echo found it >&2; exit 3; }; touch $XDG_STATE_HOME/kept";
        let command = ["sh", "-c", script, "{file}", "{disk}"];
        let run = |rehearsals| {
            let program = ProgramRun { rehearsals, ..program(&command, Direction::Read, None) };
            program.run(&lab(), &reno(), 5).unwrap_err().to_string()
        };
        assert!(run(0).contains("differs"));
        assert!(run(1).contains("found it"));
    });
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

/// A server of one client: sends its disk, or stores what arrives and answers when it has all of it.
const SERVE: &str = r#"
    use IO::Socket::INET;
    my $listener = IO::Socket::INET->new(LocalAddr => $ENV{LISTEN}, Listen => 1) or die "cannot listen: $!";
    my $client = $listener->accept;
    -e "{state}/prepared" or die "nobody prepared me";
    open(my $disk, "+<", "{backing}") or die "cannot open the disk: $!";
    undef $/;
    if ($ENV{DIRECTION} eq "read") { print {$client} <$disk>; exit }
    read($client, my $data, 1 << 20);
    print $disk $data;
    close $disk;
    print $client ".";
"#;

fn server(direction: &str) -> ServerProgram {
    let environment = [("LISTEN", "{address}:{port}"), ("DIRECTION", direction)];
    ServerProgram {
        command: words(&["perl", "{state}/serve.pl"]),
        url: "{address}/{port}".to_owned(),
        prepare: vec![words(&["touch", "{state}/prepared"])],
        environment: environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        files: BTreeMap::from([("serve.pl".to_owned(), SERVE.to_owned())]),
    }
}

/// The client of such a server.
const FETCH: [&str; 3] = ["bash", "-c", "cat </dev/tcp/{disk} >{file}"];
const STORE: [&str; 3] = ["bash", "-c", "exec 3<>/dev/tcp/{disk}; cat {file} >&3; head -c 1 <&3"];

#[test]
fn a_server_of_ones_own_serves_in_both_directions() {
    in_lab(|| {
        for (command, direction, word) in
            [(FETCH, Direction::Read, "read"), (STORE, Direction::Write, "write")]
        {
            let report = program(&command, direction, Some(server(word))).run(&lab(), &reno(), 5).unwrap();
            assert!(report.session.is_none(), "our target has no part in it");
        }
    });
}

#[test]
fn a_copy_at_a_server_of_ones_own_is_compared_too() {
    in_lab(|| {
        let forgets = SERVE.replace("print $disk $data", "print $disk substr($data, 0, -1)");
        let files = BTreeMap::from([("serve.pl".to_owned(), forgets)]);
        let wrong = ServerProgram { files, ..server("write") };
        let error = program(&STORE, Direction::Write, Some(wrong)).run(&lab(), &reno(), 5).unwrap_err();
        assert!(matches!(error, ProgramError::Different { .. }), "{error}");
    });
}

#[test]
fn a_server_that_fails_is_quoted() {
    in_lab(|| {
        let fails = |server: ServerProgram| {
            program(&FETCH, Direction::Read, Some(server)).run(&lab(), &reno(), 5).unwrap_err().to_string()
        };
        let command = words(&["bash", "-c", "echo no disk today >&2; exit 3"]);
        let error = fails(ServerProgram { command, ..server("read") });
        assert!(error.contains("bash ended with exit status: 3: no disk today"), "{error}");
        let error = fails(ServerProgram { prepare: Vec::new(), ..server("read") });
        assert!(error.contains("perl at the server said: nobody prepared me"), "{error}");
        let error = fails(ServerProgram { prepare: vec![words(&["false"])], ..server("read") });
        assert!(error.contains("false ended with"), "{error}");
        let error = fails(ServerProgram { command: words(&["no-such-server"]), ..server("read") });
        assert!(error.contains("no-such-server could not be started"), "{error}");
    });
}

#[test]
fn a_server_and_all_its_processes_end_with_the_run() {
    in_lab(|| {
        let folder = tempfile::tempdir().unwrap();
        let pids = folder.path().join("pids");
        let script = format!("sleep 1000 & echo $$ $! >{}; exec perl {{state}}/serve.pl", pids.display());
        let server = ServerProgram { command: words(&["bash", "-c", &script]), ..server("read") };
        program(&FETCH, Direction::Read, Some(server)).run(&lab(), &reno(), 5).unwrap();
        let pids = std::fs::read_to_string(pids).unwrap();
        let pids: Vec<Pid> =
            pids.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()).collect();
        assert_eq!(pids.len(), 2);
        pids.into_iter().for_each(wait_until_ended);
    });
}

fn wait_until_ended(process: Pid) {
    let Ok(process) = pidfd_open(process, PidfdFlags::empty()) else { return };
    let patience = Timespec { tv_sec: 10, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&patience)), Ok(1), "it goes on");
}

#[test]
fn data_with_holes_is_copied_and_compared() {
    in_lab(|| {
        let whole = program(&FETCH, Direction::Read, Some(server("read")));
        let extents = Some(Extents { count: 4, every: Bytes(1 << 20) });
        ProgramRun { extents, ..whole }.run(&lab(), &reno(), 5).unwrap();
        let nothing = program(&["true", "{from}", "{to}"], Direction::Write, None);
        let error = ProgramRun { extents, ..nothing }.run(&lab(), &reno(), 5).unwrap_err();
        assert!(matches!(error, ProgramError::Storage(_)), "{error}");
    });
}
