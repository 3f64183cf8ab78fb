//! `ropewalk lab run`: runs or resumes an experiment.

use super::run_progress::RunProgress;
use super::turn::Turn;
use super::user_namespace;
use crate::exit::{Failed, Status};
use crate::output::{self, outln};
use crate::progress_bar::REDRAW;
use crate::signals::Interrupts;
use crate::sizes;
use ::lab::{
    Experiment, Folder, FolderError, Form, KernelTrace, Plan, Rights, RunState, execute, remaining,
    run_series, run_state,
};
use anyhow::{Context, anyhow};
use serde_json::json;
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(clap::Args)]
#[command(after_help = "Example: ropewalk lab run experiments/004/figure06.toml")]
pub(crate) struct Arguments {
    /// The file that describes the experiment
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Run the full form instead of the quick one
    #[arg(long)]
    full: bool,

    /// Folder of the results; finished runs in it are not repeated [default: results/004/figure06/quick for the
    /// example]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,

    /// The most attempts at each run, until it is VALID [default: the experiment's number]
    #[arg(long, value_name = "N")]
    attempts: Option<NonZeroU32>,

    /// Remove the results in the folder and start again; files that lab did not write stay
    #[arg(long)]
    fresh: bool,

    /// Print the number of runs and the time that they take; run nothing
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// Print JSON lines: `message_type` `waiting` while another experiment runs, `estimate`, `run` for each run, then
    /// `summary`
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failed> {
    let file = &arguments.file;
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {file:?}"))?;
    let experiment =
        Experiment::parse(&text).map_err(|error| Failed::usage(format!("{}: {error}", file.display())))?;
    let form = if arguments.full { Form::Full } else { Form::Quick };
    let mut plan = experiment.plan(form).context("the experiment")?;
    plan.attempts = arguments.attempts.map_or(plan.attempts, NonZeroU32::get);
    if arguments.dry_run {
        print_estimate(&experiment, &plan, plan.runs.len(), plan.estimate(), arguments.json);
        return Ok(());
    }
    let rights = user_namespace::rights().await?;
    let _turn =
        Turn::wait(|| say_waiting(arguments.json)).await.context("cannot wait for other experiments")?;
    let path = arguments.out.clone().unwrap_or_else(|| folder_of(file, form));
    let folder = begin(&path, &experiment, &plan, &arguments).map_err(refused)?;
    let to_do = count(&plan, &folder, RunState::ToDo);
    print_estimate(&experiment, &plan, to_do, remaining(&plan, &folder), arguments.json);
    if rights == Rights::UserNamespace && !arguments.json {
        outln!("Without root the relay has no priority: more runs may be INVALID.");
    }
    let folder = run_all(plan.clone(), folder, arguments.json).await?;
    conclude(&plan, &folder, arguments.json)
}

fn say_waiting(is_json: bool) {
    if is_json {
        output::json(&json!({ "message_type": "waiting" }));
    } else {
        outln!(
            "Another experiment runs on this machine, and two at a time would disturb each other: waiting."
        );
    }
}

fn begin(
    path: &Path,
    experiment: &Experiment,
    plan: &Plan,
    arguments: &Arguments,
) -> Result<Folder, FolderError> {
    if !arguments.fresh {
        return Folder::begin_or_go_on(path, experiment, plan);
    }
    let (folder, removal) = Folder::begin_anew(path, experiment, plan)?;
    for left in &removal.left {
        if arguments.json {
            output::json(&json!({ "message_type": "left_alone", "path": left }));
        } else {
            outln!("left {} alone: lab did not write it", left.display());
        }
    }
    Ok(folder)
}

/// `results/004/figure06/quick` of `experiments/004/figure06.toml`.
fn folder_of(file: &Path, form: Form) -> PathBuf {
    let parent = file.parent().and_then(Path::file_name);
    let name = file.file_stem();
    [Some("results".as_ref()), parent, name].into_iter().flatten().collect::<PathBuf>().join(form.to_string())
}

pub(super) fn refused(error: FolderError) -> Failed {
    let status = match error {
        FolderError::Foreign(_)
        | FolderError::Link(_)
        | FolderError::Different { .. }
        | FolderError::OtherVersion { .. } => Status::Refused,
        _ => Status::Failed,
    };
    Failed { status, error: error.into(), consequence: None }
}

fn count(plan: &Plan, folder: &Folder, state: RunState) -> usize {
    (0..plan.runs.len()).filter(|index| run_state(plan, folder, *index) == state).count()
}

fn print_estimate(
    experiment: &Experiment,
    plan: &Plan,
    to_do: usize,
    time: std::time::Duration,
    is_json: bool,
) {
    let all = plan.runs.len();
    if is_json {
        return output::json(&json!({
            "message_type": "estimate", "form": plan.form, "runs": all, "runs_to_do": to_do,
            "estimated_seconds": time.as_secs_f64(),
        }));
    }
    outln!("{} ({} form)", experiment.title(), plan.form);
    let done = if to_do < all { format!(", {} of them done", all - to_do) } else { String::new() };
    outln!("{}{done}; about {}", sizes::count(all, "run"), sizes::time(time));
}

/// Runs until all runs are done or a signal comes.
async fn run_all(plan: Plan, mut folder: Folder, json: bool) -> Result<Folder, Failed> {
    let mut interrupts = Interrupts::listen()?;
    let plan = Arc::new(plan);
    let progress = RunProgress::new(plan.clone(), remaining(&plan, &folder), json);
    let teller = progress.clone();
    let mut series = tokio::task::spawn_blocking(move || {
        run_series(&plan, &mut folder, execute, |event| teller.tell(event)).map(|()| folder)
    });
    let mut redraw = tokio::time::interval(REDRAW);
    loop {
        tokio::select! {
            ended = &mut series => {
                progress.clear();
                return Ok(ended.context("a run panicked")??);
            }
            _ = interrupts.next() => {
                progress.clear();
                // The lab of the current run ends with this process.
                return Err(Failed::incomplete("interrupted; the same command goes on with what is to be done"));
            }
            _ = redraw.tick() => progress.draw(),
        }
    }
}

fn conclude(plan: &Plan, folder: &Folder, is_json: bool) -> Result<(), Failed> {
    let (valid, invalid) = (count(plan, folder, RunState::Valid), count(plan, folder, RunState::Invalid));
    let path = folder.path().display();
    if is_json {
        output::json(&json!({
            "message_type": "summary", "folder": folder.path(), "valid_runs": valid, "invalid_runs": invalid,
        }));
    } else {
        outln!("{path}: {valid} VALID. Figures and tables: ropewalk lab report {path}");
    }
    let missing = folder.records.iter().find_map(|record| match &record.kernel_trace {
        Some(KernelTrace::Missing(reason)) => Some(reason),
        _ => None,
    });
    if let (Some(reason), false) = (missing, is_json) {
        outln!("{reason}");
    }
    if invalid == 0 {
        return Ok(());
    }
    let runs = sizes::count(invalid, "run");
    let error = anyhow!("{runs} stayed INVALID in {}", sizes::count(plan.attempts as usize, "attempt"));
    let consequence = "They are kept, and marked in the report. More --attempts at them, a quieter machine, a lower \
                       rate or root may help.";
    Err(Failed { consequence: Some(consequence.to_owned()), ..Failed::from(error) })
}
