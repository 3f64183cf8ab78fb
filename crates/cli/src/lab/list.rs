//! `ropewalk lab list`: lists experiments and the time that they take.

use crate::exit::Failed;
use crate::{output, sizes};
use ::lab::{Experiment, Form, InvalidExperiment};
use anyhow::{Context, anyhow};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(clap::Args)]
#[command(after_help = "Example: ropewalk lab list experiments/004")]
pub(crate) struct Arguments {
    /// The folder of the experiments; includes its subfolders
    #[arg(value_name = "FOLDER", default_value = "experiments")]
    folder: PathBuf,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// One experiment of the list.
struct Listed {
    file: PathBuf,
    /// The title, and the cost of each form.
    known: Result<(String, [Cost; 2]), String>,
}

/// The cost of one form: its runs and their time.
struct Cost {
    form: Form,
    runs: usize,
    estimate: Duration,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failed> {
    let files = experiments(&arguments.folder)
        .with_context(|| format!("cannot look for experiments in {:?}", arguments.folder))?;
    let listed: Vec<Listed> = files.into_iter().map(Listed::read).collect();
    if listed.is_empty() {
        return Err(anyhow!("there is no experiment (FILE.toml) in {:?}", arguments.folder).into());
    }
    if arguments.json {
        output::json(&json!({ "experiments": listed.iter().map(Listed::json).collect::<Vec<_>>() }));
    } else {
        print(&listed);
    }
    match listed.iter().filter(|experiment| experiment.known.is_err()).count() {
        0 => Ok(()),
        invalid => Err(anyhow!("{} cannot be read", sizes::count(invalid, "experiment")).into()),
    }
}

/// Adds the experiments of this folder and those below it, in the order of their names.
fn experiments(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut entries =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    entries.sort();
    let mut files = Vec::new();
    for entry in entries {
        if entry.is_dir() {
            files.extend(experiments(&entry)?);
        } else if entry.extension().is_some_and(|extension| extension == "toml") {
            files.push(entry);
        }
    }
    Ok(files)
}

fn costs(text: &str) -> Result<(String, [Cost; 2]), InvalidExperiment> {
    let experiment = Experiment::parse(text)?;
    let cost = |form| {
        let plan = experiment.plan(form)?;
        Ok(Cost { form, runs: plan.runs.len(), estimate: plan.estimate() })
    };
    Ok((experiment.title().to_owned(), [cost(Form::Quick)?, cost(Form::Full)?]))
}

impl Listed {
    fn read(file: PathBuf) -> Self {
        let text = fs::read_to_string(&file).map_err(|error| error.to_string());
        let known = text.and_then(|text| costs(&text).map_err(|error| error.to_string()));
        Self { file, known }
    }

    fn json(&self) -> Value {
        let mut object = json!({ "file": self.file });
        match &self.known {
            Ok((title, costs)) => {
                object["title"] = json!(title);
                for cost in costs {
                    object[cost.form.to_string()] =
                        json!({ "runs": cost.runs, "estimated_seconds": cost.estimate.as_secs_f64() });
                }
            }
            Err(error) => object["error"] = json!(error),
        }
        object
    }
}

fn print(listed: &[Listed]) {
    let mut table = output::table(&["FILE", "RUNS", "QUICK", "RUNS", "FULL", "EXPERIMENT"]);
    for Listed { file, known } in listed {
        let file = file.display().to_string();
        match known {
            Ok((title, [quick, full])) => table.add_row([
                file,
                quick.runs.to_string(),
                sizes::time(quick.estimate),
                full.runs.to_string(),
                sizes::time(full.estimate),
                title.clone(),
            ]),
            Err(_) => table.add_row([&file, "", "", "", "", "(cannot be read)"]),
        };
    }
    output::align_right(&mut table, 1..5);
    output::print(&table);
    for Listed { file, known } in listed {
        if let Err(error) = known {
            output::tell(format_args!("{}: {error}", file.display()));
        }
    }
}
