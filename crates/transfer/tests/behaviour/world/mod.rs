//! Devices with the faults a test asks for, and a clock that jumps instead of waiting.

use block::{
    Backend, BlockError, BlockErrorKind, Buffer, Completer, Completion, Engine, EngineChoice, Operation,
    Pending, Properties, Ram, Slab, Timer,
};
use ropewalk_transfer::{
    Clock, Destination, Error, Failure, Identity, Job, Options, Progress, Report, Snapshot, Source, Writer,
};
use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;

/// What goes wrong with a device.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// After so many writes, everything since the last flush is lost, and the next flush says so.
    pub loses_after_writes: Vec<u64>,
    /// Every flush says that writes were lost.
    pub loses_at_every_flush: bool,
    /// Reads of this byte fail.
    pub unreadable: Option<u64>,
    /// Writes to this byte fail.
    pub unwritable: Option<u64>,
    /// Reads bring this byte changed.
    pub corrupt: Option<u64>,
    /// There is no command to zero a range.
    pub no_zeroing: bool,
    /// What is unmapped reads as anything.
    pub not_lbprz: bool,
    pub read_only: bool,
    /// Nothing can be said about extents.
    pub no_extents: bool,
}

/// What a device was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub written_bytes: u64,
    pub zeroed_bytes: u64,
    pub unmapping_zeroes: u64,
    pub read_bytes: u64,
    pub flushes: u64,
    /// The most that was acknowledged between two flushes.
    pub unflushed_bytes_max: u64,
}

/// A RAM disk on a thread of its own that answers out of order.
pub struct Disk {
    ram: Arc<Ram>,
    faults: Faults,
    asked: Arc<Mutex<Asked>>,
    requests: Sender<(Operation, Completer)>,
}

impl Disk {
    pub fn new(bytes: u64) -> Arc<Self> {
        Self::with(bytes, 512, Faults::default())
    }

    pub fn with(bytes: u64, block_bytes: u32, faults: Faults) -> Arc<Self> {
        let ram = Arc::new(Ram::new(block_bytes, bytes / u64::from(block_bytes)).unwrap());
        let asked = Arc::default();
        let (requests, receiver) = channel();
        let service = Service {
            ram: Arc::clone(&ram),
            faults: faults.clone(),
            asked: Arc::clone(&asked),
            before: vec![],
            writes: 0,
            unflushed: 0,
            lost: false,
        };
        std::thread::spawn(move || service.run(&receiver));
        Arc::new(Self { ram, faults, asked, requests })
    }

    pub fn asked(&self) -> Asked {
        *self.asked.lock().unwrap()
    }

    pub fn fill(&self, offset: u64, data: &[u8]) {
        put(&self.ram, offset, data);
    }

    pub fn contents(&self) -> Vec<u8> {
        get(&self.ram, 0, usize::try_from(self.ram.properties().bytes()).unwrap())
    }
}

impl Backend for Disk {
    fn properties(&self) -> Properties {
        let mut properties = self.ram.properties();
        properties.read_only = self.faults.read_only;
        if let Some(thin) = &mut properties.thin {
            thin.reads_zero = !self.faults.not_lbprz;
        }
        properties
    }

    fn submit(&self, operation: Operation) -> Pending {
        let (completer, pending) = Pending::channel();
        self.requests.send((operation, completer)).unwrap();
        pending
    }
}

struct Service {
    ram: Arc<Ram>,
    faults: Faults,
    asked: Arc<Mutex<Asked>>,
    /// What unflushed writes replaced, in their order.
    before: Vec<(u64, Vec<u8>)>,
    writes: u64,
    unflushed: u64,
    lost: bool,
}

impl Service {
    fn run(mut self, requests: &Receiver<(Operation, Completer)>) {
        while let Ok(first) = requests.recv() {
            let batch: Vec<_> = std::iter::once(first).chain(requests.try_iter().take(7)).collect();
            for (operation, completer) in batch.into_iter().rev() {
                completer.complete(self.answer(operation));
            }
        }
    }

    fn answer(&mut self, operation: Operation) -> Completion {
        let range = operation.range();
        let touches = |byte: Option<u64>| {
            range.zip(byte).is_some_and(|(range, byte)| (range.offset..range.end()).contains(&byte))
        };
        let failed = |kind| Completion::failed(BlockError::new(kind, "scripted"));
        let asked = Arc::clone(&self.asked);
        let mut asked = asked.lock().unwrap();
        match &operation {
            Operation::Read { .. } if touches(self.faults.unreadable) => {
                return failed(BlockErrorKind::Medium);
            }
            Operation::Write { .. } if touches(self.faults.unwritable) => {
                return failed(BlockErrorKind::Medium);
            }
            Operation::WriteZeroes { .. } if self.faults.no_zeroing => {
                return failed(BlockErrorKind::Unsupported);
            }
            Operation::Extents { .. } if self.faults.no_extents => {
                return failed(BlockErrorKind::Unsupported);
            }
            Operation::Flush => {
                asked.flushes += 1;
                return self.flush();
            }
            Operation::Read { buffer, .. } => asked.read_bytes += buffer.len() as u64,
            Operation::Write { payload, .. } => {
                asked.written_bytes += payload.len() as u64;
                self.unflushed += payload.len() as u64;
                asked.unflushed_bytes_max = asked.unflushed_bytes_max.max(self.unflushed);
            }
            Operation::WriteZeroes { bytes, may_unmap, .. } => {
                asked.zeroed_bytes += bytes;
                asked.unmapping_zeroes += u64::from(*may_unmap);
            }
            _ => {}
        }
        let changes = operation.changes_data();
        if let Some(range) = range.filter(|_| changes) {
            let bytes = usize::try_from(range.bytes).unwrap();
            self.before.push((range.offset, get(&self.ram, range.offset, bytes)));
        }
        let mut completion = submit(&self.ram, operation);
        if let (Some(range), Some(byte), Some(buffer)) = (range, self.faults.corrupt, &mut completion.buffer)
            && (range.offset..range.end()).contains(&byte)
        {
            buffer[usize::try_from(byte - range.offset).unwrap()] ^= 1;
        }
        if changes {
            self.writes += 1;
            if self.faults.loses_after_writes.contains(&self.writes) {
                self.lose();
            }
        }
        completion
    }

    fn flush(&mut self) -> Completion {
        if self.faults.loses_at_every_flush {
            self.lose();
        }
        if std::mem::take(&mut self.lost) {
            return Completion::failed(BlockError::new(BlockErrorKind::WritesLost, "scripted"));
        }
        self.before.clear();
        self.unflushed = 0;
        Completion::complete()
    }

    fn lose(&mut self) {
        for (offset, data) in std::mem::take(&mut self.before).into_iter().rev() {
            put(&self.ram, offset, &data);
        }
        self.unflushed = 0;
        self.lost = true;
    }
}

fn submit(ram: &Ram, operation: Operation) -> Completion {
    ram.submit(operation).try_take().unwrap_or_else(|_| panic!("RAM answers at once"))
}

fn buffer(bytes: usize) -> Buffer {
    Slab::new(bytes.next_power_of_two().max(4096)).allocate(bytes).unwrap()
}

fn put(ram: &Ram, offset: u64, data: &[u8]) {
    for (index, part) in data.chunks(1 << 20).enumerate() {
        let mut buffer = buffer(part.len());
        buffer.copy_from_slice(part);
        let offset = offset + (index as u64) * MIB;
        submit(ram, Operation::Write { offset, payload: buffer.share(), fua: false }).result.unwrap();
    }
}

fn get(ram: &Ram, offset: u64, bytes: usize) -> Vec<u8> {
    let mut data = Vec::with_capacity(bytes);
    while data.len() < bytes {
        let part = buffer((bytes - data.len()).min(1 << 20));
        let read = Operation::Read { offset: offset + data.len() as u64, buffer: part };
        data.extend_from_slice(&submit(ram, read).into_buffer().unwrap());
    }
    data
}

/// So many bytes of one value.
pub fn filled(byte: u8, bytes: u64) -> Vec<u8> {
    vec![byte; length(bytes)]
}

pub fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap()
}

/// Never zero, never periodic within any request.
pub fn noise(bytes: u64) -> Vec<u8> {
    let word = |index: u64| (index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
    (0..bytes.div_ceil(8)).flat_map(word).take(usize::try_from(bytes).unwrap()).collect()
}

/// Whoever waits is at that time at once.
#[derive(Default)]
pub struct JumpingClock(AtomicU64);

impl Timer for JumpingClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn wait_until(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.fetch_max(u64::try_from(time.as_nanos()).unwrap(), Ordering::Relaxed);
        Box::pin(std::future::ready(()))
    }
}

impl Clock for JumpingClock {
    fn time_of_day(&self) -> Duration {
        self.now()
    }
}

/// A destination stream that can be looked at.
#[derive(Clone, Default)]
pub struct Sink(pub Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Sink {
    pub fn destination(&self) -> Destination {
        Destination::stream("-", Writer::new(self.clone()))
    }
}

pub fn engine() -> Engine {
    Engine::new(EngineChoice::Threads).unwrap()
}

pub fn source(disk: &Arc<Disk>) -> Source {
    Source::device(Identity::named("source"), Arc::clone(disk) as Arc<dyn Backend>)
}

pub fn destination(disk: &Arc<Disk>) -> Destination {
    Destination::device(Identity::named("destination"), Arc::clone(disk) as Arc<dyn Backend>)
}

/// A copy and what could be observed of it.
pub struct Copy {
    pub outcome: Result<Report, Failure>,
    pub progress: Snapshot,
    pub clock: Arc<JumpingClock>,
}

/// Small requests, few at a time, everything compared.
pub fn options() -> Options {
    Options {
        requests: 5,
        request_bytes: 64 * KIB,
        verify: ropewalk_transfer::Verify::Full,
        ..Options::default()
    }
}

pub fn copy(source: Source, destination: Destination, options: Options) -> Copy {
    copy_until(source, destination, options, std::future::pending())
}

pub fn copy_until(
    source: Source,
    destination: Destination,
    options: Options,
    interrupt: impl Future<Output = ()> + Send + 'static,
) -> Copy {
    let clock = Arc::new(JumpingClock::default());
    let progress = Arc::new(Progress::default());
    let copy = async {
        let (clock, progress) = (Arc::clone(&clock), Arc::clone(&progress));
        let job = Job::prepare(source, destination, options, clock, progress).await;
        match job {
            Ok(job) => job.run(interrupt).await,
            Err(error) => Err(Failure::before_writing(error)),
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let outcome = runtime.block_on(copy);
    Copy { outcome, progress: progress.snapshot(), clock }
}

impl Copy {
    pub fn error(self) -> Error {
        self.outcome.unwrap_err().error
    }
}
