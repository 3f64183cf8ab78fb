//! A copy from its first look at both ends to its last comparison.

use crate::clock::Clock;
use crate::disk::Disk;
use crate::end::{Destination, DestinationKind, STREAM_NAME, Source, SourceKind};
use crate::forward::Forward;
use crate::outstanding::Control;
use crate::pipeline::{Origin, Pipeline};
use crate::plan::{Facts, Options, Plan};
use crate::stream::Writer;
use crate::verify::{Reference, Verification};
use crate::worker::{Worker, Zeroing};
use crate::{Error, Phase, Progress, Refusal, Survey, Verify, local, survey};
use block::{BUFFER_ALIGNMENT_BYTES, Engine, Slab};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A copy that may be made: everything that speaks against it was checked.
pub struct Job {
    source: Source,
    destination: Destination,
    options: Options,
    plan: Plan,
    engine: Engine,
    clock: Arc<dyn Clock>,
    progress: Arc<Progress>,
}

/// A copy that succeeded: all of it is durable, and equal as far as it was read back.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// Length of the source.
    pub bytes: u64,
    /// How much was compared.
    pub verified: Verify,
}

/// A copy that did not succeed.
#[derive(Debug)]
pub struct Failure {
    /// Why.
    pub error: Error,
    /// What is left of the destination.
    pub destination: DestinationState,
}

/// What a destination is like after a copy that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestinationState {
    /// As it was before.
    Untouched,
    /// Parts are new, parts are old; nobody knows which.
    Incomplete,
    /// All was written and flushed, but reading it back did not come to its end.
    Unverified,
    /// All was written and flushed, and something else was read back.
    Different,
}

impl std::fmt::Display for DestinationState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Untouched => "nothing was written to the destination",
            Self::Incomplete => "the destination is incomplete: treat it as garbage until a copy succeeds",
            Self::Unverified => "the destination was written and flushed, but not verified to the end",
            Self::Different => "the destination is not a copy of the source: do not use it",
        })
    }
}

/// A destination that is open for writing.
struct Open {
    disk: Disk,
    /// The file, and the length that it is cut to when it was extended to whole blocks for the copy.
    cut: Option<(PathBuf, u64)>,
}

/// What a copy brought over.
struct Copied {
    bytes: u64,
    checksums: Vec<u64>,
    /// To be read back; `None` where nothing can be.
    copy: Option<Disk>,
    cut: Option<(PathBuf, u64)>,
}

impl Job {
    /// Looks at both ends, changing nothing. `engine` does the I/O on files.
    ///
    /// # Errors
    /// [`Error::Refused`] if the copy must not be made.
    pub async fn prepare(
        source: Source,
        destination: Destination,
        options: Options,
        engine: Engine,
        clock: Arc<dyn Clock>,
        progress: Arc<Progress>,
    ) -> Result<Self, Error> {
        check_identity(&source, &destination, &options)?;
        let plan = Plan::make(&facts(&source, &destination), &options)?;
        if let Some(disk) = destination.present().filter(|_| !options.overwrite)
            && let Some(found) = survey::occupant(disk).await?
        {
            return Err(Refusal::Occupied { destination: destination.identity.clone(), found }.into());
        }
        progress.set_total(plan.bytes.unwrap_or(0));
        Ok(Self { source, destination, options, plan, engine, clock, progress })
    }

    /// What will be done.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How much of the source is allocated; `None` for a stream.
    pub async fn survey(&self) -> Option<Survey> {
        match &self.source.kind {
            SourceKind::Disk(disk) => Some(survey::extents(disk).await),
            SourceKind::Stream(_) => None,
        }
    }

    /// Copies, flushes and reads back. Ends early when `interrupt` resolves, once what is under way has ended.
    ///
    /// # Errors
    /// Why it failed, and what is left of the destination.
    pub async fn run(self, interrupt: impl Future<Output = ()> + Send + 'static) -> Result<Report, Failure> {
        let Self { source, destination, options, plan, engine, clock, progress } = self;
        let mut control = Control::new(clock, options.limit.clone(), Box::pin(interrupt));
        let slab = Slab::new(budget_bytes(&plan));
        let touched = AtomicBool::new(false);
        let run = Run {
            source: &source.kind,
            plan: &plan,
            engine: &engine,
            progress: &progress,
            slab: &slab,
            touched: &touched,
        };

        let copied = run.copy(destination.kind, &mut control).await.map_err(|error| Failure {
            error,
            destination: match touched.load(Ordering::Relaxed) {
                true => DestinationState::Incomplete,
                false => DestinationState::Untouched,
            },
        })?;
        progress.set_total(copied.bytes);
        let verified = run.verify(&copied, options.verify_seed, &mut control).await;
        let verified = verified.map_err(|error| Failure {
            destination: match error {
                Error::Mismatch { .. } => DestinationState::Different,
                _ => DestinationState::Unverified,
            },
            error,
        })?;
        let bytes = copied.bytes;
        cut(copied).map_err(|error| Failure { error, destination: DestinationState::Incomplete })?;
        Ok(Report { bytes, verified })
    }
}

/// What the phases of a copy share.
#[derive(Clone, Copy)]
struct Run<'a> {
    source: &'a SourceKind,
    plan: &'a Plan,
    engine: &'a Engine,
    progress: &'a Progress,
    slab: &'a Slab,
    touched: &'a AtomicBool,
}

impl Run<'_> {
    async fn copy(self, destination: DestinationKind, control: &mut Control) -> Result<Copied, Error> {
        self.progress.enter(Phase::Copying);
        match (destination, self.plan.bytes) {
            (DestinationKind::Stream(writer), _) => {
                let (bytes, checksums) = self.forward(&writer, control).await?;
                Ok(Copied { bytes, checksums, copy: None, cut: None })
            }
            // A file cannot grow step by step while it is a disk.
            (DestinationKind::File { path, present }, None) => {
                drop(present);
                self.touched.store(true, Ordering::Relaxed);
                let file = std::fs::File::create(&path);
                let file = file.map_err(|error| local::cannot_open(&path, error))?;
                local::sync_folder(&path);
                let (bytes, checksums) = self.forward(&Writer::new(SyncedFile(file)), control).await?;
                let copy = Some(local::open_to_read(&path, self.engine)?);
                Ok(Copied { bytes, checksums, copy, cut: None })
            }
            (DestinationKind::File { path, present }, Some(bytes)) => {
                drop(present);
                let open = self.open_file(path, bytes)?;
                self.to_disk(open, control).await
            }
            // It was open for reading only, and its lock must be free to be taken for writing.
            (DestinationKind::BlockDevice { path, present }, _) => {
                drop(present);
                let disk = local::open_to_write(&path, None, self.engine)?;
                self.to_disk(Open { disk, cut: None }, control).await
            }
            (DestinationKind::Device(disk), _) => self.to_disk(Open { disk, cut: None }, control).await,
        }
    }

    fn open_file(self, path: PathBuf, bytes: u64) -> Result<Open, Error> {
        let before_bytes = match std::fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(_) => create_new(&path)?,
        };
        let padded_bytes = bytes.next_multiple_of(self.plan.unit_bytes);
        let disk = local::open_to_write(&path, Some(padded_bytes), self.engine)?;
        self.touched.store(before_bytes < padded_bytes, Ordering::Relaxed);
        let cut = (before_bytes < padded_bytes).then(|| (path, bytes.max(before_bytes)));
        Ok(Open { disk, cut })
    }

    async fn to_disk(self, open: Open, control: &mut Control) -> Result<Copied, Error> {
        let no_zeroing_command = AtomicBool::new(false);
        let worker = Worker {
            destination: &*open.disk.backend,
            name: &self.plan.destination.name,
            slab: self.slab,
            progress: self.progress,
            zeroing: self.plan.zeroing.unwrap_or(Zeroing::Write),
            request_bytes: self.plan.request_bytes,
            unit_bytes: self.plan.unit_bytes,
            requests: self.plan.requests,
            touched: self.touched,
            no_zeroing_command: &no_zeroing_command,
        };
        let (bytes, checksums) = Pipeline::new(worker, self.origin()).run(control).await?;
        Ok(Copied { bytes, checksums, copy: Some(open.disk), cut: open.cut })
    }

    async fn forward(self, writer: &Writer, control: &mut Control) -> Result<(u64, Vec<u64>), Error> {
        let forward = Forward {
            origin: self.origin(),
            writer,
            name: &self.plan.destination.name,
            request_bytes: self.plan.request_bytes,
            requests: self.plan.requests,
            slab: self.slab,
            progress: self.progress,
            touched: self.touched,
        };
        forward.run(control).await
    }

    fn origin(&self) -> Origin<'_> {
        match self.source {
            SourceKind::Disk(disk) => Origin::Disk(disk),
            SourceKind::Stream(reader) => Origin::Stream(reader),
        }
    }

    /// Returns how much was compared.
    async fn verify(self, copied: &Copied, seed: u64, control: &mut Control) -> Result<Verify, Error> {
        let Some(copy) = copied.copy.as_ref().filter(|_| self.plan.verify != Verify::Off) else {
            return Ok(Verify::Off);
        };
        self.progress.enter(Phase::Verifying);
        let reference = match self.source {
            SourceKind::Disk(disk) => Reference::Disk(disk),
            SourceKind::Stream(_) => Reference::Checksums(&copied.checksums),
        };
        let verification = Verification {
            reference,
            copy,
            bytes: copied.bytes,
            request_bytes: self.plan.request_bytes,
            unit_bytes: self.plan.unit_bytes,
            requests: self.plan.requests,
            verify: self.plan.verify,
            seed,
            slab: self.slab,
            progress: self.progress,
        };
        verification.run(control).await?;
        Ok(self.plan.verify)
    }
}

/// A new and empty file; somebody else's that appeared meanwhile is not taken for it.
fn create_new(path: &Path) -> Result<u64, Error> {
    let created = std::fs::File::create_new(path);
    created.map_err(|error| local::cannot_open(path, error))?;
    local::sync_folder(path);
    Ok(0)
}

/// Takes the padding off the end of a file, and makes its length durable.
fn cut(copied: Copied) -> Result<(), Error> {
    let Copied { copy, cut, .. } = copied;
    drop(copy);
    let Some((path, bytes)) = cut else { return Ok(()) };
    let cut = || {
        let file = std::fs::OpenOptions::new().write(true).open(&path)?;
        if file.metadata()?.len() > bytes {
            file.set_len(bytes)?;
        }
        file.sync_all()
    };
    cut().map_err(|error| local::cannot_open(&path, error))
}

/// A file whose flush reaches the medium.
struct SyncedFile(std::fs::File);

impl std::io::Write for SyncedFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.sync_all()
    }
}

fn check_identity(source: &Source, destination: &Destination, options: &Options) -> Result<(), Refusal> {
    if destination.is(source) {
        // A path says more than a dash.
        let ends = [&destination.identity, &source.identity];
        let named = ends.into_iter().find(|end| end.name != STREAM_NAME);
        return Err(Refusal::Same(named.unwrap_or(&destination.identity).clone()));
    }
    let Some(expected) = &options.expect_id else { return Ok(()) };
    let has_identity =
        matches!(destination.kind, DestinationKind::Device(_) | DestinationKind::BlockDevice { .. });
    let found = if has_identity { &destination.identity } else { &source.identity };
    if found.is(expected) {
        return Ok(());
    }
    Err(Refusal::OtherIdentity { expected: expected.clone(), found: found.clone() })
}

fn facts(source: &Source, destination: &Destination) -> Facts {
    let present = destination.present();
    let is_stream = matches!(destination.kind, DestinationKind::Stream(_));
    let is_file = matches!(destination.kind, DestinationKind::File { .. });
    let is_device = matches!(destination.kind, DestinationKind::Device(_));
    Facts {
        source: source.identity.clone(),
        destination: destination.identity.clone(),
        source_bytes: source.bytes(),
        source_block_bytes: match &source.kind {
            SourceKind::Disk(disk) => disk.block_bytes(),
            SourceKind::Stream(_) => 1,
        },
        capacity_bytes: destination.capacity_bytes().or_else(|| length_kept(source, destination)),
        destination_block_bytes: match present {
            Some(disk) => disk.block_bytes(),
            None if is_stream => 1,
            None => local::BLOCK_BYTES[0].into(),
        },
        // Files and block devices are open for reading only as yet.
        read_only: is_device && present.is_some_and(|disk| disk.backend.properties().read_only),
        deallocates_to_zero: match present {
            Some(disk) if is_device => survey::deallocates_to_zero(&*disk.backend),
            // Punching holes, which Linux promises to read as zeroes.
            _ => true,
        },
        is_new: is_file && present.is_none_or(|disk| disk.bytes() == 0),
        is_stream: is_stream || is_file && source.bytes().is_none(),
        can_verify: !is_stream,
    }
}

/// The length of a file that is longer than what is copied to it: it does not grow, and keeps its end.
fn length_kept(source: &Source, destination: &Destination) -> Option<u64> {
    let present = destination.present()?;
    let copied_bytes = source.bytes()?.next_multiple_of(present.block_bytes());
    Some(present.bytes()).filter(|present_bytes| *present_bytes > copied_bytes)
}

/// For every request a buffer of the source and one of the destination; twice, as lengths are rounded up to powers
/// of two; what a stream keeps until it is flushed; and a little for the last, partial requests.
fn budget_bytes(plan: &Plan) -> usize {
    let request_bytes = usize::try_from(plan.request_bytes).unwrap_or(usize::MAX);
    let in_flight =
        request_bytes.max(BUFFER_ALIGNMENT_BYTES).saturating_mul(plan.requests + 2).saturating_mul(4);
    in_flight.saturating_add(2 * crate::pipeline::RETAINED_BYTES_MAX)
}
