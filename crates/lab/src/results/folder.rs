//! A folder of results: started, resumed, and read.

use super::file;
use super::machine::Machine;
use super::manifest::{Manifest, SCHEMA};
use super::own_files::{self, EXPERIMENT, MANIFEST, Owner, REPORT, RUNS, Removal};
use super::record::RunRecord;
use crate::experiment::{Experiment, InvalidExperiment, Plan};
use crate::sample::Sample;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// A folder of results.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// The description of the runs, from the manifest file.
    pub manifest: Manifest,
    /// Every attempt, in the order of runs and attempts.
    pub records: Vec<RunRecord>,
    /// Locked while runs are added.
    _lock: File,
}

/// A folder that cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message shows what each field is")]
pub enum FolderError {
    /// It has contents, but no manifest of `lab`'s.
    #[error(
        "{0:?} is not empty, and has no manifest.json of ropewalk lab: it was left alone; name another folder"
    )]
    Foreign(PathBuf),
    /// It, or the folder of its runs, is a link.
    #[error("{0}; lab follows no links where it removes files: name the folder itself, or put it there")]
    Link(io::Error),
    /// It contains no results.
    #[error(
        "{0:?} does not hold results of an experiment: there is no manifest.json; \"ropewalk lab run\" makes some"
    )]
    Missing(PathBuf),
    /// Another process adds runs to it.
    #[error("{0:?} is in use by another ropewalk: wait for its end, or name another folder with --out")]
    InUse(PathBuf),
    /// It holds results of something else.
    #[error(
        "{path:?} holds results of {what}; --fresh removes them and begins anew, --out names another folder"
    )]
    Different { path: PathBuf, what: String },
    /// One of its files is whole, but has another version's contents.
    #[error(
        "{path:?} was written by another version of ropewalk ({reason}); that version can read it, and lab run with \
         --fresh begins anew"
    )]
    OtherVersion {
        path: PathBuf,
        /// The missing or unknown part.
        reason: String,
    },
    /// One of its files is damaged.
    #[error("{path:?} is damaged ({reason}): remove it, or begin anew with --fresh")]
    Damaged { path: PathBuf, reason: String },
    /// The system refused an operation.
    #[error("{path:?}: {source}")]
    System { path: PathBuf, source: io::Error },
}

impl Folder {
    /// Opens a folder to add runs of this plan: a new folder, or one with some of these runs, also if the plan has more
    /// repetitions than when the folder was begun.
    ///
    /// # Errors
    /// If it holds something else, or is a link, or another process adds runs to it.
    pub fn begin_or_go_on(path: &Path, experiment: &Experiment, plan: &Plan) -> Result<Self, FolderError> {
        let (lock, owner) = enter(path)?;
        let wanted = Manifest::new(experiment, plan);
        if owner == Owner::Nobody {
            return Self::begin(path, experiment, wanted, lock);
        }
        let mut folder = Self::read(path, lock)?;
        folder.check_same(&wanted)?;
        own_files::remove_partial_files(path).map_err(in_own(path))?;
        if wanted.runs.len() > folder.manifest.runs.len() {
            folder.manifest.runs = wanted.runs;
            write(&path.join(MANIFEST), &json(&folder.manifest))?;
        }
        // The plots may have changed.
        write(&path.join(EXPERIMENT), experiment.text().as_bytes())?;
        make_runs(path)?;
        Ok(folder)
    }

    /// Removes the results in a folder, if there are any, and opens it to add runs of this plan. Files that `lab` did
    /// not write stay, and are named.
    ///
    /// # Errors
    /// As [`begin_or_go_on`](Self::begin_or_go_on). Nothing is removed from a refused folder.
    pub fn begin_anew(
        path: &Path,
        experiment: &Experiment,
        plan: &Plan,
    ) -> Result<(Self, Removal), FolderError> {
        let (lock, _) = enter(path)?;
        // The old manifest stays until the new one replaces it, so that the folder is never taken for a stranger's.
        let removal = own_files::remove_results(path).map_err(in_own(path))?;
        let folder = Self::begin(path, experiment, Manifest::new(experiment, plan), lock)?;
        Ok((folder, removal))
    }

    /// The manifest goes first: it marks everything else as `lab`'s.
    fn begin(
        path: &Path,
        experiment: &Experiment,
        manifest: Manifest,
        lock: File,
    ) -> Result<Self, FolderError> {
        write(&path.join(MANIFEST), &json(&manifest))?;
        write(&path.join(EXPERIMENT), experiment.text().as_bytes())?;
        make_runs(path)?;
        Ok(Self { path: path.to_owned(), manifest, records: Vec::new(), _lock: lock })
    }

    /// Removes half-written files.
    ///
    /// # Errors
    /// If `lab` did not make the folder, or it is a link, or another process adds runs to it.
    pub fn clean(path: &Path) -> Result<Removal, FolderError> {
        match own_files::owner(path).map_err(in_own(path))? {
            Owner::Lab => {}
            Owner::Nobody => return Err(FolderError::Missing(path.to_owned())),
            Owner::Stranger => return Err(FolderError::Foreign(path.to_owned())),
        }
        let _lock = lock(path)?;
        own_files::remove_partial_files(path).map_err(in_own(path))
    }

    /// Whether a folder carries a manifest that `lab` wrote; `false` for a link, and if it cannot be read.
    #[must_use]
    pub fn is_of_lab(path: &Path) -> bool {
        own_files::is_of_lab(path)
    }

    /// Opens results to read; also possible while runs are added.
    ///
    /// # Errors
    /// If there are none, or they cannot be read.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        if !is_there(&path.join(MANIFEST)) {
            return Err(FolderError::Missing(path.to_owned()));
        }
        Self::read(path, File::open(path).map_err(at(path))?)
    }

    fn read(path: &Path, lock: File) -> Result<Self, FolderError> {
        let file = path.join(MANIFEST);
        let value: serde_json::Value = read(&file)?;
        let schema = value["schema"].as_u64().and_then(|schema| u32::try_from(schema).ok()).unwrap_or(0);
        if schema != SCHEMA {
            let reason = format!("it has format {schema}, and this one knows format {SCHEMA}");
            return Err(FolderError::OtherVersion { path: path.to_owned(), reason });
        }
        let manifest = serde_json::from_value(value).map_err(unreadable(&file))?;
        Ok(Self { path: path.to_owned(), manifest, records: records(&path.join(RUNS))?, _lock: lock })
    }

    /// Refuses to mix results of different experiments, machines or programs.
    fn check_same(&self, wanted: &Manifest) -> Result<(), FolderError> {
        let is = &self.manifest;
        let what = if is.form != wanted.form {
            format!("the {} form", is.form)
        } else if !wanted.runs.starts_with(&is.runs) {
            "an experiment that has changed since".to_owned()
        } else if is.machine != wanted.machine {
            let Machine { kernel, processor, processors, .. } = &is.machine;
            format!("another machine ({kernel}, {processors} × {processor})")
        } else if is.ropewalk != wanted.ropewalk {
            format!("ropewalk {}", is.ropewalk)
        } else {
            return Ok(());
        };
        Err(FolderError::Different { path: self.path.clone(), what })
    }

    /// The path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The experiment that was run.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn experiment(&self) -> Result<Experiment, FolderError> {
        let file = self.path.join(EXPERIMENT);
        let text = fs::read_to_string(&file).map_err(at(&file))?;
        Experiment::parse(&text).map_err(|error: InvalidExperiment| damaged(&file, &error))
    }

    /// All runs of the experiment in the folder.
    ///
    /// # Errors
    /// If the experiment is not the manifest's.
    pub fn plan(&self, experiment: &Experiment) -> Result<Plan, FolderError> {
        let file = self.path.join(EXPERIMENT);
        let plan = experiment.plan(self.manifest.form).map_err(|error| damaged(&file, &error))?;
        match Manifest::new(experiment, &plan).runs == self.manifest.runs {
            true => Ok(plan),
            false => Err(damaged(&file, &"it is not the experiment of manifest.json")),
        }
    }

    /// The attempts at a run; run numbers start at 1.
    pub fn attempts(&self, run: usize) -> impl Iterator<Item = &RunRecord> {
        self.records.iter().filter(move |record| record.run == run)
    }

    /// The samples of an attempt, in the stored order.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn samples(&self, record: &RunRecord) -> Result<Vec<Sample>, FolderError> {
        let file = self.path.join(RUNS).join(format!("{}.jsonl", name(record)));
        let text = fs::read_to_string(&file).map_err(at(&file))?;
        text.lines().map(|line| serde_json::from_str(line).map_err(unreadable(&file))).collect()
    }

    /// Writes [`REPORT`], and pictures of its figures.
    ///
    /// # Errors
    /// The system's own.
    pub fn write_report(&self, html: &str, pictures: &[Vec<u8>]) -> Result<(), FolderError> {
        for (number, picture) in (1..).zip(pictures) {
            write(&self.path.join(own_files::figure(number)), picture)?;
        }
        write(&self.path.join(REPORT), html.as_bytes())
    }

    /// The capture of an attempt, a pcapng file; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn capture(&self, record: &RunRecord) -> Result<Option<Vec<u8>>, FolderError> {
        let file = self.capture_file(record);
        record.capture.as_ref().map(|_| fs::read(&file).map_err(at(&file))).transpose()
    }

    /// The path of an attempt's capture.
    pub(crate) fn capture_file(&self, record: &RunRecord) -> PathBuf {
        self.path.join(RUNS).join(format!("{}.pcapng", name(record)))
    }

    /// Stores an attempt, with its samples, and its capture if there is one.
    ///
    /// # Errors
    /// The system's own.
    pub fn add(
        &mut self,
        record: RunRecord,
        samples: &[Sample],
        capture: Option<&[u8]>,
    ) -> Result<(), FolderError> {
        if let Some(capture) = capture {
            write(&self.capture_file(&record), capture)?;
        }
        let name = name(&record);
        let lines: Vec<u8> = samples.iter().flat_map(|sample| line(sample).into_bytes()).collect();
        let runs = self.path.join(RUNS);
        write(&runs.join(format!("{name}.jsonl")), &lines)?;
        write(&runs.join(format!("{name}.json")), &json(&record))?;
        self.records.push(record);
        Ok(())
    }
}

/// The stem of an attempt's files.
fn name(record: &RunRecord) -> String {
    own_files::attempt(record.run, record.attempt)
}

fn records(runs: &Path) -> Result<Vec<RunRecord>, FolderError> {
    let mut records = Vec::new();
    let entries = match fs::read_dir(runs) {
        // The start of the folder was interrupted.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(records),
        entries => entries.map_err(at(runs))?,
    };
    for entry in entries {
        let entry = entry.map_err(at(runs))?;
        if entry.file_name().to_str().is_some_and(own_files::is_record) {
            records.push(read::<RunRecord>(&entry.path())?);
        }
    }
    records.sort_by_key(|record| (record.run, record.attempt));
    Ok(records)
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, FolderError> {
    let bytes = fs::read(path).map_err(at(path))?;
    serde_json::from_slice(&bytes).map_err(unreadable(path))
}

fn write(path: &Path, contents: &[u8]) -> Result<(), FolderError> {
    file::write(path, contents).map_err(at(path))
}

/// Formatted JSON, which people can read too.
fn json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).expect("keys are texts");
    text.push(b'\n');
    text
}

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("keys are texts") + "\n"
}

fn lock(path: &Path) -> Result<File, FolderError> {
    let folder = File::open(path).map_err(at(path))?;
    match folder.try_lock() {
        Ok(()) => Ok(folder),
        Err(TryLockError::WouldBlock) => Err(FolderError::InUse(path.to_owned())),
        Err(TryLockError::Error(source)) => Err(at(path)(source)),
    }
}

/// Makes the folder if it is missing, locks it, and refuses a link and a folder that is not `lab`'s.
fn enter(path: &Path) -> Result<(File, Owner), FolderError> {
    fs::create_dir_all(path).map_err(at(path))?;
    let lock = lock(path)?;
    match own_files::owner(path).map_err(in_own(path))? {
        Owner::Stranger => Err(FolderError::Foreign(path.to_owned())),
        owner => Ok((lock, owner)),
    }
}

fn make_runs(path: &Path) -> Result<(), FolderError> {
    let runs = path.join(RUNS);
    fs::create_dir_all(&runs).map_err(at(&runs))
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn at(path: &Path) -> impl Fn(io::Error) -> FolderError {
    move |source| FolderError::System { path: path.to_owned(), source }
}

fn in_own(path: &Path) -> impl Fn(io::Error) -> FolderError {
    move |error| match error.kind() {
        io::ErrorKind::NotADirectory => FolderError::Link(error),
        _ => at(path)(error),
    }
}

/// The error for invalid JSON, or JSON of another kind.
fn unreadable(path: &Path) -> impl Fn(serde_json::Error) -> FolderError {
    move |error| match error.classify() {
        Category::Data => FolderError::OtherVersion { path: path.to_owned(), reason: error.to_string() },
        Category::Io | Category::Syntax | Category::Eof => damaged(path, &error),
    }
}

fn damaged(path: &Path, reason: &impl ToString) -> FolderError {
    FolderError::Damaged { path: path.to_owned(), reason: reason.to_string() }
}
