//! Ends that only go forward: standard input and output, pipes. A thread each, since reading or writing them blocks.

use block::{BlockError, BlockErrorKind, Buffer, Completer, Completion, Payload, Pending};
use std::io::{ErrorKind, Read, Result, Write};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A stream to be read.
pub struct Reader {
    requests: Sender<(Buffer, Completer)>,
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
        std::thread::spawn(move || serve_reads(input, &receiver));
        Self { requests }
    }

    /// Fills the buffer. At the end of the input it comes back shorter, then empty.
    pub(crate) fn read(&self, buffer: Buffer) -> Pending {
        let (completer, pending) = Pending::channel();
        // If the thread is gone, the completer is dropped and says so.
        let _ = self.requests.send((buffer, completer));
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

fn serve_reads(mut input: impl Read, requests: &Receiver<(Buffer, Completer)>) {
    for (mut buffer, completer) in requests {
        completer.complete(match fill(&mut input, &mut buffer) {
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
