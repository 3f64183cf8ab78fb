//! The built `ropewalk` command.

use crate::PATIENCE;
use crate::program::{Line, Program, Stream};
use serde_json::Value;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use tempfile::TempDir;

/// The name of the target that [`Ropewalk`] serves.
pub const IQN: &str = "iqn.2026-11.org.example:disk";

/// A running `ropewalk serve`.
#[derive(Debug)]
pub struct Ropewalk {
    luns: Vec<String>,
    options: Vec<String>,
    addresses: Vec<SocketAddr>,
    /// Its own: others serve the same target name and LUN at the same time.
    state: TempDir,
    /// The running `ropewalk serve`.
    pub program: Program,
}

impl Ropewalk {
    /// Serves these LUNs (`0=ram:64M`), on a port that the system chooses, and waits until it listens.
    ///
    /// # Errors
    /// If it does not.
    pub fn serve(luns: &[&str]) -> io::Result<Self> {
        Self::serve_with(luns, 1, &[])
    }

    /// The same on so many portals, with further options of the command.
    ///
    /// # Errors
    /// If it does not listen on all of them.
    pub fn serve_with(luns: &[&str], portals: usize, options: &[&str]) -> io::Result<Self> {
        Self::start(Ipv4Addr::LOCALHOST, portals, luns, options)
    }

    /// The same on one portal at this address of the host.
    ///
    /// # Errors
    /// If it does not listen.
    pub fn serve_at(host: Ipv4Addr, luns: &[&str], options: &[&str]) -> io::Result<Self> {
        Self::start(host, 1, luns, options)
    }

    fn start(host: Ipv4Addr, portals: usize, luns: &[&str], options: &[&str]) -> io::Result<Self> {
        let luns: Vec<String> = luns.iter().copied().map(str::to_owned).collect();
        let options: Vec<String> = options.iter().copied().map(str::to_owned).collect();
        let anywhere = vec![SocketAddr::from((host, 0)); portals];
        let state = tempfile::tempdir()?;
        let program = Program::start(&mut command(&anywhere, &luns, &options, &state)?)?;
        let found =
            |line: &Line| Some(listening_addresses(line, host)).filter(|found| found.len() == portals);
        let addresses = program.wait_for(PATIENCE, found)?;
        Ok(Self { luns, options, addresses, state, program })
    }

    /// Serves one LUN, which is this file, with a `[negotiation]` section of these lines.
    ///
    /// # Errors
    /// If it does not listen.
    pub fn serve_negotiating(lun: &str, lines: &str) -> io::Result<Self> {
        let file = format!("{lun}.toml");
        let target =
            format!("[[target]]\nname = {IQN:?}\nlun = [{{ number = 0, backend = \"file:{lun}\" }}]\n");
        std::fs::write(&file, format!("{target}[negotiation]\n{lines}\n"))?;
        Self::serve_with(&[], 1, &["--config", &file])
    }

    /// Kills it without warning (kill −9) and starts it again on the same ports.
    ///
    /// # Errors
    /// If it does not come back.
    pub fn kill_and_restart(&mut self) -> io::Result<()> {
        self.program.kill()?;
        let mut command = command(&self.addresses, &self.luns, &self.options, &self.state)?;
        self.program = Program::start(&mut command)?;
        self.addresses.iter().try_for_each(|address| self.program.wait_until_listening(*address, PATIENCE))
    }

    /// Asks it to stop, and waits until it has written everything.
    ///
    /// # Errors
    /// If it does not stop.
    pub fn stop(mut self) -> io::Result<ExitStatus> {
        self.program.terminate()?;
        self.program.finish(PATIENCE)
    }

    /// Where its first portal listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Where all of them do.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The URL of one of its LUNs.
    #[must_use]
    pub fn url(&self, lun: u16) -> String {
        self.url_by(self.address(), lun)
    }

    /// The URL of one of its LUNs when it is reached by another address.
    #[must_use]
    pub fn url_by(&self, address: SocketAddr, lun: u16) -> String {
        format!("iscsi://{address}/{IQN}/{lun}")
    }
}

fn command(
    listen: &[SocketAddr],
    luns: &[String],
    options: &[String],
    state: &TempDir,
) -> io::Result<Command> {
    let mut command = Command::new(binary()?);
    command.env("STATE_DIRECTORY", state.path());
    command.arg("serve").args(options);
    if !luns.is_empty() {
        command.args(["--target", IQN]);
    }
    for address in listen {
        command.args(["--listen", &address.to_string()]);
    }
    for lun in luns {
        command.args(["--lun", lun]);
    }
    Ok(command)
}

/// The addresses of this host in a line, with ports that it has.
fn listening_addresses(line: &Line, host: Ipv4Addr) -> Vec<SocketAddr> {
    let words = line.text.split_ascii_whitespace().map(|word| word.trim_end_matches([',', '.', ':']));
    let addresses = words.filter_map(|word| word.parse::<SocketAddr>().ok());
    addresses.filter(|address| address.ip() == host && address.port() != 0).collect()
}

/// Runs a command of it to its end, under a deadline.
///
/// # Errors
/// If it cannot be started or does not end.
pub fn ropewalk<'a>(arguments: impl IntoIterator<Item = &'a str>) -> io::Result<(ExitStatus, Vec<Line>)> {
    Program::run(Command::new(binary()?).args(arguments), PATIENCE)
}

/// The objects that `--json` prints, a line each.
pub fn objects(lines: &[Line]) -> impl Iterator<Item = Value> {
    let lines = lines.iter().filter(|line| line.stream == Stream::Out);
    lines.filter_map(|line| serde_json::from_str(&line.text).ok())
}

/// The last line of `--json`: the summary.
///
/// # Errors
/// If there is none.
pub fn summary(lines: &[Line]) -> io::Result<Value> {
    let summary = objects(lines).find(|object| object["message_type"] == "summary");
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
