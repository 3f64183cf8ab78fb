//! Reports on a folder of results.

mod captured;
mod description;
mod figure;
mod held;
mod measured;
mod prediction;
mod repetitions;
mod run_over_time;
mod runs;
mod session;
mod shares;
mod tables;
mod trace;
mod waits;

use crate::experiment::{Experiment, Plan};
use crate::results::{Folder, FolderError};
use crate::series::{RunState, run_state};
use description::{description, mixed_programs};
pub(crate) use measured::theoretical;
use observe::report::{Report, Section, Standing, Verdict};
use run_over_time::RunsOverTime;

/// A report of all runs so far.
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
    sections.extend(repetitions::section(&experiment, &plan, folder));
    if !traces.is_empty() {
        sections.push(Section { heading: "Over time".to_owned(), figures: traces, ..Section::default() });
    }
    sections.extend(waits::section(&plan, &mut runs_over_time)?);
    sections.extend(captured::section(&plan, &mut runs_over_time)?);
    sections.extend(session::section(&plan, folder));
    sections.push(runs::section(&plan, folder));
    let mut verdicts = vec![verdict(&plan, folder)];
    verdicts.extend(mixed_programs(&folder.manifest, &folder.records));
    Ok(Report {
        title: format!("{} ({} form)", experiment.title(), plan.form),
        verdicts,
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

/// The verdict on the whole.
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
