//! The built `ropewalk` command.

use crate::PATIENCE;
use crate::program::{Line, Program, Stream};
use serde_json::Value;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

/// The name of the target that [`Ropewalk`] serves.
pub const IQN: &str = "iqn.2026-11.org.example:disk";

/// A running `ropewalk serve`.
#[derive(Debug)]
pub struct Ropewalk {
    luns: Vec<String>,
    address: SocketAddr,
    /// The process.
    pub program: Program,
}

impl Ropewalk {
    /// Serves these LUNs (`0=ram:64M`), on a port that the system chooses, and waits until it listens.
    ///
    /// # Errors
    /// If it does not.
    pub fn serve(luns: &[&str]) -> io::Result<Self> {
        let luns: Vec<String> = luns.iter().copied().map(str::to_owned).collect();
        let program = Program::start(&mut command("127.0.0.1:0", &luns)?)?;
        let address = program.wait_for(PATIENCE, listening_address)?;
        Ok(Self { luns, address, program })
    }

    /// Kills it without warning (kill −9) and starts it again on the same port.
    ///
    /// # Errors
    /// If it does not come back.
    pub fn kill_and_restart(&mut self) -> io::Result<()> {
        self.program.kill()?;
        self.program = Program::start(&mut command(&self.address.to_string(), &self.luns)?)?;
        self.program.wait_until_listening(self.address, PATIENCE)
    }

    /// Asks it to stop, and waits until it has written everything.
    ///
    /// # Errors
    /// If it does not stop.
    pub fn stop(mut self) -> io::Result<ExitStatus> {
        self.program.terminate()?;
        self.program.finish(PATIENCE)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of one of its LUNs.
    #[must_use]
    pub fn url(&self, lun: u16) -> String {
        self.url_by(self.address, lun)
    }

    /// The URL of one of its LUNs when it is reached by another address.
    #[must_use]
    pub fn url_by(&self, address: SocketAddr, lun: u16) -> String {
        format!("iscsi://{address}/{IQN}/{lun}")
    }
}

fn command(listen: &str, luns: &[String]) -> io::Result<Command> {
    let mut command = Command::new(binary()?);
    command.args(["serve", "--listen", listen, "--target", IQN]);
    for lun in luns {
        command.args(["--lun", lun]);
    }
    Ok(command)
}

/// The first address of loopback in a line.
fn listening_address(line: &Line) -> Option<SocketAddr> {
    let from = line.text.find("127.0.0.1:")?;
    let text = &line.text[from..];
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != ':');
    text[..end.unwrap_or(text.len())].trim_end_matches(['.', ':']).parse().ok()
}

/// Runs a command of it to its end, under a deadline.
///
/// # Errors
/// If it cannot be started or does not end.
pub fn ropewalk<'a>(arguments: impl IntoIterator<Item = &'a str>) -> io::Result<(ExitStatus, Vec<Line>)> {
    Program::run(Command::new(binary()?).args(arguments), PATIENCE)
}

/// The last line of `--json`: the summary.
///
/// # Errors
/// If there is none.
pub fn summary(lines: &[Line]) -> io::Result<Value> {
    let objects = lines.iter().filter(|line| line.stream == Stream::Out);
    let mut objects = objects.filter_map(|line| serde_json::from_str::<Value>(&line.text).ok());
    let summary = objects.find(|object| object["message_type"] == "summary");
    summary.ok_or_else(|| io::Error::other(format!("no summary in {lines:?}")))
}

/// The built binary: what the environment variable `ROPEWALK` names, or the release build beside this program.
///
/// # Errors
/// If it has not been built.
pub fn binary() -> io::Result<PathBuf> {
    if let Some(path) = std::env::var_os("ROPEWALK") {
        return Ok(path.into());
    }
    let this = std::env::current_exe()?;
    let built = this.ancestors().map(|folder| folder.join("release/ropewalk")).find(|file| file.is_file());
    built.ok_or_else(|| io::Error::other("build it first: cargo build --release -p ropewalk"))
}
