//! The target: the released `ropewalk serve`.

use crate::outcome::Stop;
use crate::plan::Plan;
use crate::stamp::BLOCK_BYTES;
use crate::usage::{self, Usage};
use crate::worker;
use anyhow::{Context, Result, ensure};
use ropewalk_interop::{IQN, Program, binary, free_port};
use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A running target.
pub struct Subject {
    address: SocketAddr,
    folder: TempDir,
    program: Program,
}

/// How a target is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// SIGTERM: in order.
    Terminate,
    /// SIGINT, and once more: at once.
    InterruptTwice,
}

/// How long a process may take to listen, with disks of the size that is served here.
const START_LIMIT: Duration = Duration::from_secs(30);

/// How long it may take to stop: five seconds for initiators to leave, ten for writes to come to rest, and the flush.
pub const STOP_LIMIT: Duration = Duration::from_secs(20);

/// What has gone wrong within the target, and how it stops.
const LOG: &str = "error,ropewalk::serve=info";

impl Subject {
    /// Serves what the plan's clients need, on a port that is free now and stays the same.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(plan: &Plan) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        fs::write(folder.path().join(CONFIGURATION), configuration(plan, address, &folder)?)?;
        let program = launch(&folder, address)?;
        Ok(Self { address, folder, program })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The id of its process.
    pub fn process(&self) -> u32 {
        self.program.pid()
    }

    /// What it takes now.
    ///
    /// # Errors
    /// It has ended.
    pub fn usage(&self) -> Result<Usage> {
        Usage::of(self.process()).context("the target has ended")
    }

    /// Processor time that it has used.
    ///
    /// # Errors
    /// It has ended.
    pub fn cpu_seconds(&self) -> Result<f64> {
        Ok(self.program.cpu_seconds()?)
    }

    /// What it has waited for a processor.
    ///
    /// # Errors
    /// It has ended.
    pub fn processor_wait(&self) -> Result<Duration> {
        usage::processor_wait(self.process())
    }

    /// What it has complained of.
    pub fn log(&self) -> Vec<String> {
        self.program.lines().into_iter().map(|line| line.text).filter(|text| text.contains("ERROR")).collect()
    }

    /// Stops it. Whoever comes after finds nobody at its port.
    ///
    /// # Errors
    /// It does not end in time, or the port is still open.
    pub fn stop(&mut self, order: Order) -> Result<Stop> {
        let asked = Instant::now();
        let status = self.end(order)?;
        let took = asked.elapsed();
        ensure!(
            TcpStream::connect(self.address).is_err(),
            "the target has ended, and its port is still open"
        );
        let lines = self.program.lines();
        let cut = lines
            .iter()
            .find_map(|line| line.text.split_once(" sessions did not leave")?.0.rsplit(' ').next());
        Ok(Stop {
            order: order.name(),
            seconds: took.as_secs_f64(),
            exit_status: status.code(),
            is_clean: status.success() == (order == Order::Terminate),
            sessions_cut: cut.and_then(|cut| cut.parse().ok()).unwrap_or(0),
        })
    }

    fn end(&mut self, order: Order) -> Result<ExitStatus> {
        match order {
            Order::Terminate => self.program.terminate()?,
            Order::InterruptTwice => {
                self.program.interrupt()?;
                // Two signals of one kind at once are one.
                self.program.wait_for(STOP_LIMIT, |line| line.text.contains("stopping").then_some(()))?;
                self.program.interrupt()?;
            }
        }
        Ok(self.program.finish(STOP_LIMIT)?)
    }

    /// Stops it and starts it again at once, at the same address, with the same disk.
    ///
    /// # Errors
    /// It does not stop or start.
    pub fn restart(&mut self, order: Order) -> Result<Stop> {
        let stop = self.stop(order)?;
        self.program = launch(&self.folder, self.address)?;
        Ok(stop)
    }
}

impl Order {
    fn name(self) -> &'static str {
        match self {
            Self::Terminate => "SIGTERM",
            Self::InterruptTwice => "SIGINT twice",
        }
    }
}

const CONFIGURATION: &str = "soak.toml";

fn launch(folder: &TempDir, address: SocketAddr) -> Result<Program> {
    let mut command = Command::new(binary()?);
    command.arg("serve").arg("--config").arg(folder.path().join(CONFIGURATION)).env("RUST_LOG", LOG);
    let program = Program::start(&mut command)?;
    program.wait_until_listening(address, START_LIMIT)?;
    Ok(program)
}

/// One address comes with all sessions and logins, so its bounds are those of all. Memory is bounded as it is by default.
fn configuration(plan: &Plan, address: SocketAddr, folder: &TempDir) -> Result<String> {
    let (sessions, connections) = (plan.sessions, plan.all_connections());
    let spare = connections * 2;
    let disk_bytes = sessions * usize::from(plan.connections) * worker::BLOCKS * BLOCK_BYTES;
    let backend = match plan.restarts {
        0 => format!("ram:{disk_bytes},bs={BLOCK_BYTES}"),
        _ => format!("file:{},size={disk_bytes},bs={BLOCK_BYTES}", folder.path().join("disk").display()),
    };
    let mut text = String::new();
    writeln!(text, "listen = [\"{address}\"]\nstate_directory = \"\"\n")?;
    writeln!(text, "[limits]\nconnections = {spare}\nconnections_per_address = {spare}")?;
    writeln!(text, "unauthenticated_connections = {connections}")?;
    writeln!(text, "sessions_per_target = {sessions}\nsessions_per_address = {sessions}\n")?;
    writeln!(text, "[[target]]\nname = \"{IQN}\"\nlun = [{{ number = 0, backend = \"{backend}\" }}]")?;
    Ok(text)
}
