//! A block device as the programs of this machine know it: lengths in bytes, errors as Linux's numbers.

use block::{
    Backend, BlockError, BlockErrorKind, Buffer, Completion, Extent, ExtentState, Operation, Payload,
    Properties, Rewriting, Slab,
};
use rustix::io::Errno;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

/// The memory for operations under way of one user, where nobody says otherwise.
const MEMORY_BYTES: usize = 128 << 20;

/// The memory for what is acknowledged and not durable.
const KEPT_BYTES: usize = 256 << 20;

/// The length of one write of zeroes, where the backend has no cheaper way.
const ZEROES_BYTES: usize = 1 << 20;

/// A backend for programs of this machine.
///
/// A flush that fails may have lost writes that were acknowledged long ago, by other programs than the one that hears of
/// it. The backend tells it once; a disk tells it by every later flush. Clones are the same disk.
#[derive(Clone)]
pub struct Disk {
    backend: Arc<dyn Backend>,
    properties: Properties,
    slab: Slab,
    writes_lost: Arc<AtomicBool>,
}

impl Disk {
    /// A disk over a backend; `read_only`: it refuses writes, even if the backend takes them. What a backend may lose that
    /// has a volatile cache is kept in memory until it is durable.
    pub fn new(backend: Arc<dyn Backend>, read_only: bool) -> Self {
        let mut properties = backend.properties();
        properties.read_only |= read_only;
        let backend = if properties.volatile_cache && !properties.read_only {
            Arc::new(Rewriting::new(backend, KEPT_BYTES))
        } else {
            backend
        };
        Self { backend, properties, slab: Slab::new(MEMORY_BYTES), writes_lost: Arc::default() }
    }

    /// The same disk for another user, with memory of its own: one that keeps it starves no other.
    #[must_use]
    pub(crate) fn with_memory(&self, bytes: usize) -> Self {
        Self { slab: Slab::new(bytes), ..self.clone() }
    }

    /// The constant facts of the backend.
    #[must_use]
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Acknowledged writes may be lost; every flush says so.
    #[must_use]
    pub fn has_lost_writes(&self) -> bool {
        self.writes_lost.load(Ordering::Relaxed)
    }

    /// Memory for an operation of `bytes`, as soon as there is any.
    ///
    /// # Errors
    /// [`Errno::INVAL`] if no operation may be that long.
    pub async fn buffer(&self, bytes: usize) -> Result<Buffer, Errno> {
        if bytes > block::BUFFER_BYTES_MAX {
            return Err(Errno::INVAL);
        }
        let buffer = poll_fn(|context| {
            self.slab.wake_on_release(context.waker());
            self.slab.allocate(bytes).map_or(Poll::Pending, Poll::Ready)
        });
        Ok(buffer.await)
    }

    /// Reads `bytes` from `offset` on.
    ///
    /// # Errors
    /// The backend's, as a number of Linux.
    pub async fn read(&self, offset: u64, bytes: u32) -> Result<Buffer, Errno> {
        let buffer = self.buffer(bytes as usize).await?;
        let completion = self.run(Operation::Read { offset, buffer }).await;
        completion.into_buffer().map_err(|error| told(&error))
    }

    /// Writes the payload; `durable`: it is so before this ends.
    ///
    /// # Errors
    /// The backend's, as a number of Linux.
    pub async fn write(&self, offset: u64, payload: Payload, durable: bool) -> Result<(), Errno> {
        self.change(Operation::Write { offset, payload, fua: durable }).await
    }

    /// Makes durable all that was acknowledged.
    ///
    /// # Errors
    /// The backend's, as a number of Linux, and from then on [`Errno::IO`] each time.
    pub async fn flush(&self) -> Result<(), Errno> {
        let flushed = self.change(Operation::Flush).await;
        if flushed.is_err() {
            self.writes_lost.store(true, Ordering::Relaxed);
        }
        if self.has_lost_writes() { Err(Errno::IO) } else { flushed }
    }

    /// Makes a range read as zeroes, and frees it if it `may_unmap`.
    ///
    /// # Errors
    /// The backend's, as a number of Linux.
    pub async fn zero(&self, offset: u64, bytes: u64, may_unmap: bool, durable: bool) -> Result<(), Errno> {
        match self.change(Operation::WriteZeroes { offset, bytes, may_unmap }).await {
            Err(Errno::OPNOTSUPP) => self.write_zeroes(offset, bytes).await?,
            other => other?,
        }
        if durable { self.flush().await } else { Ok(()) }
    }

    /// Frees a range, whose contents are unknown afterwards. A backend that frees nothing does nothing.
    ///
    /// # Errors
    /// The backend's, as a number of Linux.
    pub async fn discard(&self, offset: u64, bytes: u64, durable: bool) -> Result<(), Errno> {
        match self.change(Operation::Unmap { offset, bytes }).await {
            Err(Errno::OPNOTSUPP) => {}
            other => other?,
        }
        if durable { self.flush().await } else { Ok(()) }
    }

    /// The states of a range's parts, in order, from its beginning on; not necessarily to its end.
    ///
    /// # Errors
    /// The backend's, as a number of Linux.
    pub async fn extents(&self, offset: u64, bytes: u64) -> Result<Vec<Extent>, Errno> {
        match self.run(Operation::Extents { offset, bytes }).await.into_extents() {
            Ok(extents) => Ok(extents),
            Err(error) if error.kind() == BlockErrorKind::Unsupported => {
                Ok(vec![Extent { range: block::ByteRange { offset, bytes }, state: ExtentState::Data }])
            }
            Err(error) => Err(told(&error)),
        }
    }

    async fn write_zeroes(&self, offset: u64, bytes: u64) -> Result<(), Errno> {
        let longest = usize::try_from(bytes).unwrap_or(ZEROES_BYTES).min(ZEROES_BYTES);
        let mut buffer = self.buffer(longest).await?;
        buffer.fill(0);
        let zeroes = buffer.share();
        let mut done = 0;
        while done < bytes {
            let length = usize::try_from(bytes - done).unwrap_or(longest).min(longest);
            let payload = zeroes.slice(0..length).ok_or(Errno::INVAL)?;
            self.write(offset + done, payload, false).await?;
            done += length as u64;
        }
        Ok(())
    }

    async fn change(&self, operation: Operation) -> Result<(), Errno> {
        if self.properties.read_only && operation.changes_data() {
            return Err(Errno::PERM);
        }
        self.run(operation).await.result.map(|_| ()).map_err(|error| told(&error))
    }

    async fn run(&self, operation: Operation) -> Completion {
        self.backend.submit(operation).await
    }
}

/// Logs an error that the device is to blame for; its number is all that programs get to see.
fn told(error: &BlockError) -> Errno {
    let number = number(error.kind());
    if number == Errno::IO {
        tracing::error!(error = %Causes(error), "the disk has failed");
    }
    number
}

fn number(kind: BlockErrorKind) -> Errno {
    match kind {
        BlockErrorKind::OutOfRange | BlockErrorKind::Misaligned => Errno::INVAL,
        BlockErrorKind::ReadOnly | BlockErrorKind::PermissionDenied => Errno::PERM,
        BlockErrorKind::Unsupported => Errno::OPNOTSUPP,
        BlockErrorKind::NoSpace => Errno::NOSPC,
        _ => Errno::IO,
    }
}

/// An error and its causes, in one line.
struct Causes<'a>(&'a BlockError);

impl std::fmt::Display for Causes<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", self.0)?;
        let mut next = std::error::Error::source(self.0);
        while let Some(cause) = next {
            write!(formatter, ": {cause}")?;
            next = cause.source();
        }
        Ok(())
    }
}
