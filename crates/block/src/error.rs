//! Why a block operation failed: a stable kind to act on, the context to show, the cause beneath.

use std::borrow::Cow;
use std::error::Error;

/// What kind of failure it was, for whoever turns it into sense data, an exit status or a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum BlockErrorKind {
    /// The caller's fault: the range is not inside the device.
    #[error("out of range")]
    OutOfRange,
    /// The caller's fault: offset, length or memory is not aligned as the device needs it.
    #[error("not aligned")]
    Misaligned,
    /// The device takes no writes.
    #[error("read-only")]
    ReadOnly,
    /// The device cannot do this operation at all.
    #[error("not supported")]
    Unsupported,
    /// A thin device, its filesystem or its memory is full.
    #[error("no space left")]
    NoSpace,
    /// The medium failed; the data in the range may be lost.
    #[error("input/output error")]
    Medium,
    /// The device went away before it answered: the operation may or may not have happened.
    #[error("disconnected")]
    Disconnected,
    /// Of a flush: writes acknowledged since the last successful flush may be lost (a remote device went away with
    /// its cache meanwhile). Write them again, then flush again. Told once.
    #[error("acknowledged writes may be lost")]
    WritesLost,
    /// While opening: somebody else has the device in use.
    #[error("in use")]
    InUse,
    /// While opening: there is no such device.
    #[error("not found")]
    NotFound,
    /// While opening: this user may not.
    #[error("permission denied")]
    PermissionDenied,
}

/// A failed operation.
#[derive(Debug, thiserror::Error)]
#[error("{context}: {kind}")]
pub struct BlockError {
    kind: BlockErrorKind,
    context: Cow<'static, str>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl BlockError {
    /// `context` says what was being done, in words for the person who reads the log.
    pub fn new(kind: BlockErrorKind, context: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, context: context.into(), source: None }
    }

    /// The same with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The stable kind.
    #[must_use]
    pub fn kind(&self) -> BlockErrorKind {
        self.kind
    }
}
