//! A Linux loop device over a file, by `losetup` of util-linux, which knows every kernel's ways.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A loop device that is in use by its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopDevice {
    path: PathBuf,
}

/// Why a loop device could not be had, or not be let go.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// `losetup` could not be started.
    #[error("cannot run losetup, of the package util-linux")]
    NotStarted(#[source] io::Error),
    /// It said no, in these words.
    #[error("{words}")]
    Refused {
        /// What it said.
        words: String,
    },
}

impl LoopDevice {
    /// Makes a device of the file, with direct I/O, so that the kernel does not keep everything twice and many requests go
    /// out at once.
    ///
    /// # Errors
    /// See [`LoopError`].
    pub fn over(file: &Path, block_bytes: u32, read_only: bool) -> Result<Self, LoopError> {
        let mut command = losetup();
        command.args(["--find", "--show", "--direct-io=on", "--sector-size"]).arg(block_bytes.to_string());
        if read_only {
            command.arg("--read-only");
        }
        let output = run(command.arg(file))?;
        let path = String::from_utf8_lossy(&output.stdout).trim_end().into();
        Ok(Self { path })
    }

    /// The devices that were made of the file, by whomever.
    ///
    /// # Errors
    /// See [`LoopError`].
    pub fn all_over(file: &Path) -> Result<Vec<Self>, LoopError> {
        let output = run(losetup().args(["--noheadings", "--output", "NAME", "--associated"]).arg(file))?;
        let paths = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(paths.lines().map(|path| Self { path: path.trim().into() }).collect())
    }

    /// The device of this path, which somebody has made.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// The device's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this file is behind it: another program may have the device meanwhile.
    #[must_use]
    pub fn is_over(&self, file: &Path) -> bool {
        let name = self.path.file_name().unwrap_or_default();
        let behind = Path::new("/sys/block").join(name).join("loop/backing_file");
        std::fs::read_to_string(behind).is_ok_and(|behind| Path::new(behind.trim_end()) == file)
    }

    /// Whether a mount, or another program that wants it for itself, has the device.
    #[must_use]
    pub fn is_claimed(&self) -> bool {
        let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
        matches!(rustix::fs::open(&self.path, flags, Mode::empty()), Err(Errno::BUSY))
    }

    /// Takes the file away from the device.
    ///
    /// # Errors
    /// See [`LoopError`].
    pub fn detach(&self) -> Result<(), LoopError> {
        run(losetup().arg("--detach").arg(&self.path)).map(|_| ())
    }
}

fn losetup() -> Command {
    let mut command = Command::new("losetup");
    command.env("LC_ALL", "C");
    command
}

fn run(command: &mut Command) -> Result<Output, LoopError> {
    let output = command.output().map_err(LoopError::NotStarted)?;
    if output.status.success() {
        return Ok(output);
    }
    Err(LoopError::Refused { words: String::from_utf8_lossy(&output.stderr).trim_end().to_owned() })
}
