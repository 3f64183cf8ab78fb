//! Programs beside the lab: their words, their starts and their ends.

use super::ProgramError;
use crate::namespace::Namespace;
use crate::scsi_run::server::runtime;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The most characters quoted from a program.
const SAID_MAX: usize = 300;

/// The texts for placeholders such as `{file}`.
#[derive(Clone, Debug)]
pub(super) struct Places(Vec<(&'static str, String)>);

impl Places {
    pub fn new(places: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        Self(places.into_iter().collect())
    }

    /// The text with all of them filled in.
    pub fn fill(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (place, with)| text.replace(place, with))
    }

    /// The command of these words, in that namespace. It dies with the calling thread.
    pub fn command(&self, words: &[String], namespace: &Namespace) -> Command {
        let mut words = words.iter().map(|word| self.fill(word));
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        namespace.put(&mut command);
        command
    }
}

/// The name of a program, without its folder.
pub(super) fn name_of(command: &Command) -> String {
    let program = Path::new(command.get_program());
    program.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Runs a program to its successful end, at most for `limit`; returns the time that it took.
pub(super) fn run_to_end(command: Command, limit: Duration) -> Result<Duration, ProgramError> {
    let program = name_of(&command);
    runtime()?.block_on(async {
        let mut command = tokio::process::Command::from(command);
        let begun = Instant::now();
        let process = command.kill_on_drop(true).spawn();
        let process = process.map_err(|source| ProgramError::Start { program: program.clone(), source })?;
        let ended = tokio::time::timeout(limit, process.wait_with_output()).await;
        let output = ended.map_err(|_| ProgramError::Late { program: program.clone(), after: limit })??;
        let elapsed = begun.elapsed();
        match output.status.success() {
            true => Ok(elapsed),
            false => {
                Err(ProgramError::Failed { program, status: output.status, said: end_of(&output.stderr) })
            }
        }
    })
}

/// The end of the text, in one line.
pub(super) fn end_of(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let from = line.char_indices().rev().nth(SAID_MAX - 1).map_or(0, |(index, _)| index);
    line[from..].to_owned()
}

/// Programs of the repository's experiments, and Debian's packages that have them.
const PACKAGES: [(&str, &str); 6] = [
    ("nbdcopy", "libnbd-bin"),
    ("nbdkit", "nbdkit"),
    ("qemu-img", "qemu-utils"),
    ("rsync", "rsync"),
    ("tgtadm", "tgt"),
    ("tgtd", "tgt"),
];

/// How to get a program that is missing; empty if that is not the problem, or the package unknown.
pub(super) fn remedy(program: &str, error: &io::Error) -> String {
    let package = PACKAGES.iter().find(|(known, _)| *known == program);
    match package.filter(|_| error.kind() == io::ErrorKind::NotFound) {
        Some((_, package)) => format!("; Debian's package {package} has it"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let error = ProgramError::Start { program: "nbdcopy".to_owned(), source: missing() }.to_string();
        assert!(error.starts_with("nbdcopy could not be started: "), "{error}");
        assert!(error.ends_with("; Debian's package libnbd-bin has it"), "{error}");
        assert_eq!(remedy("no-such-program", &missing()), "");
        assert_eq!(remedy("nbdcopy", &io::ErrorKind::PermissionDenied.into()), "");
    }
}
