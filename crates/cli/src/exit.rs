//! How the command ends when it did not do what was asked.

use crate::output;
use crate::signals::{self, Interrupt};
use std::error::Error;
use std::process::ExitCode;

/// Exit statuses, for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Status {
    /// It was tried and did not work.
    Failed = 1,
    /// It was asked for in a way that makes no sense.
    Usage = 2,
    /// It was broken off, and goes on where it was if it is started again.
    Incomplete = 3,
    /// Source and copy differ.
    Mismatch = 4,
    /// It would be wrong or dangerous; nothing was written.
    Refused = 5,
    /// SIGHUP broke it off: 128 and the signal's number, as a shell reports it.
    HungUp = 129,
    /// SIGINT broke it off.
    Interrupted = 130,
    /// SIGTERM broke it off.
    Terminated = 143,
}

impl From<Interrupt> for Status {
    fn from(interrupt: Interrupt) -> Self {
        match interrupt {
            Interrupt::Keyboard => Self::Interrupted,
            Interrupt::Terminate => Self::Terminated,
            Interrupt::HangUp => Self::HungUp,
        }
    }
}

/// A failure with what a person needs to know.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) status: Status,
    pub(crate) error: anyhow::Error,
    /// What follows from it: the state something was left in.
    pub(crate) consequence: Option<String>,
}

impl Failed {
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self { status: Status::Usage, error: anyhow::anyhow!(text.into()), consequence: None }
    }

    /// By the first signal that came.
    pub(crate) fn interrupted() -> Self {
        Self { status: signals::first().into(), error: anyhow::anyhow!("interrupted"), consequence: None }
    }

    pub(crate) fn incomplete(text: impl Into<String>) -> Self {
        Self { status: Status::Incomplete, error: anyhow::anyhow!(text.into()), consequence: None }
    }

    /// Says it on standard error.
    pub(crate) fn report(&self) -> ExitCode {
        output::tell(format_args!("error: {}", chain(self.error.as_ref())));
        if let Some(consequence) = &self.consequence {
            output::tell(format_args!("       {consequence}"));
        }
        ExitCode::from(self.status as u8)
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self { status: Status::Failed, error: error.into(), consequence: None }
    }
}

/// The error and its causes in one line. A cause that the line above already tells is left out.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !line.contains(&text) {
            line = format!("{line}: {text}");
        }
        next = cause.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let cause = || anyhow::anyhow!("connection refused");
        let telling = cause().context("cannot connect: connection refused");
        assert_eq!(chain(telling.as_ref()), "cannot connect: connection refused");
        let silent = cause().context("cannot connect");
        assert_eq!(chain(silent.as_ref()), "cannot connect: connection refused");
    }
}
