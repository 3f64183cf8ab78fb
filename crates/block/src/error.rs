//! Errors of block operations: a stable kind, a context for people, and a cause.

use std::borrow::Cow;
use std::error::Error;

/// The kind of a failure, from which callers derive sense data, an exit status or a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum BlockErrorKind {
    /// The caller is at fault: the range is not inside the device.
    #[error("out of range")]
    OutOfRange,
    /// The caller is at fault: offset, length or memory is not aligned as the device requires.
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
    /// A flush failed: writes acknowledged since the last successful flush may be lost (for example, a remote device
    /// disappeared with its cache). Repeat them, then flush again. Reported once.
    #[error("acknowledged writes may be lost")]
    WritesLost,
    /// Opening failed: another user of the device has locked it.
    #[error("in use")]
    InUse,
    /// Opening failed: there is no such device.
    #[error("not found")]
    NotFound,
    /// Opening failed: this user lacks the permission.
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
    /// `context` describes the attempted action to the reader of the log.
    pub fn new(kind: BlockErrorKind, context: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, context: context.into(), source: None }
    }

    /// Adds the cause.
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
