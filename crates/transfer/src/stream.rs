//! Streams: ends that can only be read or written in order, such as standard input and output and pipes.

use block::{Buffer, Completer, Payload, Pending};

/// A stream to read.
pub struct Reader {
    serve: Box<dyn Fn(Look, Buffer, Completer) + Send + Sync>,
}

/// Whether the next read gives the same bytes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The next read gives the same bytes again.
    Peek,
    /// The next read continues after them.
    Take,
}

/// A stream to write.
pub struct Writer {
    serve: Box<dyn Fn(StreamRequest, Completer) + Send + Sync>,
}

/// One request to a stream that is being written.
#[derive(Debug)]
pub enum StreamRequest {
    /// Append this payload.
    Write(Payload),
    /// Hand all written data to the system.
    Flush,
}

impl Reader {
    /// A stream that `serve` reads, request by request: it fills the buffer, which comes back shorter, then empty, at
    /// the end of the input.
    pub fn served_by(serve: impl Fn(Look, Buffer, Completer) + Send + Sync + 'static) -> Self {
        Self { serve: Box::new(serve) }
    }

    /// Fills the buffer. At the end of the input it comes back shorter, then empty.
    pub(crate) fn read(&self, buffer: Buffer) -> Pending {
        self.request(Look::Take, buffer)
    }

    /// As [`Self::read`], but the next read gives the same bytes again. For the first read only.
    pub(crate) fn peek(&self, buffer: Buffer) -> Pending {
        self.request(Look::Peek, buffer)
    }

    fn request(&self, look: Look, buffer: Buffer) -> Pending {
        let (completer, pending) = Pending::channel();
        (self.serve)(look, buffer, completer);
        pending
    }
}

impl Writer {
    /// A stream that `serve` writes, request by request.
    pub fn served_by(serve: impl Fn(StreamRequest, Completer) + Send + Sync + 'static) -> Self {
        Self { serve: Box::new(serve) }
    }

    /// Appends a payload.
    pub(crate) fn write(&self, payload: Payload) -> Pending {
        self.request(StreamRequest::Write(payload))
    }

    /// Hands all written data to the system.
    pub(crate) fn flush(&self) -> Pending {
        self.request(StreamRequest::Flush)
    }

    fn request(&self, job: StreamRequest) -> Pending {
        let (completer, pending) = Pending::channel();
        (self.serve)(job, completer);
        pending
    }
}
