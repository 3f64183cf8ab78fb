//! The targets that are compared.

use crate::measure::pin;
use crate::{TARGET_CORE, WORKING_SET_MIB};
use anyhow::ensure;
use ropewalk_interop::{Istgt, PATIENCE, Program, Ropewalk, Tgt, Tuning};
use std::path::Path;
use std::process::Command;

/// The index, among [`Contender::all`], of ropewalk on the file that the peers serve.
pub const ROPEWALK_FILE: usize = 1;

/// The index of the first peer; the rest are peers, too.
pub const FIRST_PEER: usize = 2;

/// A running target with one disk of [`WORKING_SET_MIB`], pinned to its core.
pub struct Contender {
    /// The target's name in the report.
    pub name: &'static str,
    /// The URL of the target's disk.
    pub url: String,
    server: Server,
}

enum Server {
    Ropewalk(Ropewalk),
    Tgt(Tgt),
    Istgt(Istgt),
}

impl Contender {
    /// Our target with its default configuration, on memory of its own.
    pub fn ropewalk_ram() -> anyhow::Result<Self> {
        Self::ropewalk("ropewalk, RAM", &format!("0=ram:{WORKING_SET_MIB}M"))
    }

    /// Our target with its default configuration, on a file.
    fn ropewalk_file(file: &Path) -> anyhow::Result<Self> {
        Self::ropewalk("ropewalk, file", &format!("0=file:{}", file.display()))
    }

    fn ropewalk(name: &'static str, lun: &str) -> anyhow::Result<Self> {
        let server = Ropewalk::serve(&[lun])?;
        Self::ready(name, server.url(0), Server::Ropewalk(server))
    }

    /// All targets: ropewalk on its own memory, then [`ROPEWALK_FILE`] and the peers, which serve this file.
    pub fn all(file: &Path) -> anyhow::Result<Vec<Self>> {
        let tgt = Tgt::serve(1, &[file])?;
        let tuned = Tgt::serve(1, &[file])?;
        tuned.tune()?;
        let istgt = Istgt::serve(file, Tuning::Defaults)?;
        let bulk = Istgt::serve(file, Tuning::Bulk)?;
        Ok(vec![
            Self::ropewalk_ram()?,
            Self::ropewalk_file(file)?,
            Self::ready("tgt", tgt.url(1), Server::Tgt(tgt))?,
            Self::ready("tgt, tuned", tuned.url(1), Server::Tgt(tuned))?,
            Self::ready("istgt", istgt.url(), Server::Istgt(istgt))?,
            Self::ready("istgt, tuned", bulk.url(), Server::Istgt(bulk))?,
        ])
    }

    fn ready(name: &'static str, url: String, server: Server) -> anyhow::Result<Self> {
        let contender = Self { name, url, server };
        pin(contender.program(), &[TARGET_CORE])?;
        contender.fill()?;
        Ok(contender)
    }

    /// The target's process.
    pub fn program(&self) -> &Program {
        match &self.server {
            Server::Ropewalk(server) => &server.program,
            Server::Tgt(server) => &server.program,
            Server::Istgt(server) => &server.program,
        }
    }

    /// Writes every byte once, because memory that was never written is not allocated and reads too fast.
    fn fill(&self) -> anyhow::Result<()> {
        let mut client = Command::new("qemu-io");
        client.args(["-f", "raw"]);
        for offset in (0..WORKING_SET_MIB).step_by(8) {
            client.arg("-c").arg(format!("write -q -P 0xa5 {offset}M 8M"));
        }
        let (status, lines) = Program::run(client.arg(&self.url), PATIENCE)?;
        ensure!(status.success(), "filling the disk of {}: {lines:#?}", self.name);
        Ok(())
    }
}
