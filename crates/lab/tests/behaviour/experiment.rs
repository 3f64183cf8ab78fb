//! Experiments are run as they are written, once each, and their results say what they are.

use crate::world::made_up::{TEXT, World, late, outcome, valid};
use crate::world::{in_lab, plan, run_once};
use observe::report::{Cell, Figure, Row, Standing};
use ropewalk_lab::{
    CellSummary, Experiment, Folder, FolderError, Form, LabError, Quantity, Removal, RunOutcome, Sample,
    Setup, Summary, Theory, report, run_series,
};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

#[test]
fn a_run_that_is_done_is_not_done_again() {
    let world = World::new();
    let mut left = 3;
    let broken_off = |_: &Setup, seed| {
        left -= 1;
        let failure = || LabError::Network(std::io::Error::other("the machine went down"));
        if left == 0 { Err(failure()) } else { Ok(outcome(seed, Vec::new())) }
    };
    run_series(&world.plan, &mut world.folder().unwrap(), broken_off, |_| ()).unwrap_err();
    assert_eq!(world.folder().unwrap().records.len(), 2);
    assert_eq!(world.run(valid), 2, "of four");
    assert_eq!(world.run(valid), 0);
    let folder = world.folder().unwrap();
    assert_eq!(folder.records.iter().map(|record| record.run).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[test]
fn a_failure_of_the_workload_is_a_result_and_not_tried_away() {
    let world = World::new();
    let mut made = 0;
    let second_fails = |_: &Setup, seed| {
        made += 1;
        let workload_failed = made == 2;
        let reasons = if workload_failed { vec!["the copy differs".to_owned()] } else { Vec::new() };
        Ok(RunOutcome { workload_failed, ..outcome(seed, reasons) })
    };
    run_series(&world.plan, &mut world.folder().unwrap(), second_fails, |_| ()).unwrap();
    assert_eq!(made, 4, "one attempt at each run");
    let summary = Summary::of(&world.folder().unwrap()).unwrap();
    assert_eq!((summary.series.planned, summary.series.valid), (4, 3));
    assert!(summary.cells.iter().any(|cell| cell.reasons == ["the copy differs"]), "{summary:?}");
    assert_eq!(serde_json::from_str::<Summary>(&summary.json().unwrap()).unwrap(), summary);
}

#[test]
fn an_invalid_run_is_kept_and_tried_again_but_not_for_ever() {
    let world = World::new();
    // The first run succeeds at the second attempt, the second never.
    assert_eq!(
        world.run(|attempt| if matches!(attempt, 0 | 2 | 3) { late() } else { Vec::new() }),
        2 + 2 + 1 + 1
    );
    assert_eq!(world.run(valid), 0, "what stays invalid is done too");
    let folder = world.folder().unwrap();
    let attempts: Vec<_> =
        folder.records.iter().map(|record| (record.run, record.attempt, record.valid)).collect();
    assert_eq!(
        attempts,
        [(1, 1, false), (1, 2, true), (2, 1, false), (2, 2, false), (3, 1, true), (4, 1, true)]
    );
}

#[test]
fn an_invalid_run_is_shown() {
    let world = World::new();
    world.run(|attempt| if attempt < 2 { late() } else { Vec::new() });
    let report = report(&Folder::open(world.path()).unwrap()).unwrap();
    assert_eq!(report.verdicts[0].standing, Standing::Bad);
    assert_eq!(report.verdicts[0].text, "INVALID: 1 of 4 runs");
    let figure = &report.sections[0].figures[0];
    assert_eq!(figure.invalid_reasons(), ["the relay was late"]);
    let rows = &report.sections[2].tables[0].rows;
    assert_eq!(rows.iter().filter(|row| row.invalid.is_some()).count(), 2, "both attempts");
}

#[test]
fn a_figure_has_a_series_for_all_that_is_varied_and_the_theory() {
    let world = World::new();
    world.run(valid);
    let report = report(&Folder::open(world.path()).unwrap()).unwrap();
    assert_eq!(report.title, "Throughput against distance (quick form)");
    assert_eq!(report.summary, ["First paragraph.", "Second."]);
    assert_eq!(report.verdicts[0].text, "VALID: all 4 runs");
    let figure = &report.sections[0].figures[0];
    let names: Vec<_> = figure.series.iter().map(|series| &*series.name).collect();
    assert_eq!(names, ["reno", "cubic", "link"]);
    let points: Vec<_> = figure.series[1].points.iter().map(|point| (point.x, point.y)).collect();
    assert_eq!(points, [(0.0, 1e6), (0.01, 1e6)]);
    let theory = figure.series[2].points[0].y;
    assert!((theory - 1e8 * 1448.0 / 1518.0).abs() < 1.0, "{theory}");
}

#[test]
fn repetitions_make_one_point_with_a_bar() {
    let world = World::of(&format!("{TEXT}\n[quick]\nrepetitions = 3"));
    world.run(valid);
    let report = report(&Folder::open(world.path()).unwrap()).unwrap();
    let point = report.sections[0].figures[0].series[0].points[0].clone();
    // The made-up throughput is the seed.
    assert_eq!((point.y, point.low, point.high), (2e6, Some(1e6), Some(3e6)));
}

#[test]
fn repetitions_are_told_with_their_deviation_and_the_interval_of_their_mean() {
    let world = World::of(&format!("{TEXT}\n[quick]\nrepetitions = 3"));
    world.run(valid);
    let report = report(&Folder::open(world.path()).unwrap()).unwrap();
    let section = report.sections.iter().find(|section| section.heading == "Repetitions").unwrap();
    let [table] = &section.tables[..] else { panic!("{section:?}") };
    assert_eq!((table.title.as_str(), table.rows.len()), ("throughput", 4));
    let [runs, mean, Cell::Range([low, high]), deviation, ..] = &table.rows[0].cells[2..] else {
        panic!("{:?}", table.rows[0])
    };
    assert_eq!([runs, mean, deviation], [&Cell::from(3.0), &Cell::from(2e6), &Cell::from(1e6)]);
    // Student's quantile for two degrees of freedom, 4.303, by the root of three.
    assert!((low + 0.484e6).abs() < 1e3 && (high - 4.484e6).abs() < 1e3, "{low} to {high}");
}

#[test]
fn a_report_says_when_by_what_and_how_well_everything_was_measured() {
    let world = World::new();
    world.run(valid);
    let report = report(&Folder::open(world.path()).unwrap()).unwrap();
    let fact = |name: &str| {
        let fact = report.description.iter().find(|fact| fact.name == name);
        fact.unwrap_or_else(|| panic!("no {name} in {:?}", report.description)).value.as_str()
    };
    assert!(fact("begun").ends_with('Z') && fact("begun").contains('T'), "{}", fact("begun"));
    assert!(fact("ropewalk").contains("executable "), "{}", fact("ropewalk"));
    assert_eq!((fact("rights"), fact("seeds")), ("root", "1"));
    assert_eq!(fact("busiest second of the relay"), "10 %");
    let runs = report.sections.last().unwrap();
    let labels: Vec<_> = runs.tables[1].columns.iter().map(|column| column.label.as_str()).collect();
    assert!(labels.contains(&"seed") && labels.contains(&"relay late, p99.9"), "{labels:?}");
    assert_eq!(runs.tables[1].rows.len(), 4);
}

#[test]
fn results_of_several_builds_are_told_apart() {
    let world = World::new();
    world.run(valid);
    world.edit_first_record(|text| {
        text.replacen("\"executable_crc32c\": \"", "\"executable_crc32c\": \"other", 1)
    });
    let report = report(&Folder::open(world.path()).unwrap()).unwrap();
    assert_eq!(report.verdicts[1].text, "measured by 2 builds of ropewalk");
}

const SCSI: &str = r#"
    title = "One write after the other"

    [setup]
    link = { rate = "100Mbit", queue = "1MB" }
    congestion_control = "reno"

    [setup.scsi.workload.pattern]
    request_size = "128KiB"
    end = { requests = 8 }

    [[vary]]
    name = "RTT"
    key = "rtt"
    values = ["0ms", "10ms"]

    [[plot]]
    x = "RTT"
    y = "throughput"
    theory = ["ideal", "time_model"]
"#;

/// Writes of 128 KiB and what is predicted of them: at 100 Mbit/s they take 11 ms, and so does what is measured at RTT 0;
/// at 10 ms it is 44 ms, twice what is predicted, in a run that is not valid for these reasons.
fn with_prediction(far: &[&str]) -> World {
    let prediction = "[[prediction]]\nof = \"request_time\"\nby = \"time_model\"\nseries = \"RTT\"\n[quick]\nrepetitions = 1";
    let world = World::of(&format!("{SCSI}{prediction}\nsetup.scsi.session.first_burst = \"128KiB\""));
    let mut is_near = true;
    let measure = |_: &Setup, seed| {
        let is_first = std::mem::take(&mut is_near);
        let (time_s, reasons) = if is_first { (0.012, &[][..]) } else { (0.044, far) };
        let times = [(Quantity::RequestTime, time_s), (Quantity::HostTime, 0.001)];
        let reasons = reasons.iter().copied().map(str::to_owned).collect();
        Ok(RunOutcome { measured: BTreeMap::from(times), ..outcome(seed, reasons) })
    };
    run_series(&world.plan, &mut world.folder().unwrap(), measure, |_| ()).unwrap();
    world
}

/// The report's first figure of it.
fn predicted(far: &[&str]) -> Figure {
    let report = report(&with_prediction(far).folder().unwrap()).unwrap();
    let section = &report.sections[1];
    assert_eq!(section.heading, "Predicted and measured");
    section.figures[0].clone()
}

#[test]
fn a_prediction_tells_how_far_it_is_off_over_valid_runs() {
    let figure = predicted(&[]);
    let names: Vec<_> = figure.series.iter().map(|series| &*series.name).collect();
    assert_eq!(names, ["RTT 0ms", "RTT 10ms", "as predicted"]);
    let table = figure.table.as_ref().unwrap();
    let errors = table.rows.iter().map(|row| match row.cells[3] {
        Cell::Number(error) => (error * 10.0).round() / 10.0,
        ref other => panic!("{other:?} is no error"),
    });
    assert_eq!(errors.collect::<Vec<_>>(), [0.0, 1.0]);
    assert!(table.note.contains("runs: 2"), "{}", table.note);
}

#[test]
fn a_summary_has_what_models_say_beside_what_was_measured() {
    let summary = Summary::of(&with_prediction(&[]).folder().unwrap()).unwrap();
    let times = summary.cells.iter().map(|cell| cell.predicted[&Quantity::RequestTime][&Theory::TimeModel]);
    let times: Vec<_> = times.map(|time_s| (time_s * 1e3).round()).collect();
    assert_eq!(times, [12.0, 22.0], "in milliseconds");
    let rates =
        |cell: &CellSummary| cell.predicted[&Quantity::Throughput].keys().copied().collect::<Vec<_>>();
    assert!(
        summary.cells.iter().all(|cell| rates(cell) == [Theory::Ideal, Theory::TimeModel]),
        "{summary:?}"
    );
}

#[test]
fn beside_its_prediction_what_is_not_valid_is_marked() {
    let table = predicted(&["late"]).table.unwrap();
    let is_marked =
        |row: &Row| row.cells.iter().map(|cell| matches!(cell, Cell::Invalid { .. })).collect::<Vec<_>>();
    assert_eq!(
        table.rows.iter().map(is_marked).collect::<Vec<_>>(),
        [[false; 4], [false, false, true, true]]
    );
    assert!(table.note.contains("runs: 1"), "{}", table.note);
}

#[test]
fn results_of_a_changed_experiment_are_not_mixed() {
    let mut world = World::new();
    world.run(valid);
    world.experiment = Experiment::parse(&TEXT.replace("count = 2", "count = 3")).unwrap();
    world.plan = world.experiment.plan(Form::Quick).unwrap();
    let error = world.folder().unwrap_err();
    assert!(matches!(&error, FolderError::Different { what, .. } if what.contains("changed")), "{error}");
    world.anew().unwrap();
    assert_eq!(world.run(valid), 4, "anew");
}

#[test]
fn repetitions_can_be_added_and_not_taken_away() {
    let mut world = World::new();
    world.run(valid);
    let once = world.experiment.clone();
    world.experiment = Experiment::parse(&format!("{TEXT}[quick]\nrepetitions = 2")).unwrap();
    world.plan = world.experiment.plan(Form::Quick).unwrap();
    assert_eq!(world.run(valid), 4, "only the new ones");
    assert_eq!(Folder::open(world.path()).unwrap().plan(&world.experiment).unwrap().runs.len(), 8);
    world.plan = once.plan(Form::Quick).unwrap();
    world.experiment = once;
    assert!(matches!(world.folder().unwrap_err(), FolderError::Different { .. }));
}

#[test]
fn what_is_plotted_may_change() {
    let mut world = World::new();
    world.run(valid);
    world.experiment =
        Experiment::parse(&TEXT.replace("throughput\"", "fairness\"").replace("theory = [\"link\"]", ""))
            .unwrap();
    world.plan = world.experiment.plan(Form::Quick).unwrap();
    assert_eq!(world.run(valid), 0);
}

/// Writes strangers' files, some of which are named almost as `lab` names its own.
fn write_strangers(world: &World) -> Vec<PathBuf> {
    let names = ["figure-of-mine.png", "report.html~", "runs/0001-1.json.gz", "runs/notes.json", "x.partial"];
    let mut files: Vec<PathBuf> = names.iter().map(|name| world.path().join(name)).collect();
    files.iter().for_each(|file| fs::write(file, "years of work").unwrap());
    fs::create_dir_all(world.path().join("thesis/runs")).unwrap();
    fs::write(world.path().join("thesis/runs/0001-1.json.partial"), "years of work").unwrap();
    files.push(world.path().join("thesis"));
    files.sort();
    files
}

fn assert_still_there(files: &[PathBuf]) {
    for file in files {
        assert!(file.is_dir() || fs::read_to_string(file).unwrap() == "years of work", "{file:?}");
    }
}

#[test]
fn a_folder_with_something_else_in_it_is_left_alone() {
    for (file, text) in [
        ("thesis.tex", "years of work"),
        ("experiment.toml", "title = 'somebody else\'s'"),
        ("manifest.json", r#"{ "manifest_version": 3, "name": "a browser's" }"#),
    ] {
        let world = World::new();
        fs::write(world.path().join(file), text).unwrap();
        for error in
            [world.folder().unwrap_err(), world.anew().unwrap_err(), Folder::clean(world.path()).unwrap_err()]
        {
            assert!(matches!(error, FolderError::Foreign(_)), "{file}: {error}");
        }
        assert_eq!(fs::read_dir(world.path()).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(world.path().join(file)).unwrap(), text);
    }
}

#[test]
fn beginning_anew_removes_only_what_lab_wrote_and_names_the_rest() {
    let world = World::new();
    world.run(valid);
    Folder::open(world.path()).unwrap().write_report("a report", &[vec![1]]).unwrap();
    let strangers = write_strangers(&world);
    let removal = world.anew().unwrap();
    assert_eq!(removal.left, strangers);
    let own = removal.removed.iter().map(|file| file.strip_prefix(world.path()).unwrap().to_str().unwrap());
    let of_runs: Vec<String> =
        (1..=4).flat_map(|n| ["json", "jsonl"].map(|s| format!("runs/000{n}-1.{s}"))).collect();
    let of_report = ["experiment.toml", "figure-1.png", "report.html"].map(str::to_owned);
    assert_eq!(own.collect::<Vec<_>>(), [&of_report[..], &of_runs].concat());
    assert_still_there(&strangers);
    assert_eq!(world.run(valid), 4, "strangers are no records");
}

#[test]
fn cleaning_removes_only_what_lab_left_half_written() {
    let world = World::new();
    world.run(valid);
    let strangers = write_strangers(&world);
    let half = [world.path().join("report.html.partial"), world.path().join("runs/0004-2.json.partial")];
    half.iter().for_each(|file| fs::write(file, "half").unwrap());
    assert_eq!(
        Folder::clean(world.path()).unwrap(),
        Removal { removed: half.to_vec(), left: strangers.clone() }
    );
    assert_still_there(&strangers);
    assert_eq!(world.run(valid), 0, "results are not removed");
}

#[test]
fn a_link_to_results_is_refused() {
    let (world, mut other) = (World::new(), World::new());
    world.run(valid);
    let link = other.path().join("link");
    symlink(world.path(), &link).unwrap();
    other.run_in = link.join("");
    for error in [other.folder().unwrap_err(), other.anew().unwrap_err(), Folder::clean(&link).unwrap_err()] {
        assert!(matches!(error, FolderError::Link(_)), "{error}");
    }
    assert!(!Folder::is_of_lab(&link));
    assert_eq!(world.run(valid), 0, "nothing was removed");
}

#[test]
fn runs_that_are_a_link_are_refused_before_anything_is_removed() {
    let (world, elsewhere) = (World::new(), tempfile::tempdir().unwrap());
    world.run(valid);
    let (runs, moved) = (world.path().join("runs"), elsewhere.path().join("runs"));
    fs::rename(&runs, &moved).unwrap();
    symlink(&moved, &runs).unwrap();
    for error in [world.folder().unwrap_err(), world.anew().unwrap_err()] {
        assert!(matches!(error, FolderError::Link(_)), "{error}");
    }
    assert_eq!(fs::read_dir(&moved).unwrap().count(), 8);
    assert!(world.path().join("experiment.toml").exists());
}

#[test]
fn a_link_with_an_own_name_stays_and_its_file_too() {
    let (world, elsewhere) = (World::new(), tempfile::tempdir().unwrap());
    world.run(valid);
    let file = elsewhere.path().join("thesis.tex");
    fs::write(&file, "years of work").unwrap();
    let links = ["report.html", "runs/0009-1.json.partial"].map(|name| world.path().join(name));
    links.iter().for_each(|link| symlink(&file, link).unwrap());
    assert_eq!(world.anew().unwrap().left, links);
    assert!(links.iter().all(|link| link.is_symlink()));
    assert_still_there(&[file]);
}

#[test]
fn a_link_where_a_file_is_to_be_written_is_replaced_and_not_followed() {
    let (world, elsewhere) = (World::new(), tempfile::tempdir().unwrap());
    let file = elsewhere.path().join("thesis.tex");
    fs::write(&file, "years of work").unwrap();
    let folder = world.folder().unwrap();
    for name in ["report.html", "report.html.partial"] {
        symlink(&file, world.path().join(name)).unwrap();
    }
    folder.write_report("a report", &[]).unwrap();
    assert_still_there(&[file]);
    assert_eq!(fs::read_to_string(world.path().join("report.html")).unwrap(), "a report");
}

#[test]
fn a_beginning_that_was_interrupted_goes_on() {
    for last in ["manifest.json.partial", "manifest.json", "experiment.toml"] {
        let world = World::new();
        drop(world.folder().unwrap());
        fs::remove_dir(world.path().join("runs")).unwrap();
        if last != "experiment.toml" {
            fs::remove_file(world.path().join("experiment.toml")).unwrap();
        }
        if last == "manifest.json.partial" {
            fs::rename(world.path().join("manifest.json"), world.path().join(last)).unwrap();
        }
        assert_eq!(world.run(valid), 4, "{last} was the last");
    }
}

#[test]
fn two_do_not_add_to_the_same_results() {
    let world = World::new();
    let _first = world.folder().unwrap();
    assert!(matches!(world.folder(), Err(FolderError::InUse(_))));
    assert!(matches!(world.anew(), Err(FolderError::InUse(_))));
    Folder::open(world.path()).unwrap();
}

#[test]
fn a_file_whose_writing_was_interrupted_does_not_count() {
    let world = World::new();
    world.run(valid);
    let file = world.path().join("runs/0003-1.json");
    fs::rename(&file, file.with_extension("json.partial")).unwrap();
    assert_eq!(world.run(valid), 1);
    assert!(!file.with_extension("json.partial").exists());
}

#[test]
fn results_of_a_later_format_are_refused() {
    let world = World::new();
    world.run(valid);
    let manifest = world.path().join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap().replacen("\"schema\": 1", "\"schema\": 99", 1);
    fs::write(&manifest, text).unwrap();
    let error = Folder::open(world.path()).unwrap_err();
    assert!(matches!(&error, FolderError::OtherVersion { reason, .. } if reason.contains("99")), "{error}");
}

#[test]
fn results_that_say_less_than_this_version_keeps_are_of_another_version_and_can_be_done_anew() {
    let world = World::new();
    world.run(valid);
    world.edit_first_record(|text| text.replacen("\"begun_ns\"", "\"begun\"", 1));
    for error in [Folder::open(world.path()).unwrap_err(), world.folder().unwrap_err()] {
        assert!(matches!(error, FolderError::OtherVersion { .. }), "{error:?}");
        let text = error.to_string();
        for part in ["0001-1.json", "another version", "begun_ns", "--fresh"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
    world.anew().unwrap();
    assert_eq!(world.run(valid), 4, "anew");
}

#[test]
fn a_record_that_ends_early_is_damaged() {
    let world = World::new();
    world.run(valid);
    world.edit_first_record(|text| text[..text.len() / 2].to_owned());
    let error = Folder::open(world.path()).unwrap_err();
    assert!(matches!(error, FolderError::Damaged { .. }), "{error:?}");
}

#[test]
fn an_experiment_is_run_with_real_packets() {
    in_lab(|| {
        let (place, folder) = run_once(TEXT);
        assert_eq!(folder.records.len(), 4);
        for record in &folder.records {
            let control = &record.values["control"];
            assert_eq!(record.congestion_controls, [control.clone(), control.clone()], "as the sockets say");
            assert_eq!(record.client_settings["net.ipv4.tcp_no_metrics_save"], "1");
            assert!(record.server_settings.contains_key("net.ipv4.tcp_rmem"));
            assert!(record.measured[&Quantity::Throughput] > 0.0);
            assert!(
                record.measured[&Quantity::RoundTrip]
                    >= if record.values["RTT"] == "10ms" { 0.01 } else { 0.0 }
            );
            assert_eq!(record.valid, record.relay.verdict().is_valid());
            let samples = format!("runs/{:04}-1.jsonl", record.run);
            assert!(fs::read_to_string(place.path().join(samples)).unwrap().lines().count() >= 2);
        }
        let report = report(&folder).unwrap();
        assert_eq!(report.sections[0].figures[0].series.len(), 3);
        let trace = &report.sections[1].figures[0];
        assert_eq!(trace.title, "Throughput against distance (RTT 10ms, control cubic)");
        assert_eq!(trace.series.len(), 2 * 3, "of each connection");
        assert!(trace.series.iter().all(|series| !series.points.is_empty()));
    });
}

#[test]
fn commands_are_run_with_real_packets_and_beside_what_the_model_says() {
    in_lab(|| {
        let (_place, folder) = run_once(SCSI);
        assert_eq!(folder.records.len(), 2);
        for record in &folder.records {
            assert_eq!(record.congestion_controls, ["reno", "reno"], "at both ends: {:?}", record.reasons);
            let quantities = plan(SCSI).cells[0].setup.quantities();
            // The run is too short for several samples of a socket.
            let is_of_samples = |quantity: &Quantity| {
                ["Window", "Steady"].iter().any(|of| format!("{quantity:?}").contains(of))
            };
            for quantity in quantities.into_iter().filter(|quantity| !is_of_samples(quantity)) {
                assert!(record.measured.contains_key(&quantity), "{quantity:?}: {:?}", record.reasons);
            }
            let samples = folder.samples(record).unwrap();
            let count = |is_one: fn(&Sample) -> bool| samples.iter().filter(|sample| is_one(sample)).count();
            assert_eq!(count(|sample| matches!(sample, Sample::Request(_))), 8);
            assert!(count(|sample| matches!(sample, Sample::Command(_))) >= 8);
        }
        // Where the relay was too slow there is no Tb + Tc to be believed, and so no curve.
        let figure = report(&folder).unwrap().sections[0].figures[0].clone();
        let is_known = folder.records[0].valid;
        assert_eq!(figure.series.len(), if is_known { 3 } else { 1 });
        assert_eq!(figure.caption.contains("is missing"), !is_known, "{}", figure.caption);
    });
}
