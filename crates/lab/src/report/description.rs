//! The conditions of the measurements.

use super::runs::{controls, ended, gap_s, late_s, rights};
use crate::experiment::each_once;
use crate::results::{Manifest, Program, RunRecord};
use observe::report::{Fact, Standing, Unit, Verdict, rfc3339};
use std::collections::BTreeMap;
use std::time::Duration;

pub(super) fn description(manifest: &Manifest, records: &[RunRecord]) -> Vec<Fact> {
    let machine = &manifest.machine;
    let programs = programs(&manifest.ropewalk, records);
    let begun = rfc3339(Duration::from_secs(manifest.begun_unix_seconds));
    let mut facts = vec![
        Fact::new("ropewalk", programs.join(" or ")),
        Fact::new("kernel", format!("{} {}", machine.kernel, machine.kernel_version)),
        Fact::new("processor", format!("{} × {}", machine.processors, machine.processor)),
        Fact::new("memory", Unit::Bytes.format(machine.memory_bytes as f64)),
        Fact::new("begun", begun),
        Fact::new("runs", manifest.runs.len().to_string()),
    ];
    facts.extend(of_runs(records));
    for (host, settings) in [
        ("client", common(records, |record| &record.client_settings)),
        ("server", common(records, |record| &record.server_settings)),
    ] {
        facts.extend(settings.into_iter().map(|(name, value)| Fact::new(format!("{host}: {name}"), value)));
    }
    facts
}

/// A warning if the results are from several builds of the program, which may explain differences.
pub(super) fn mixed_programs(manifest: &Manifest, records: &[RunRecord]) -> Option<Verdict> {
    let builds = programs(&manifest.ropewalk, records).len();
    let text = format!("measured by {builds} builds of ropewalk");
    (builds > 1).then_some(Verdict { standing: Standing::Neutral, text })
}

/// The programs, each once. Runs that did not record theirs, and a folder without runs, show the version.
fn programs(version: &str, records: &[RunRecord]) -> Vec<String> {
    let program =
        |record: &RunRecord| record.program.as_ref().map_or_else(|| version.to_owned(), Program::describe);
    let programs = each_once(records.iter().map(program));
    if programs.is_empty() { vec![version.to_owned()] } else { programs }
}

/// The facts common to all runs.
fn of_runs(records: &[RunRecord]) -> Vec<Fact> {
    let Some(last) = records.iter().max_by_key(|record| record.ended_unix_seconds) else { return Vec::new() };
    let most = |value: fn(&RunRecord) -> f64| records.iter().map(value).fold(0.0, f64::max);
    let seconds = |value| Unit::Seconds.format(most(value));
    vec![
        Fact::new("last run ended", ended(last)),
        Fact::new("rights", alternatives(records.iter().map(|record| rights(record).to_owned()))),
        Fact::new(
            "congestion control of the sockets",
            alternatives(records.iter().flat_map(controls).map(str::to_owned)),
        ),
        Fact::new("seeds", alternatives(records.iter().map(|record| record.seed.to_string()))),
        Fact::new("relay late, p99.9, at most", seconds(|record| late_s(&record.relay))),
        Fact::new("longest gap of the relay", seconds(|record| gap_s(&record.relay))),
        Fact::new(
            "busiest second of the relay",
            Unit::Share.format(most(|record| record.relay.processor_share_max)),
        ),
    ]
}

/// Every value that each setting had in some run.
fn common(
    records: &[RunRecord],
    settings: impl Fn(&RunRecord) -> &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in records.iter().flat_map(settings) {
        values.entry(name.clone()).or_default().push(value.clone());
    }
    values.into_iter().map(|(name, values)| (name, alternatives(values))).collect()
}

fn alternatives(all: impl IntoIterator<Item = String>) -> String {
    each_once(all).join(" or ")
}
