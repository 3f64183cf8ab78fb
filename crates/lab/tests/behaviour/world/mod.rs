//! Labs for the tests: with root's rights, or in a user namespace, or not at all, which is said.

pub mod made_up;

use requirement::{Need, skip};
use ropewalk_lab::Congestion;
use ropewalk_lab::netem::{LinkModel, PathModel, Rate};
use ropewalk_lab::{
    Experiment, Folder, Form, Lab, Namespace, Plan, RelayReport, Rights, Streams, Topology, execute,
    in_user_namespace, run_series,
};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Set for a test that was started again in a user namespace.
const AGAIN: &str = "ROPEWALK_TEST_IN_USER_NAMESPACE";

/// Calls `test` where labs can be built. Without root that is another process: this test's program once more, in a user
/// namespace.
pub fn in_lab(test: impl FnOnce()) {
    match Rights::of_this_process() {
        Ok(_) => test(),
        Err(reason) if std::env::var_os(AGAIN).is_some() => skip(Need::Netns, &reason.to_string()),
        Err(reason) => {
            let mut command = again();
            in_user_namespace(command.env(AGAIN, "1"));
            // Whether there can be one is asked of a program that does nothing else.
            let mut nothing = Command::new("true");
            in_user_namespace(&mut nothing);
            match nothing.status() {
                Ok(_) => assert_ran(&mut command, "in a user namespace"),
                Err(error) => skip(Need::Netns, &format!("{reason}: {error}")),
            }
        }
    }
}

/// The harness's announcement of a process that runs the one test it was started for.
pub const ONE_TEST: &str = "running 1 test";

/// Runs [`again`]'s process, which must find its test and pass it.
pub fn assert_ran(command: &mut Command, place: &str) {
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.lines().any(|line| line == ONE_TEST), "{place}: {said}");
}

/// This test once more, as a process of its own.
pub fn again() -> Command {
    let name = std::thread::current().name().expect("the harness names its threads").to_owned();
    let mut command = Command::new(std::env::current_exe().expect("it is running"));
    command.args([&name, "--exact", "--nocapture", "--test-threads=1"]);
    command
}

/// A clean path, the same in both directions.
pub fn link(megabits_per_second: u64, delay: Duration) -> LinkModel {
    LinkModel::new(Rate::megabits_per_second(megabits_per_second), delay)
}

/// A lab with that path in both directions.
pub fn lab(link: LinkModel) -> Lab {
    Lab::build(&topology(link), None).unwrap()
}

pub fn topology(link: LinkModel) -> Topology {
    Topology::new(PathModel::symmetric(link))
}

/// The congestion control that every machine has.
pub fn reno() -> Congestion {
    Congestion::named("reno")
}

/// To the server by IPv4.
pub fn streams(lab: &Lab, count: u8) -> Streams {
    Streams { count, congestion: Some(reno()), send_buffer: None, to: lab.server.addresses[0] }
}

/// Of the kernel's table in `file` below /proc/net, in that namespace: the number in the column `name` of `protocol`.
pub fn counter(namespace: &Namespace, protocol: &str, name: &str) -> u64 {
    let table = namespace.run(|| fs::read_to_string("/proc/thread-self/net/snmp")).unwrap().unwrap();
    let mut lines = table.lines().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(": "));
    let (names, numbers) = (lines.next().unwrap(), lines.next().unwrap());
    let mut columns = names.split(' ').zip(numbers.split(' '));
    columns.find(|(column, _)| *column == name).unwrap().1.parse().unwrap()
}

/// So many answers of a relay take minutes.
const ANSWERS_MAX: usize = 10_000_000;

/// Asks the relay until it says so.
pub fn until(lab: &Lab, holds: impl Fn(&RelayReport) -> bool) -> RelayReport {
    let mut reports = (0..ANSWERS_MAX).map(|_| lab.relay.report());
    reports.find(holds).expect("the relay comes to it")
}

/// The quick form of an experiment.
pub fn plan(experiment: &str) -> Plan {
    Experiment::parse(experiment).unwrap().plan(Form::Quick).unwrap()
}

/// Real runs of an experiment, and where their results are. One attempt each, valid or not: that depends on what else this
/// machine does.
pub fn run_once(experiment: &str) -> (TempDir, Folder) {
    let place = tempfile::tempdir().unwrap();
    let experiment = Experiment::parse(experiment).unwrap();
    let plan = Plan { attempts: 1, ..experiment.plan(Form::Quick).unwrap() };
    let mut results = Folder::begin_or_go_on(place.path(), &experiment, &plan).unwrap();
    run_series(&plan, &mut results, execute, |_| ()).unwrap();
    drop(results);
    let results = Folder::open(place.path()).unwrap();
    (place, results)
}
