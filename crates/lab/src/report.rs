//! What a folder of results says, for people.

mod captured;
mod figure;
mod measured;
mod prediction;
mod run_over_time;
mod session;
mod shares;
mod tables;
mod trace;
mod waits;

use crate::experiment::{Experiment, Plan, Quantity};
use crate::results::{Folder, FolderError, Manifest, RunRecord};
use crate::series::{RunState, run_state};
use observe::report::{Cell, Fact, Report, Section, Standing, Table, Unit, Verdict};
use run_over_time::RunsOverTime;
use std::collections::BTreeMap;

/// A report of what has been run so far.
///
/// # Errors
/// If the folder's experiment cannot be read.
pub fn report(folder: &Folder) -> Result<Report, FolderError> {
    let experiment = folder.experiment()?;
    let plan = folder.plan(&experiment)?;
    let mut runs_over_time = RunsOverTime::new(folder, &plan);
    let mut traces = Vec::new();
    for trace in experiment.traces() {
        traces.extend(trace::draw(trace, &experiment, &plan, &mut runs_over_time)?);
    }
    let figures =
        experiment.plots().iter().map(|plot| figure::draw(plot, &experiment, &plan, folder)).collect();
    let mut sections = vec![Section { figures, ..Section::default() }];
    if !experiment.predictions().is_empty() {
        let predictions = experiment.predictions().iter();
        sections.push(Section {
            heading: "Predicted and measured".to_owned(),
            figures: predictions
                .map(|prediction| prediction::draw(prediction, &experiment, &plan, folder))
                .collect(),
            ..Section::default()
        });
    }
    if !traces.is_empty() {
        sections.push(Section { heading: "Over time".to_owned(), figures: traces, ..Section::default() });
    }
    sections.extend(waits::section(&plan, &mut runs_over_time)?);
    sections.extend(captured::section(&plan, &mut runs_over_time)?);
    sections.extend(session::section(&plan, folder));
    sections.push(Section {
        heading: "Every run".to_owned(),
        paragraphs: vec![
            "A run is INVALID if the relay between the two hosts had a part in what was measured. It is kept, and \
             tried again; what is drawn leaves it out as long as there is a valid one."
                .to_owned(),
        ],
        tables: vec![runs(&plan, folder)],
        ..Section::default()
    });
    Ok(Report {
        title: format!("{} ({} form)", experiment.title(), plan.form),
        verdicts: vec![verdict(&plan, folder)],
        summary: paragraphs(&experiment),
        sections,
        description: description(&folder.manifest, &folder.records),
    })
}

fn paragraphs(experiment: &Experiment) -> Vec<String> {
    let paragraphs = experiment.about().split("\n\n");
    let joined = paragraphs.map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    joined.filter(|paragraph| !paragraph.is_empty()).collect()
}

/// Of the whole.
fn verdict(plan: &Plan, folder: &Folder) -> Verdict {
    let states = (0..plan.runs.len()).map(|index| run_state(plan, folder, index));
    let (mut invalid, mut to_do) = (0, 0);
    for state in states {
        match state {
            RunState::Valid => {}
            RunState::Invalid => invalid += 1,
            RunState::ToDo => to_do += 1,
        }
    }
    let all = plan.runs.len();
    match (invalid, to_do) {
        (0, 0) => Verdict { standing: Standing::Good, text: format!("VALID: all {all} runs") },
        (0, _) => Verdict {
            standing: Standing::Neutral,
            text: format!("INCOMPLETE: {to_do} of {all} runs are to be done"),
        },
        (_, 0) => Verdict { standing: Standing::Bad, text: format!("INVALID: {invalid} of {all} runs") },
        (_, _) => Verdict {
            standing: Standing::Bad,
            text: format!("INVALID: {invalid} of {all} runs, and {to_do} are to be done"),
        },
    }
}

fn runs(plan: &Plan, folder: &Folder) -> Table {
    let quantities = quantities(plan);
    let varied = plan.variables.iter().map(|name| (name.as_str(), Unit::None));
    let measured = quantities.iter().map(|quantity| (quantity.label(), quantity.unit()));
    let columns =
        [("run", Unit::None)].into_iter().chain(varied).chain(measured).chain([("verdict", Unit::None)]);
    let mut table = Table::new(columns);
    for record in &folder.records {
        let number = match record.attempt {
            1 => record.run.to_string(),
            attempt => format!("{}, attempt {attempt}", record.run),
        };
        let varied = plan.variables.iter().map(|name| Cell::Text(record.values[name].clone()));
        let value = |quantity| record.measured.get(quantity).map_or(Cell::Empty, |value| Cell::from(*value));
        let verdict =
            if record.valid { "VALID".to_owned() } else { format!("INVALID: {}", record.reasons.join("; ")) };
        let measured = quantities.iter().map(value);
        table
            .row([Cell::Text(number)].into_iter().chain(varied).chain(measured).chain([Cell::Text(verdict)]));
        if let (false, Some(row)) = (record.valid, table.rows.last_mut()) {
            row.invalid = Some(record.reasons.join("; "));
        }
    }
    table
}

/// Everything that is measured in any run.
fn quantities(plan: &Plan) -> Vec<Quantity> {
    let mut quantities: Vec<Quantity> = plan.cells.iter().flat_map(|cell| cell.setup.quantities()).collect();
    quantities.sort();
    quantities.dedup();
    quantities
}

fn description(manifest: &Manifest, records: &[RunRecord]) -> Vec<Fact> {
    let machine = &manifest.machine;
    let mut facts = vec![
        Fact::new("ropewalk", &manifest.ropewalk),
        Fact::new("kernel", format!("{} {}", machine.kernel, machine.kernel_version)),
        Fact::new("processor", format!("{} × {}", machine.processors, machine.processor)),
        Fact::new("memory", Unit::Bytes.format(machine.memory_bytes as f64)),
        Fact::new("begun", format!("{} seconds after 1970", manifest.begun_unix_seconds)),
        Fact::new("runs", manifest.runs.len().to_string()),
    ];
    for (host, settings) in [
        ("client", common(records, |record| &record.client_settings)),
        ("server", common(records, |record| &record.server_settings)),
    ] {
        facts.extend(settings.into_iter().map(|(name, value)| Fact::new(format!("{host}: {name}"), value)));
    }
    facts
}

/// Of each setting every value that it had in some run.
fn common(
    records: &[RunRecord],
    settings: impl Fn(&RunRecord) -> &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in records.iter().flat_map(settings) {
        let values = values.entry(name.clone()).or_default();
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    values.into_iter().map(|(name, values)| (name, values.join(" or "))).collect()
}
