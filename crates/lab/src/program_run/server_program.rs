//! A server in the place of our target.

use super::ProgramError;
use super::command_line::{Places, end_of, name_of, run_to_end};
use crate::lab::Lab;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

/// A program that serves the disk, a file in memory. In all texts, `{address}` and `{port}` are where to listen,
/// `{backing}` is the path of the file, and `{state}` that of its folder, which is private.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerProgram {
    /// The program and its arguments. It has to stay in the foreground; it is killed at the end.
    pub command: Vec<String>,
    /// The client's `{disk}`.
    pub url: String,
    /// Commands at the server, one after the other, once it listens.
    #[serde(default)]
    pub prepare: Vec<Vec<String>>,
    /// Variables of the environment of all these commands.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Files in `{state}`, by name, and their contents.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

/// Free, because the server is alone on its host: that of iSCSI.
const PORT: u16 = 3260;
/// The time that a server has to listen, and a command to prepare it.
const PATIENCE: Duration = Duration::from_secs(10);
/// The interval between two looks at a server that does not listen yet.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// In the private folder: the disk, and all that the server says.
const BACKING: &str = "backing";
const SAID: &str = "said";

impl ServerProgram {
    /// Checks the settings.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_empty = |words: &Vec<String>| words.is_empty();
        if is_empty(&self.command) || self.prepare.iter().any(is_empty) {
            return Err("setup.program.server: command and each of prepare must name a program".to_owned());
        }
        let is_taken =
            |name: &&String| name.contains('/') || [BACKING, SAID, "", ".", ".."].contains(&name.as_str());
        match self.files.keys().find(is_taken) {
            Some(name) => Err(format!("setup.program.server.files: \"{name}\" cannot be the name of a file")),
            None => Ok(()),
        }
    }

    /// The path of the disk in the private folder.
    pub(super) fn backing(state: &Path) -> PathBuf {
        state.join(BACKING)
    }

    /// Starts it at the server of `lab`, and prepares it. The disk exists.
    pub(super) fn start(&self, lab: &Lab, state: &Path) -> Result<RunningServer, ProgramError> {
        let address = SocketAddr::new(lab.server.address, PORT);
        let places = places(address, state);
        for (name, contents) in &self.files {
            fs::write(state.join(name), places.fill(contents))?;
        }
        let mut command = self.command(&self.command, &places, lab);
        let said = File::create(state.join(SAID))?;
        command.stdout(said.try_clone()?).stderr(said).process_group(0);
        let program = name_of(&command);
        let child =
            command.spawn().map_err(|source| ProgramError::Start { program: program.clone(), source })?;
        let mut server =
            RunningServer { program, child, said: state.join(SAID), url: self.url(address, &places) };
        lab.server.namespace.run(|| server.wait_until_listening(PORT))??;
        for words in &self.prepare {
            let command = self.command(words, &places, lab);
            run_to_end(command, PATIENCE).map_err(|error| server.explain(error))?;
        }
        Ok(server)
    }

    fn command(&self, words: &[String], places: &Places, lab: &Lab) -> Command {
        let mut command = places.command(words, &lab.server.namespace);
        command.envs(self.environment.iter().map(|(name, value)| (name, places.fill(value))));
        command
    }

    /// A URL has brackets around an address of IPv6 (RFC 3986 §3.2.2).
    fn url(&self, address: SocketAddr, places: &Places) -> String {
        let url = self.url.replace("{address}:{port}", &address.to_string());
        places.fill(&url)
    }
}

fn places(address: SocketAddr, state: &Path) -> Places {
    Places::new([
        ("{address}", address.ip().to_string()),
        ("{port}", address.port().to_string()),
        ("{backing}", ServerProgram::backing(state).display().to_string()),
        ("{state}", state.display().to_string()),
    ])
}

/// A server that listens. Its end kills all its processes.
#[derive(Debug)]
pub(super) struct RunningServer {
    program: String,
    /// Leads a process group of its own.
    child: Child,
    said: PathBuf,
    /// The URL of its disk.
    pub url: String,
}

impl RunningServer {
    /// Waits in the calling thread's namespace.
    fn wait_until_listening(&mut self, port: u16) -> Result<(), ProgramError> {
        let begun = Instant::now();
        while !is_listening(port)? {
            if let Some(status) = self.child.try_wait()? {
                let (program, said) = (self.program.clone(), self.what_it_said());
                return Err(ProgramError::Failed { program, status, said });
            }
            if begun.elapsed() > PATIENCE {
                let (program, said) = (self.program.clone(), self.what_it_said());
                return Err(ProgramError::NotListening { program, port, after: PATIENCE, said });
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Adds what the server said to an error of another program.
    pub fn explain(&self, error: ProgramError) -> ProgramError {
        match self.what_it_said() {
            said if said.is_empty() => error,
            said => ProgramError::WithServer { error: Box::new(error), server: self.program.clone(), said },
        }
    }

    fn what_it_said(&self) -> String {
        end_of(&fs::read(&self.said).unwrap_or_default())
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        // The process is not reaped before, so its number is still its own. It may have ended by itself, but not all
        // of its group.
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Whether a TCP socket listens on this port in the calling thread's namespace. Nothing is sent to it.
fn is_listening(port: u16) -> io::Result<bool> {
    let tables = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];
    let tables = tables.map(|table| match fs::read_to_string(table) {
        // A kernel without IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        table => table,
    });
    let mut tables = tables.into_iter().collect::<io::Result<Vec<_>>>()?.into_iter();
    Ok(tables.any(|table| table.lines().any(|line| is_listener(line, port))))
}

/// Whether a line of the kernel's table (proc(5), /proc/net/tcp) is a socket that listens on this port.
fn is_listener(line: &str, port: u16) -> bool {
    let mut fields = line.split_whitespace().skip(1);
    let (local, _, state) = (fields.next(), fields.next(), fields.next());
    local.is_some_and(|local| local.ends_with(&format!(":{port:04X}"))) && state == Some("0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_socket_that_listens_on_the_port_is_a_listener() {
        let line =
            |local: &str, state: &str| format!("   0: {local} 00000000:0000 {state} 00000000:00000000");
        assert!(is_listener(&line("0100007F:0CBC", "0A"), 3260));
        assert!(!is_listener(&line("0100007F:0CBC", "01"), 3260), "a connection");
        assert!(!is_listener(&line("0CBC007F:0CBD", "0A"), 3260), "another port");
        assert!(!is_listener("  sl  local_address rem_address   st", 3260));
    }

    #[test]
    fn the_kernel_tells_who_listens() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(is_listening(port).unwrap());
    }
}
