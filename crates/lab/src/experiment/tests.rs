//! Experiments as they are written, and what comes of them.

mod beside;
mod request_model;
mod second_path;

use super::*;
use crate::topology::IpVersion;
use crate::workload::Direction;
use netem::Span;
use std::time::Duration;

const BASE: &str = r#"
    title = "A test"
    [setup]
    rtt = "10ms"
    link = { rate = "100Mbit" }
    congestion_control = "reno"
    streams = { count = 1, measured = "1s" }
"#;

fn parse(more: &str) -> Result<Experiment, InvalidExperiment> {
    Experiment::parse(&format!("{BASE}\n{more}"))
}

fn quick(more: &str) -> Plan {
    parse(more).unwrap().plan(Form::Quick).unwrap()
}

fn streams(plan: &Plan, cell: usize) -> StreamsSetup {
    match plan.cells[cell].setup.load() {
        RunLoad::Streams(streams) => *streams,
        _ => panic!("streams were asked for"),
    }
}

/// Everything that an error must say.
fn assert_refused(text: &str, parts: &[&str]) {
    let error = Experiment::parse(text).expect_err("it is wrong").to_string();
    for part in parts {
        assert!(error.contains(part), "{part:?} is not in: {error}");
    }
}

fn assert_more_refused(more: &str, parts: &[&str]) {
    assert_refused(&format!("{BASE}\n{more}"), parts);
}

const RTTS: &str = r#"
    [[vary]]
    name = "RTT"
    key = "rtt"
    values = ["0ms", "20ms"]
"#;
const CONTROLS: &str = r#"
    [[vary]]
    name = "control"
    key = "congestion_control"
    values = ["reno", "cubic", "bbr"]
"#;
const CASES: &str = r#"
    [[vary]]
    name = "path"
    cases = [
      { name = "clean", setup = {} },
      { name = "lossy", setup = { link.loss = { random = "1%" }, streams.count = 4 } },
    ]
"#;

#[test]
fn an_experiment_in_which_nothing_varies_is_one_run() {
    let plan = quick("");
    assert_eq!((plan.cells.len(), plan.runs.len()), (1, 1));
    assert_eq!(plan.runs[0], PlannedRun { cell: 0, repetition: 1, seed: 1 });
    assert_eq!(plan.cells[0].setup.rtt, Span(Duration::from_millis(10)));
}

#[test]
fn every_value_is_run_with_every_value_of_the_others() {
    let plan = quick(&format!("{RTTS}{CONTROLS}"));
    let labels: Vec<_> = plan.cells.iter().map(|cell| cell.labels.join(" ")).collect();
    assert_eq!(labels, ["0ms reno", "0ms cubic", "0ms bbr", "20ms reno", "20ms cubic", "20ms bbr"]);
    for cell in &plan.cells {
        assert_eq!(cell.setup.rtt, cell.labels[0].parse().unwrap());
        assert_eq!(cell.setup.congestion_control, cell.labels[1]);
    }
    assert_eq!(plan.describe(5), "RTT 20ms, control bbr");
}

#[test]
fn a_case_sets_several_keys_and_leaves_the_others() {
    let plan = quick(CASES);
    let count = |cell: usize| streams(&plan, cell).count;
    let lossy = |cell: usize| plan.cells[cell].setup.path().forward.loss != netem::Loss::None;
    assert_eq!((count(0), lossy(0), count(1), lossy(1)), (1, false, 4, true));
    assert_eq!(streams(&plan, 1).end(), StreamsEnd::Time(Span(Duration::from_secs(1))));
}

#[test]
fn the_round_trip_is_half_in_each_direction_and_the_way_back_can_differ() {
    let plan = quick("[setup.backward]\nrate = \"1Mbit\"");
    let path = plan.cells[0].setup.path();
    assert_eq!(path.round_trip(), Duration::from_millis(10));
    assert_eq!(path.forward.delay, path.backward().delay);
    let rate = |megabits| netem::Rate::megabits_per_second(megabits);
    assert_eq!((path.forward.rate, path.backward().rate), (rate(100), rate(1)));
}

#[test]
fn a_form_has_its_own_values_settings_and_repetitions() {
    let more = format!(
        "{RTTS}{CASES}\n[quick]\nvalues.RTT = [\"5ms\"]\nvalues.path = [\"lossy\"]\nsetup.streams.measured = \"200ms\"\n\
         [full]\nrepetitions = 3"
    );
    let experiment = parse(&more).unwrap();
    let (quick, full) = (experiment.plan(Form::Quick).unwrap(), experiment.plan(Form::Full).unwrap());
    assert_eq!((quick.runs.len(), full.runs.len()), (1, 2 * 2 * 3));
    assert_eq!((quick.labels("RTT"), quick.labels("path")), (vec!["5ms"], vec!["lossy"]));
    assert_eq!(streams(&quick, 0).end(), StreamsEnd::Time(Span(Duration::from_millis(200))));
    assert_eq!(streams(&full, 0).end(), StreamsEnd::Time(Span(Duration::from_secs(1))));
    assert!(quick.estimate() < full.estimate());
}

const WRITES: &str = r#"
    title = "A test"
    [setup]
    rtt = "10ms"
    link = { rate = "100Mbit" }
    congestion_control = "reno"
    scsi.workload.pattern = { request_size = "64KiB", end.requests = 1 }
"#;

#[test]
fn a_capture_is_a_window_with_limits() {
    let captured = |more: &str| format!("{WRITES}capture = {{ from = \"1s\", to = \"2s\"{more} }}");
    assert!(Experiment::parse(&captured(", at = \"server\", snap = \"1KiB\", max = \"1MiB\"")).is_ok());
    let setup = Experiment::parse(&captured("")).unwrap().plan(Form::Quick).unwrap().cells.remove(0).setup;
    assert_eq!(setup.capture.unwrap().host_name(), "client");
    assert!(setup.quantities().contains(&Quantity::GapTime));
    assert_refused(&captured("").replace("2s", "1s"), &["setup.capture.to is 1s", "after from"]);
    assert_refused(&captured(", snap = \"64B\""), &["setup.capture.snap", "128B"]);
    assert_refused(&captured(", max = \"2GiB\""), &["setup.capture.max", "1GiB"]);
    assert_refused(&captured(", at = \"relay\""), &["capture.at", "client", "server"]);
}

#[test]
fn what_is_captured_can_only_be_drawn_of_a_capture_and_commands_only_of_commands() {
    for (key, value) in [("y", "[\"packets_sent\"]"), ("right", "[\"sending_rate\"]"), ("gaps", "true")] {
        let y = if key == "y" { "" } else { "y = [\"in_flight\"]" };
        let trace = format!("[[trace]]\n{y}\n{key} = {value}");
        assert_refused(&format!("{WRITES}{trace}"), &["trace 1", key, "no setup.capture"]);
    }
    for line in ["events = [\"status\"]", "commands = 1"] {
        assert_more_refused(
            &format!("[[trace]]\ny = [\"in_flight\"]\n{line}"),
            &["streams have no commands"],
        );
    }
    assert_refused(&format!("{WRITES}[[plot]]\nx = \"RTT\"\ny = \"gap_time\"{RTTS}"), &["gap_time"]);
}

#[test]
fn repetitions_come_round_by_round_and_what_is_compared_has_the_same_seed() {
    let plan = quick(&format!("{RTTS}\n[quick]\nrepetitions = 2"));
    let order: Vec<_> = plan.runs.iter().map(|run| (run.repetition, run.cell, run.seed)).collect();
    assert_eq!(order, [(1, 0, 1), (1, 1, 1), (2, 0, 2), (2, 1, 2)]);
}

#[test]
fn an_unknown_key_is_refused_with_those_that_are_known() {
    let misspelt = BASE.replace("title", "titel");
    assert_refused(&misspelt, &["titel", "title", "line 2"]);
    assert_refused(
        &BASE.replace("count = 1", "counts = 1"),
        &["setup.streams", "counts", "`count`", "`measured`"],
    );
    assert_refused(&BASE.replace("rate =", "rat ="), &["setup.link", "`rat`", "`rate`", "`queue`"]);
    assert_more_refused("[quick]\nrepetition = 2", &["repetition", "`repetitions`"]);
    assert_more_refused(&RTTS.replace("\"rtt\"", "\"rt\""), &["with RTT 0ms", "setup", "`rt`", "`rtt`"]);
}

#[test]
fn a_wrong_value_is_refused_with_its_key_and_what_is_allowed() {
    assert_refused(&BASE.replace("\"10ms\"", "\"10\""), &["setup.rtt", "\"10\"", "as in 20ms"]);
    assert_refused(&BASE.replace("100Mbit", "100Mb"), &["setup.link.rate", "144Mbit"]);
    assert_refused(&BASE.replace("\"1s\"", "\"0s\""), &["setup.streams.measured", "must be a time"]);
    assert_refused(&BASE.replace("count = 1", "count = 0"), &["setup.streams.count", "1 to 255"]);
    assert_more_refused(&CASES.replace("1%", "101%"), &["with path lossy", "setup.link.loss", "percentage"]);
    assert_more_refused("[setup.backward]\nmtu = 1", &["setup.link", "mtu", "68 to 65535"]);
    assert_more_refused("[setup.backward]\ndelay = \"1ms\"", &["setup.backward.delay", "half of setup.rtt"]);
}

#[test]
fn ip_is_version_4_unless_6_is_asked_for() {
    assert_eq!(quick("").cells[0].setup.topology(1).ip, IpVersion::V4);
    let with = |more: &str| BASE.replace("rtt = ", &format!("{more}\n    rtt = "));
    let plan = Experiment::parse(&with("ip = 6")).unwrap().plan(Form::Quick).unwrap();
    assert_eq!(plan.cells[0].setup.topology(1).ip, IpVersion::V6);
    assert_refused(&with("ip = 5"), &["setup.ip", "version 5", "4 or 6"]);
    assert_refused(&with("ip = \"6\""), &["setup.ip", "string"]);
    assert_refused(&with("ip = 6\n    host_mtu = 1000"), &["mtu is 1000", "IPv6", "1280"]);
}

#[test]
fn the_congestion_control_must_be_named() {
    let without = BASE.replace("congestion_control = \"reno\"", "");
    assert_refused(&without, &["setup", "missing field `congestion_control`"]);
}

#[test]
fn what_is_varied_wrongly_is_refused() {
    assert_more_refused("[[vary]]\nname = \"x\"", &["vary \"x\"", "key and values", "cases"]);
    assert_more_refused(&RTTS.replace("\"0ms\", \"20ms\"", ""), &["vary \"RTT\"", "no value"]);
    assert_more_refused(&RTTS.replace("\"0ms\"", "\"20ms\""), &["vary \"RTT\"", "twice"]);
    assert_more_refused(&format!("{RTTS}{RTTS}"), &["\"RTT\" is varied twice"]);
    assert_more_refused(
        &format!("{RTTS}\n[quick]\nvalues.rtt = [\"1ms\"]"),
        &["quick.values", "\"rtt\"", "\"RTT\""],
    );
    assert_more_refused(&format!("{CASES}\n[full]\nvalues.path = [\"dirty\"]"), &["dirty", "clean, lossy"]);
    assert_more_refused("[full]\nrepetitions = 0", &["full.repetitions", "1 or more"]);
}

#[test]
fn what_cannot_be_plotted_is_refused() {
    let plot = |x: &str, y: &str| format!("{RTTS}{CONTROLS}\n[[plot]]\nx = \"{x}\"\ny = \"{y}\"");
    parse(&plot("RTT", "throughput")).unwrap();
    assert_more_refused(&plot("rtt", "throughput"), &["plot 1, x", "\"rtt\"", "\"RTT\", \"control\""]);
    assert_more_refused(&plot("control", "throughput"), &["plot 1, x", "reno, cubic, bbr", "numbers"]);
    assert_more_refused(&plot("RTT", "speed"), &["speed", "`throughput`"]);
    let only = |name: &str| format!("{}\nonly = {{ control = [\"{name}\"] }}", plot("RTT", "throughput"));
    parse(&only("bbr")).unwrap();
    assert_more_refused(&only("vegas"), &["plot 1, only", "vegas", "reno, cubic, bbr"]);
}

#[test]
fn what_cannot_be_traced_is_refused() {
    let trace = |more: &str| format!("{RTTS}\n[[trace]]\n{more}");
    parse(&trace(
        "y = [\"send_queue\", \"send_buffer\"]\nright = [\"in_flight\"]\nonly = { RTT = [\"20ms\"] }",
    ))
    .unwrap();
    assert_more_refused(&trace("y = []"), &["trace 1, y", "nothing"]);
    assert_more_refused(&trace("y = [\"cwnd\"]"), &["cwnd", "`congestion_window`"]);
    assert_more_refused(&trace("y = [\"send_queue\", \"in_flight\"]"), &["trace 1, y", "one unit"]);
    assert_more_refused(
        &trace("y = [\"in_flight\"]\nonly = { RTT = [\"7ms\"] }"),
        &["trace 1, only", "0ms, 20ms"],
    );
    assert_more_refused(&trace("y = [\"in_flight\"]\nfrom = \"1s\"\nto = \"1s\""), &["trace 1, to"]);
}

#[test]
fn looking_all_the_time_is_refused() {
    let often = BASE.replace("rtt = ", "sample_every = \"10us\"\n    rtt = ");
    assert_refused(&often, &["setup.sample_every", "10us", "at least 1ms"]);
}

const SCSI: &str = r#"
    title = "A test"
    [setup]
    link = { rate = "941Mbit", framing = 0, mtu = 1500 }
    congestion_control = "reno"
    [setup.scsi.workload.pattern]
    request_size = "4MiB"
    depth = 1
    end = { requests = 10 }
    [setup.scsi.session]
    initial_r2t = false
    immediate_data = true
    first_burst = "4MiB"
    max_burst = "4MiB"
    [[vary]]
    name = "RTT"
    key = "rtt"
    values = ["0ms", "20ms"]
    [[vary]]
    name = "buffer"
    cases = [
      { name = "default", setup = { scsi.sockets.send_buffer = "512KiB" } },
      { name = "large", setup = {} },
    ]
    [[plot]]
    x = "RTT"
    y = "transfer_time"
    theory = ["ideal", "time_model"]
"#;

#[test]
fn a_workload_of_commands_is_read_with_its_session_and_sockets() {
    let plan = Experiment::parse(SCSI).unwrap().plan(Form::Quick).unwrap();
    let RunLoad::Scsi(run) = plan.cells[0].setup.load() else { panic!("commands were asked for") };
    assert_eq!(run.sockets.send_buffer, Some(netem::Bytes(512 << 10)));
    assert_refused(&SCSI.replace("depth = 1", "deep = 1"), &["setup.scsi.workload", "deep", "`depth`"]);
    assert_refused(&SCSI.replace("4MiB", "4097B"), &["setup.scsi.workload", "request_size", "whole blocks"]);
    assert_refused(&SCSI.replace("transfer_time", "fairness"), &["plot 1, y", "fairness", "host_time"]);
}

#[test]
fn a_setup_has_one_workload() {
    let streams = "streams = { count = 1, measured = \"1s\" }";
    assert_refused(&BASE.replace(streams, ""), &["streams, scsi or program"]);
    assert_refused(
        &SCSI.replace("congestion_control", &format!("{streams}\ncongestion_control")),
        &["more than one of streams, scsi and program"],
    );
}

#[test]
fn streams_can_carry_a_fixed_amount_in_either_direction() {
    let sized = |more: &str| {
        let streams = format!("streams = {{ count = 4, size = \"1MiB\", expected_time = \"2s\"{more} }}");
        BASE.replace("streams = { count = 1, measured = \"1s\" }", &streams)
    };
    let plan = Experiment::parse(&sized(", direction = \"read\"")).unwrap().plan(Form::Quick).unwrap();
    assert_eq!(streams(&plan, 0).end(), StreamsEnd::Size(netem::Bytes(1 << 20), Direction::Read));
    assert!(plan.estimate() > Duration::from_secs(2));
    assert_refused(&sized(", measured = \"1s\""), &["setup.streams", "measured or size"]);
    assert_refused(&sized("").replace("2s", "0s"), &["setup.streams.expected_time", "a time"]);
    assert_refused(&sized("").replace("1MiB", "0B"), &["setup.streams.size", "1 byte or more"]);
    let read_for_a_time = BASE.replace("count = 1,", "count = 1, direction = \"read\",");
    assert_refused(&read_for_a_time, &["setup.streams.direction", "size"]);
}

#[test]
fn direction_and_amount_are_those_of_whatever_workload_a_case_has() {
    let program = r#"
        [[vary]]
        name = "direction"
        key = "direction"
        values = ["write", "read"]
        [[vary]]
        name = "copy"
        [[vary.cases]]
        name = "streams"
        setup.streams.count = 1
        [[vary.cases]]
        name = "program"
        setup.program.command = ["cp", "{from}", "{to}"]
    "#;
    let streams = "streams = { count = 1, measured = \"1s\" }";
    let amount = "size = \"1MiB\"\nexpected_time = \"1s\"";
    let plan = Experiment::parse(&format!("{}{program}", BASE.replace(streams, amount))).unwrap();
    let plan = plan.plan(Form::Quick).unwrap();
    let shares: Vec<f64> = plan.cells.iter().map(|cell| cell.setup.read_share()).collect();
    assert_eq!(shares, [0.0, 0.0, 1.0, 1.0]);
    for (key, value) in [("direction", "read"), ("size", "1MiB"), ("expected_time", "1s")] {
        let scsi = SCSI.replace("congestion_control", &format!("{key} = \"{value}\"\ncongestion_control"));
        assert_refused(&scsi, &[&format!("setup.{key}"), "scsi.workload"]);
    }
}

#[test]
fn an_override_applies_to_the_combinations_that_it_names() {
    let parts = r#"
        [[override]]
        only = { RTT = ["20ms"] }
        setup.streams.count = 2
        [[override]]
        only = { RTT = ["20ms"], control = ["cubic", "bbr"] }
        setup.streams.count = 3
    "#;
    let plan = quick(&format!("{RTTS}{CONTROLS}{parts}"));
    let counts: Vec<u8> = (0..plan.cells.len()).map(|cell| streams(&plan, cell).count).collect();
    assert_eq!(counts, [1, 1, 1, 2, 3, 3]);
    let unknown = parts.replace("bbr", "bbr9");
    let refusal = &["override 2, only", "control", "never bbr9", "reno, cubic, bbr"];
    assert_more_refused(&format!("{RTTS}{CONTROLS}{unknown}"), refusal);
    assert_more_refused(&format!("{RTTS}{parts}"), &["override 2, only", "control", "not varied"]);
}

const PROGRAM: &str = r#"
    title = "A test"
    [setup]
    rtt = "10ms"
    link = { rate = "100Mbit" }
    backward = { rate = "50Mbit" }
    congestion_control = "reno"
    [setup.program]
    command = ["cp", "{file}", "{disk}"]
    direction = "write"
    size = "1MiB"
    expected_time = "2s"
    [[vary]]
    name = "direction"
    key = "program.direction"
    values = ["write", "read"]
    [[plot]]
    x = "direction"
    y = "throughput"
    bars = true
    share_of = "write"
"#;

#[test]
fn a_program_is_told_what_it_copies_and_its_host_which_congestion_control_it_uses() {
    let plan = Experiment::parse(PROGRAM).unwrap().plan(Form::Quick).unwrap();
    let setup = &plan.cells[0].setup;
    let RunLoad::Program(program) = setup.load() else { panic!("a program was asked for") };
    assert_eq!((program.size, program.direction), (netem::Bytes(1 << 20), Direction::Write));
    assert_eq!(setup.topology(1).congestion_control.as_deref(), Some("reno"));
    assert!(setup.estimate() > Duration::from_secs(2));
    let links = plan.cells.iter().map(|cell| {
        Theory::Link.value(&cell.setup, Quantity::Throughput, None).expect("the link has a rate")
    });
    let links: Vec<f64> = links.collect();
    assert!((links[0] / links[1] - 2.0).abs() < 1e-9, "data that is read comes the other way");
    assert_refused(&PROGRAM.replace("{disk}", "disk"), &["setup.program.command", "{disk}"]);
    assert_refused(&PROGRAM.replace("1MiB", "1000B"), &["setup.program.size", "whole blocks of 512"]);
    assert_refused(&PROGRAM.replace("\"2s\"", "\"0s\""), &["setup.program.expected_time", "a time"]);
}

#[test]
fn a_program_may_have_a_server_of_its_own_and_data_with_holes() {
    let with = |more: &str| PROGRAM.replace("[[vary]]", &format!("{more}\n[[vary]]"));
    let server = r#"
        [setup.program.server]
        command = ["serve", "{address}", "{port}", "{backing}"]
        url = "disk://{address}:{port}"
        prepare = [["ready", "{state}"]]
        environment = { STATE = "{state}" }
        files = { "serve.conf" = "disk = {backing}" }
    "#;
    let plan = Experiment::parse(&with(server)).unwrap().plan(Form::Quick).unwrap();
    let RunLoad::Program(program) = plan.cells[0].setup.load() else { panic!("a program was asked for") };
    assert_eq!(program.server.as_ref().unwrap().url, "disk://{address}:{port}");
    assert_refused(
        &with(&server.replace("[\"ready\", \"{state}\"]", "[]")),
        &["setup.program.server", "prepare"],
    );
    assert_refused(&with(&server.replace("serve.conf", "../x")), &["setup.program.server.files", "../x"]);
    assert_refused(&with(&server.replace("url", "link")), &["setup.program.server", "link", "`url`"]);
    let holes = "extents = { count = 3, every = \"1MiB\" }";
    assert_refused(&with(holes), &["setup.program.extents.count", "must divide"]);
}

#[test]
fn names_can_have_bars_and_a_share_is_of_one_of_them() {
    assert_refused(&PROGRAM.replace("bars = true", ""), &["plot 1, x", "write, read", "numbers"]);
    let other = PROGRAM.replace("share_of = \"write\"", "share_of = \"copy\"");
    assert_refused(&other, &["plot 1, share_of", "never copy", "write, read"]);
}

#[test]
fn what_cannot_be_predicted_is_refused() {
    let prediction =
        |more: &str| format!("{SCSI}[[prediction]]\nof = \"request_time\"\nby = \"time_model\"\n{more}");
    let experiment = Experiment::parse(&prediction("series = \"buffer\"")).unwrap();
    assert_eq!(experiment.predictions().len(), 1);
    assert_refused(&prediction("series = \"depth\""), &["prediction 1, series", "\"depth\"", "\"RTT\""]);
    let of = |quantity: &str| prediction("").replace("request_time", quantity);
    assert_refused(&of("fairness"), &["prediction 1, of", "fairness", "request_time"]);
    assert_refused(&of("speed"), &["speed", "`request_time`"]);
}

/// The reference of experiment files.
const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/README.md");

/// A piece of a setup as a whole experiment.
fn with_setup(piece: &str) -> String {
    let piece: toml::Table = toml::from_str(piece).unwrap();
    let mut experiment: toml::Table = toml::from_str(BASE).unwrap();
    let setup = experiment["setup"].as_table_mut().unwrap();
    if ["scsi", "program", "streams"].iter().any(|load| piece.contains_key(*load)) {
        setup.remove("streams");
    }
    overlay::lay(setup, &piece);
    toml::to_string(&experiment).unwrap()
}

#[test]
fn every_example_of_the_reference_is_an_experiment_or_a_piece_of_a_setup() {
    let reference = std::fs::read_to_string(REFERENCE).unwrap();
    let examples = reference.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let examples: Vec<&str> = examples.collect();
    assert!(!examples.is_empty());
    for example in examples {
        let is_whole = example.starts_with("title");
        let text = if is_whole { example.to_owned() } else { with_setup(example) };
        if let Err(error) = Experiment::parse(&text) {
            panic!("{error}\n{example}");
        }
    }
}

#[test]
fn every_experiment_of_the_repository_can_be_run() {
    let experiments = std::path::Path::new(REFERENCE).parent().unwrap();
    let folders = std::fs::read_dir(experiments).unwrap().map(|entry| entry.unwrap().path());
    let files = folders.filter(|path| path.is_dir()).flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    let experiments: Vec<_> =
        files.iter().filter(|path| path.extension().is_some_and(|ending| ending == "toml")).collect();
    assert!(!experiments.is_empty());
    for path in experiments {
        if let Err(error) = Experiment::parse(&std::fs::read_to_string(path).unwrap()) {
            panic!("{}: {error}", path.display());
        }
    }
}
