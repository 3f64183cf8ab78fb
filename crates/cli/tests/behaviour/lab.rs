//! Experiments on the command line: what there is, what it costs, what is wrong with it.

use crate::world::run;
use std::fs;

/// Those that ship.
const EXPERIMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
/// The status of what would be wrong or dangerous.
const REFUSED: i32 = 5;
/// Of all quick forms of a paper.
const QUICK_SECONDS_MAX: f64 = 600.0;

#[test]
fn every_experiment_can_be_read_and_the_quick_forms_of_a_paper_take_ten_minutes() {
    let folders = fs::read_dir(EXPERIMENTS).unwrap().map(|entry| entry.unwrap().path());
    let folders: Vec<_> = folders.filter(|folder| folder.is_dir()).collect();
    assert!(!folders.is_empty());
    for folder in folders {
        let list = run(&["lab", "list", folder.to_str().unwrap(), "--json"]).expect(0).json_lines().remove(0);
        let experiments = list["experiments"].as_array().unwrap();
        let seconds: f64 =
            experiments.iter().map(|one| one["quick"]["estimated_seconds"].as_f64().unwrap()).sum();
        let is_paper = folder.file_name().unwrap().to_str().unwrap().parse::<u16>().is_ok();
        let is_quick = seconds <= QUICK_SECONDS_MAX || !is_paper;
        assert!(!experiments.is_empty() && is_quick, "{folder:?}: {seconds} seconds");
    }
}

#[test]
fn a_list_shows_what_cannot_be_read_and_why() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("one.toml"), "titel = \"x\"").unwrap();
    let outcome = run(&["lab", "list", folder.path().to_str().unwrap()]).expect(1);
    assert!(outcome.stdout().contains("one.toml"), "{}", outcome.stdout());
    assert!(outcome.stderr().contains("titel"), "{}", outcome.stderr());
}

#[test]
fn what_an_experiment_would_take_is_told_without_running_it() {
    let file = format!("{EXPERIMENTS}/004/figure06.toml");
    let estimate =
        run(&["lab", "run", &file, "--dry-run", "--full", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!((&estimate["form"], &estimate["runs"]), (&"full".into(), &81.into()));
}

#[test]
fn an_experiment_that_is_wrong_is_refused_with_its_file_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.toml");
    let text = fs::read_to_string(format!("{EXPERIMENTS}/004/figure06.toml")).unwrap();
    fs::write(&file, text.replace("count = 1", "count = 0")).unwrap();
    let outcome = run(&["lab", "run", file.to_str().unwrap()]).expect(2);
    for part in ["wrong.toml", "setup.streams.count", "1 to 255"] {
        assert!(outcome.stderr().contains(part), "{part:?} is not in {}", outcome.stderr());
    }
}

#[test]
fn a_folder_without_results_has_no_report_and_nothing_to_clean() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    assert!(run(&["lab", "report", path]).expect(1).stderr().contains("manifest.json"));
    assert!(run(&["lab", "clean", path]).expect(0).stdout().contains("nothing to remove"));
}

#[test]
fn a_folder_that_lab_did_not_make_is_refused_by_clean_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (path, file) = (folder.path().to_str().unwrap(), folder.path().join("thesis.json.partial"));
    fs::write(&file, "years of work").unwrap();
    let outcome = run(&["lab", "clean", path]).expect(REFUSED);
    for part in [path, "manifest.json", "name another folder"] {
        assert!(outcome.stderr().contains(part), "{part:?} is not in {}", outcome.stderr());
    }
    assert!(file.exists());
}
