//! Reading, writing or flushing a file, step by step: an engine carries out each step, and this says what the
//! outcome means.

use std::fs::File as StdFile;
use std::sync::Arc;

use rustix::io::Errno;

use super::error_of;
use super::medium::Medium;
use crate::backend::{Completion, Done};
use crate::error::{BlockError, BlockErrorKind};
use crate::payload::Payload;
use crate::pending::Completer;
use crate::slab::Buffer;

/// One operation at an engine. It owns the memory until the kernel has finished with it.
pub(super) struct Transfer {
    medium: Arc<Medium>,
    work: Work,
    /// Bytes already moved: a system call may move fewer than requested.
    moved: usize,
    completer: Completer,
}

pub(super) enum Work {
    Read { offset: u64, buffer: Buffer },
    Write { offset: u64, payload: Payload, fua: bool },
    Flush,
}

/// The next request to the kernel.
pub(super) enum Step<'a> {
    Read { offset: u64, into: &'a mut [u8] },
    Write { offset: u64, from: &'a [u8], fua: bool },
    Flush,
}

/// The consequence of a step's outcome.
pub(super) enum Next {
    Again(Transfer),
    Over(Over),
}

/// A finished transfer, to be reported outside any lock, because its waker may submit again at once.
pub(super) struct Over {
    completer: Completer,
    completion: Completion,
    written: Option<Payload>,
}

impl Over {
    pub(super) fn tell(self) {
        // Dropped first, so that the waker of a write can get its memory back.
        drop(self.written);
        self.completer.complete(self.completion);
    }
}

impl Transfer {
    pub(super) fn new(medium: Arc<Medium>, work: Work, completer: Completer) -> Self {
        Self { medium, work, moved: 0, completer }
    }

    pub(super) fn step(&mut self) -> (&StdFile, Step<'_>) {
        let moved = self.moved;
        let step = match &mut self.work {
            Work::Read { offset, buffer } => {
                Step::Read { offset: *offset + moved as u64, into: &mut buffer[moved..] }
            }
            Work::Write { offset, payload, fua } => {
                Step::Write { offset: *offset + moved as u64, from: &payload[moved..], fua: *fua }
            }
            Work::Flush => Step::Flush,
        };
        (&self.medium.file, step)
    }

    /// Takes in the outcome of a step: bytes moved, or an error.
    pub(super) fn advance(mut self, outcome: Result<usize, Errno>) -> Next {
        match outcome {
            // Canceled: the thread that submitted it to an io_uring has ended meanwhile.
            Err(Errno::INTR | Errno::AGAIN | Errno::CANCELED) => Next::Again(self),
            Err(errno) => {
                let error = error_of(errno.into(), self.name());
                self.over(Err(error))
            }
            Ok(bytes) => {
                self.moved += bytes;
                let asked = self.asked_bytes();
                if self.moved >= asked {
                    self.over(Ok(()))
                } else if bytes == 0 {
                    // Somebody made the file shorter than it was when it was opened, or a device shrank.
                    self.over(Err(BlockError::new(BlockErrorKind::Medium, "the file ends too early")))
                } else {
                    Next::Again(self)
                }
            }
        }
    }

    fn asked_bytes(&self) -> usize {
        match &self.work {
            Work::Read { buffer, .. } => buffer.len(),
            Work::Write { payload, .. } => payload.len(),
            Work::Flush => 0,
        }
    }

    fn name(&self) -> &'static str {
        match self.work {
            Work::Read { .. } => "reading a file",
            Work::Write { .. } => "writing a file",
            Work::Flush => "flushing a file",
        }
    }

    fn over(self, result: Result<(), BlockError>) -> Next {
        let (buffer, written) = match self.work {
            Work::Read { buffer, .. } => (Some(buffer), None),
            Work::Write { payload, .. } => (None, Some(payload)),
            Work::Flush => (None, None),
        };
        let completion = Completion { result: result.map(|()| Done::Complete), buffer };
        Next::Over(Over { completer: self.completer, completion, written })
    }
}
