//! Ends that only go forward: standard input and output, pipes. A thread each, since reading or writing them blocks.

use block::{BlockError, BlockErrorKind, Buffer, Completer, Completion, Payload, Pending};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Result, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A stream to be read.
pub struct Reader {
    requests: Sender<(Look, Buffer, Completer)>,
}

/// Whether what is read is given again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Peek,
    Take,
}

/// A stream to be written.
pub struct Writer {
    requests: Sender<(Job, Completer)>,
}

enum Job {
    Write(Payload),
    Flush,
}

impl Reader {
    /// Takes over `input`. The thread ends when the reader is dropped and `input` gives something, or its end.
    pub fn new(input: impl Read + Send + 'static) -> Self {
        let (requests, receiver) = channel();
        std::thread::spawn(move || serve_reads(Peekable { input, held: Vec::new() }, &receiver));
        Self { requests }
    }

    /// The same of a pipe or a character device.
    pub(crate) fn open(path: &Path) -> Self {
        Self::new(Later::new(path, OpenOptions::new().read(true)))
    }

    /// Fills the buffer. At the end of the input it comes back shorter, then empty.
    pub(crate) fn read(&self, buffer: Buffer) -> Pending {
        self.request(Look::Take, buffer)
    }

    /// The same, and the next read gives it again. For the first read only.
    pub(crate) fn peek(&self, buffer: Buffer) -> Pending {
        self.request(Look::Peek, buffer)
    }

    fn request(&self, look: Look, buffer: Buffer) -> Pending {
        let (completer, pending) = Pending::channel();
        // If the thread is gone, the completer is dropped and says so.
        let _ = self.requests.send((look, buffer, completer));
        pending
    }
}

impl Writer {
    /// Takes over `output`. The thread ends when the writer is dropped.
    pub fn new(output: impl Write + Send + 'static) -> Self {
        let (requests, receiver) = channel();
        std::thread::spawn(move || serve_writes(output, &receiver));
        Self { requests }
    }

    /// The same of a pipe or a character device.
    pub(crate) fn open(path: &Path) -> Self {
        Self::new(Later::new(path, OpenOptions::new().write(true)))
    }

    /// Appends.
    pub(crate) fn write(&self, payload: Payload) -> Pending {
        self.request(Job::Write(payload))
    }

    /// Hands everything to the system.
    pub(crate) fn flush(&self) -> Pending {
        self.request(Job::Flush)
    }

    fn request(&self, job: Job) -> Pending {
        let (completer, pending) = Pending::channel();
        let _ = self.requests.send((job, completer));
        pending
    }
}

/// A file that is opened when it is first used, on the stream's own thread: to open a named pipe waits for its other
/// end, perhaps for ever.
struct Later {
    path: PathBuf,
    options: OpenOptions,
    file: Option<File>,
}

impl Later {
    fn new(path: &Path, options: &OpenOptions) -> Self {
        Self { path: path.to_owned(), options: options.clone(), file: None }
    }

    fn file(&mut self) -> Result<&mut File> {
        match &mut self.file {
            Some(file) => Ok(file),
            unopened => Ok(unopened.insert(self.options.open(&self.path)?)),
        }
    }
}

impl Read for Later {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.file()?.read(buffer)
    }
}

impl Write for Later {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.file()?.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.file()?.flush()
    }
}

/// Input of which something was read that is still to be given.
struct Peekable<R> {
    input: R,
    held: Vec<u8>,
}

impl<R: Read> Read for Peekable<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.held.is_empty() {
            return self.input.read(buffer);
        }
        let bytes = self.held.len().min(buffer.len());
        buffer[..bytes].copy_from_slice(&self.held[..bytes]);
        self.held.drain(..bytes);
        Ok(bytes)
    }
}

fn serve_reads(mut input: Peekable<impl Read>, requests: &Receiver<(Look, Buffer, Completer)>) {
    for (look, mut buffer, completer) in requests {
        let filled = fill(&mut input, &mut buffer);
        if let (Look::Peek, Ok(bytes)) = (look, &filled) {
            input.held.extend_from_slice(&buffer[..*bytes]);
        }
        completer.complete(match filled {
            Ok(bytes) => {
                buffer.truncate(bytes);
                Completion::read(buffer)
            }
            Err(error) => Completion::failed(failed("reading the input", error)),
        });
    }
}

fn fill(input: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn serve_writes(mut output: impl Write, requests: &Receiver<(Job, Completer)>) {
    for (job, completer) in requests {
        let outcome = match job {
            Job::Write(payload) => output.write_all(&payload),
            Job::Flush => output.flush(),
        };
        completer.complete(match outcome {
            Ok(()) => Completion::complete(),
            Err(error) => Completion::failed(failed("writing the output", error)),
        });
    }
}

fn failed(what: &'static str, error: std::io::Error) -> BlockError {
    BlockError::new(BlockErrorKind::Medium, what).with_source(error)
}
