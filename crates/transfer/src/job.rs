//! A copy, from the first check of both ends to the last comparison.

use crate::clock::Clock;
use crate::disk::Disk;
use crate::end::{Destination, DestinationKind, STREAM_NAME, Source, SourceKind};
use crate::forward::Forward;
use crate::input::Input;
use crate::outstanding::{Control, Outstanding, Turn};
use crate::pipeline::{Origin, Pipeline};
use crate::place::{FILE_BLOCK_BYTES, GrowingFile, Open};
use crate::plan::{Facts, Options, Plan};
use crate::stream::Writer;
use crate::verify::{Reference, Verification};
use crate::worker::{Worker, Zeroing};
use crate::{Error, Phase, Progress, Refusal, Survey, Verify, survey};
use block::{BUFFER_ALIGNMENT_BYTES, Slab};
use futures_util::future::{self, FutureExt, TryFutureExt};
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A copy that passed all checks.
pub struct Job {
    source: Source,
    destination: Destination,
    options: Options,
    plan: Plan,
    clock: Arc<dyn Clock>,
    progress: Arc<Progress>,
}

/// A copy that succeeded: all of it is durable, and every part that was read back is equal to the source.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// Length of the source.
    pub bytes: u64,
    /// How much of it was compared.
    pub verified: Verify,
}

/// A copy that did not succeed.
#[derive(Debug)]
pub struct Failure {
    /// The error that ended the copy.
    pub error: Error,
    /// The state in which the destination was left.
    pub destination: DestinationState,
    /// The file that holds the copy, if it does not have the destination's name.
    pub partial: Option<Box<Path>>,
}

impl Failure {
    /// A failure before anything was written.
    #[must_use]
    pub fn before_writing(error: Error) -> Self {
        Self { error, destination: DestinationState::Untouched, partial: None }
    }

    /// The state of the destination, for people.
    #[must_use]
    pub fn consequence(&self) -> String {
        let state = self.destination;
        match &self.partial {
            Some(partial) if state == DestinationState::Unnamed => {
                format!("{state}: it is {}", partial.display())
            }
            Some(partial) => {
                let partial = partial.display();
                format!("{state}; it is {partial}: remove it, or start again with --overwrite")
            }
            None => state.to_string(),
        }
    }
}

/// The state of a destination after a failed copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestinationState {
    /// It is unchanged.
    Untouched,
    /// Some parts are new and some old; nobody knows which.
    Incomplete,
    /// Everything was written and flushed, but the verification did not finish.
    Unverified,
    /// Everything was written and flushed, but the verification read something else back.
    Different,
    /// The copy is good, but the file could not be given its name.
    Unnamed,
}

impl std::fmt::Display for DestinationState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Untouched => "nothing was written to the destination",
            Self::Incomplete => "the destination is incomplete: treat it as garbage until a copy succeeds",
            Self::Unverified => "the destination was written and flushed, but not verified to the end",
            Self::Different => "the destination is not a copy of the source: do not use it",
            Self::Unnamed => "the copy is complete, under another name",
        })
    }
}

impl Job {
    /// Checks both ends without changing anything.
    ///
    /// # Errors
    /// [`Error::Refused`] if the copy must not be made.
    pub async fn prepare(
        source: Source,
        destination: Destination,
        options: Options,
        clock: Arc<dyn Clock>,
        progress: Arc<Progress>,
    ) -> Result<Self, Error> {
        check_identity(&source, &destination, &options)?;
        let plan = Plan::make(&facts(&source, &destination, &options), &options)?;
        let job = Self { source, destination, options, plan, clock, progress };
        job.check_unoccupied().await?;
        if let DestinationKind::Place(place) = &job.destination.kind {
            place.check(job.options.overwrite)?;
        }
        job.progress.set_total(job.plan.bytes.unwrap_or(0));
        job.progress.set_source_format(job.plan.source_format);
        Ok(job)
    }

    /// Looks again whether the destination holds something that must not be overwritten.
    ///
    /// # Errors
    /// [`Refusal::Occupied`] if it does.
    pub async fn check_unoccupied(&self) -> Result<(), Error> {
        let Self { destination, options, .. } = self;
        if let Some(disk) = destination.present().filter(|_| !options.overwrite)
            && let Some(found) = survey::occupant(disk).await?
        {
            return Err(Refusal::Occupied { destination: destination.identity.clone(), found }.into());
        }
        Ok(())
    }

    /// The plan of the copy.
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

    /// Copies, flushes and reads back. When `interrupt` resolves, waits for the requests under way and ends.
    ///
    /// # Errors
    /// [`Failure`] has the cause and the state of the destination.
    pub async fn run(self, interrupt: impl Future<Output = ()> + Send + 'static) -> Result<Report, Failure> {
        let Self { source, destination, options, plan, clock, progress } = self;
        let mut control = Control::new(clock, options.limit.clone(), Box::pin(interrupt));
        let slab = Slab::new(budget_bytes(&plan));
        let touched = AtomicBool::new(false);
        let run = Run { source: &source, plan: &plan, progress: &progress, slab: &slab, touched: &touched };

        run.await_input(&mut control).await.map_err(Failure::before_writing)?;
        let open = destination.kind.open(options.overwrite).map_err(Failure::before_writing)?;
        let outcome = run.copy_and_verify(&open, options.verify_seed, &mut control).await;
        let Open::File(file) = open else { return outcome };
        let outcome = outcome.and_then(|report| finish(&*file, report));
        outcome.map_err(|failure| Failure {
            partial: file.abandon(failure.destination != DestinationState::Untouched),
            ..failure
        })
    }
}

/// Gives a good copy its length and its name.
fn finish(file: &dyn GrowingFile, report: Report) -> Result<Report, Failure> {
    let finished = file.finish(report.bytes);
    finished.map(|()| report).map_err(|error| Failure {
        destination: match error {
            Error::Rename { .. } => DestinationState::Unnamed,
            _ => DestinationState::Incomplete,
        },
        error,
        partial: None,
    })
}

/// The state that the phases of a copy share.
#[derive(Clone, Copy)]
struct Run<'a> {
    source: &'a Source,
    plan: &'a Plan,
    progress: &'a Progress,
    slab: &'a Slab,
    touched: &'a AtomicBool,
}

impl<'a> Run<'a> {
    /// Reads the first bytes of a stream before the destination is changed.
    async fn await_input(self, control: &mut Control) -> Result<(), Error> {
        let Origin::Stream(input) = self.origin() else { return Ok(()) };
        let mut outstanding = Outstanding::new();
        outstanding.start_streaming(input.format(self.slab));
        loop {
            if let Turn::Done(format) = outstanding.next(control).await? {
                self.progress.set_source_format(format?);
                return Ok(());
            }
        }
    }

    async fn copy_and_verify(self, open: &Open, seed: u64, control: &mut Control) -> Result<Report, Failure> {
        match (open, self.plan.bytes) {
            (Open::Stream(writer), _) => {
                let (bytes, _) = self.forward(writer, control).await?;
                Ok(Report { bytes, verified: Verify::Off })
            }
            // A file that is open as a disk cannot grow step by step.
            (Open::File(file), None) => {
                let writer = self.needed(file.writer())?;
                let (bytes, checksums) = self.forward(&writer, control).await?;
                let copy = self.needed(file.disk())?;
                self.enter_verification();
                self.verified(&copy, (bytes, &checksums), seed, control).await
            }
            (Open::File(file), Some(bytes)) => {
                let changed = self.needed(file.extend(bytes.next_multiple_of(self.plan.unit_bytes)))?;
                self.touched.store(changed, Ordering::Relaxed);
                let disk = self.needed(file.disk())?;
                self.to_disk(&disk, seed, control).await
            }
            (Open::Disk(disk), _) => self.to_disk(disk, seed, control).await,
        }
    }

    async fn to_disk(self, disk: &Disk, seed: u64, control: &mut Control) -> Result<Report, Failure> {
        let no_zeroing_command = AtomicBool::new(false);
        let worker = Worker {
            destination: &*disk.backend,
            name: &self.plan.destination.name,
            slab: self.slab,
            progress: self.progress,
            zeroing: self.plan.zeroing.unwrap_or(Zeroing::Write),
            request_bytes: self.plan.request_bytes,
            unit_bytes: self.plan.unit_bytes,
            unflushed_bytes_max: self.plan.unflushed_bytes_max,
            touched: self.touched,
            no_zeroing_command: &no_zeroing_command,
        };
        let mut pipeline = Pipeline::new(worker, self.origin(), self.plan.depth());
        loop {
            let written = pipeline.write(control).await;
            self.finished(written)?;
            let flush = pipeline.flush().inspect_ok(|()| self.enter_verification());
            let verified = self.verified(disk, pipeline.written(), seed, control);
            // Both at once saves a round trip. What was read back counts only if the flush succeeds.
            match future::try_join(flush, verified.map(Ok)).await {
                Ok(((), verified)) => return verified,
                Err(error) => self.needed(pipeline.not_flushed(error))?,
            }
        }
    }

    async fn forward(self, writer: &Writer, control: &mut Control) -> Result<(u64, Vec<u64>), Failure> {
        self.progress.enter(Phase::Copying);
        let forward = Forward {
            origin: self.origin(),
            writer,
            name: &self.plan.destination.name,
            request_bytes: self.plan.request_bytes,
            depth: self.plan.depth(),
            slab: self.slab,
            progress: self.progress,
            touched: self.touched,
        };
        let written = forward.run(control).await;
        let written = self.finished(written)?;
        self.progress.set_total(written.0);
        Ok(written)
    }

    /// The outcome of writing. A source that changed meanwhile is an error of its own, which precedes verification,
    /// because that could only report a difference.
    fn finished<T>(self, written: Result<T, Error>) -> Result<T, Failure> {
        self.needed(written.and_then(|written| self.source.check_unchanged().map(|()| written)))
    }

    /// What the copy cannot do without.
    fn needed<T>(self, outcome: Result<T, Error>) -> Result<T, Failure> {
        outcome.map_err(|error| Failure {
            error,
            destination: match self.touched.load(Ordering::Relaxed) {
                true => DestinationState::Incomplete,
                false => DestinationState::Untouched,
            },
            partial: None,
        })
    }

    fn origin(self) -> Origin<'a> {
        match &self.source.kind {
            SourceKind::Disk(disk) => Origin::Disk(disk),
            SourceKind::Stream(reader) => Origin::Stream(Input { reader, expected_bytes: self.plan.bytes }),
        }
    }

    fn enter_verification(self) {
        if self.plan.verify != Verify::Off {
            self.progress.enter(Phase::Verifying);
        }
    }

    /// Reads the copy back, and compares it with the source or with the checksums of a stream.
    async fn verified(
        self,
        copy: &Disk,
        (bytes, checksums): (u64, &[u64]),
        seed: u64,
        control: &mut Control,
    ) -> Result<Report, Failure> {
        self.progress.set_total(bytes);
        if self.plan.verify == Verify::Off {
            return Ok(Report { bytes, verified: Verify::Off });
        }
        let reference = match &self.source.kind {
            SourceKind::Disk(disk) => Reference::Disk(disk),
            SourceKind::Stream(_) => Reference::Checksums(checksums),
        };
        let verification = Verification {
            reference,
            copy,
            bytes,
            request_bytes: self.plan.request_bytes,
            unit_bytes: self.plan.unit_bytes,
            requests: self.plan.requests,
            verify: self.plan.verify,
            seed,
            slab: self.slab,
            progress: self.progress,
        };
        match verification.run(control).await {
            Ok(()) => Ok(Report { bytes, verified: self.plan.verify }),
            Err(error) => Err(Failure {
                destination: match error {
                    Error::Mismatch { .. } => DestinationState::Different,
                    _ => DestinationState::Unverified,
                },
                error,
                partial: None,
            }),
        }
    }
}

fn check_identity(source: &Source, destination: &Destination, options: &Options) -> Result<(), Refusal> {
    if destination.is(source) {
        // A path is a better name than a dash.
        let ends = [&destination.identity, &source.identity];
        let named = ends.into_iter().find(|end| end.name != STREAM_NAME);
        return Err(Refusal::Same(named.unwrap_or(&destination.identity).clone()));
    }
    let Some(expected) = &options.expect_id else { return Ok(()) };
    let found = if destination.is_device() { &destination.identity } else { &source.identity };
    if found.is(expected) {
        return Ok(());
    }
    Err(Refusal::OtherIdentity { expected: expected.clone(), found: found.clone() })
}

fn facts(source: &Source, destination: &Destination, options: &Options) -> Facts {
    let present = destination.present();
    let is_stream = matches!(destination.kind, DestinationKind::Stream(_));
    let is_file = !is_stream && !destination.is_device();
    let is_remote = matches!(destination.kind, DestinationKind::Device(_));
    Facts {
        source: source.identity.clone(),
        destination: destination.identity.clone(),
        source_bytes: source.bytes(),
        source_block_bytes: match &source.kind {
            SourceKind::Disk(disk) => disk.block_bytes(),
            SourceKind::Stream(_) => 1,
        },
        source_format: source.image_format(),
        capacity_bytes: destination.capacity_bytes(),
        destination_block_bytes: match present {
            Some(disk) => disk.block_bytes(),
            None if is_stream => 1,
            None => FILE_BLOCK_BYTES.into(),
        },
        // Files and block devices are still open for reading only.
        read_only: is_remote && present.is_some_and(|disk| disk.backend.properties().read_only),
        deallocates_to_zero: match present {
            Some(disk) if is_remote => survey::deallocates_to_zero(&*disk.backend),
            // Linux promises that punched holes read as zeroes.
            _ => true,
        },
        // The file's lock will confirm this before anything relies on it.
        is_new: matches!(&destination.kind, DestinationKind::Place(place) if place.is_new()),
        is_stream: is_stream || is_file && source.bytes().or(options.source_bytes).is_none(),
        can_verify: !is_stream,
    }
}

/// The memory that a copy needs: a buffer of the source and one of the destination for every request, twice that
/// because lengths are rounded up to powers of two, as much again for the reads of a verification that a loss ended,
/// the data of a stream until it is flushed, and a little for the last, partial requests.
fn budget_bytes(plan: &Plan) -> usize {
    let request_bytes = usize::try_from(plan.request_bytes).unwrap_or(usize::MAX);
    let in_flight =
        request_bytes.max(BUFFER_ALIGNMENT_BYTES).saturating_mul(plan.requests_max + 2).saturating_mul(8);
    let retained_bytes = usize::try_from(plan.unflushed_bytes_max).unwrap_or(usize::MAX);
    in_flight.saturating_add(retained_bytes.saturating_mul(2))
}
