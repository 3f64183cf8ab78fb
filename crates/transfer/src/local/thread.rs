//! Local streams, each on a thread of its own, because reading and writing them blocks.

use crate::stream::{Look, Reader, StreamRequest, Writer};
use block::{BlockError, BlockErrorKind, Buffer, Completer, Completion};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Result, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};

impl Reader {
    /// Takes over `input`. The thread ends after the reader was dropped, when `input` next returns data or its end.
    pub fn new(input: impl Read + Send + 'static) -> Self {
        let (requests, receiver) = channel();
        std::thread::spawn(move || serve_reads(Peekable { input, held: Vec::new() }, &receiver));
        // If the thread is gone, the completer is dropped and says so.
        Self::served_by(move |look, buffer, completer| drop(requests.send((look, buffer, completer))))
    }

    /// Opens a pipe or a character device in the same way.
    pub(crate) fn open(path: &Path) -> Self {
        Self::new(Later::new(path, OpenOptions::new().read(true)))
    }
}

impl Writer {
    /// Takes over `output`. The thread ends when the writer is dropped.
    pub fn new(output: impl Write + Send + 'static) -> Self {
        let (requests, receiver) = channel();
        std::thread::spawn(move || serve_writes(output, &receiver));
        Self::served_by(move |request, completer| drop(requests.send((request, completer))))
    }

    /// Opens a pipe or a character device in the same way.
    pub(crate) fn open(path: &Path) -> Self {
        Self::new(Later::new(path, OpenOptions::new().write(true)))
    }
}

/// A file that is opened at its first use, on the stream's own thread, because opening a named pipe waits for its other
/// end, perhaps forever.
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

/// Input with bytes that were read ahead and are still to be returned.
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

fn serve_writes(mut output: impl Write, requests: &Receiver<(StreamRequest, Completer)>) {
    for (request, completer) in requests {
        let outcome = match request {
            StreamRequest::Write(payload) => output.write_all(&payload),
            StreamRequest::Flush => output.flush(),
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
