//! The real binary: a server on a port that the system chooses, and commands against it.

use serde_json::Value;
use std::io::{BufRead, BufReader, PipeReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

pub const MIB: usize = 1 << 20;
pub const TARGET: &str = "iqn.2026-11.com.example:disk";

/// No test needs longer; a command that hangs must not hang the test.
const PATIENCE_SECONDS: &str = "120";

/// The binary, under a time limit.
pub fn ropewalk(arguments: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", PATIENCE_SECONDS, env!("CARGO_BIN_EXE_ropewalk")]).args(arguments);
    for variable in ["LIBISCSI_CHAP_USERNAME", "LIBISCSI_CHAP_PASSWORD", "RUST_LOG"] {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub fn run(arguments: &[&str]) -> Outcome {
    Outcome(ropewalk(arguments).output().unwrap())
}

pub struct Outcome(pub Output);

impl Outcome {
    pub fn status(&self) -> i32 {
        self.0.status.code().unwrap_or(-1)
    }

    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    /// Every line of standard output as JSON.
    pub fn json_lines(&self) -> Vec<Value> {
        self.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[track_caller]
    pub fn expect(self, status: i32) -> Self {
        assert_eq!(self.status(), status, "{}{}", self.stdout(), self.stderr());
        self
    }
}

const ANY_PORT: &str = "127.0.0.1:0";

/// A server that ends with its test.
pub struct Server {
    child: Child,
    pub address: String,
    /// Its own: others serve the same target name and LUN at the same time.
    state: tempfile::TempDir,
}

impl Server {
    /// Serves these LUNs of one target.
    pub fn with_luns(luns: &[&str]) -> Self {
        let mut arguments = vec!["--target", TARGET];
        luns.iter().for_each(|lun| arguments.extend(["--lun", lun]));
        Self::with(&arguments)
    }

    pub fn with(arguments: &[&str]) -> Self {
        Self::spawn(&mut Command::new(env!("CARGO_BIN_EXE_ropewalk")), arguments)
    }

    /// Ends it by SIGKILL, and serves at the same address, with the same state.
    pub fn reborn(mut self, arguments: &[&str]) -> Self {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let state = std::mem::replace(&mut self.state, tempfile::tempdir().unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_ropewalk"));
        Self::start(&mut command, &self.address, arguments, Stdio::null(), state)
    }

    /// Serves where nothing takes permissions away from files that are made.
    pub fn without_umask(arguments: &[&str]) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", "umask 0 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_ropewalk")]);
        Self::spawn(&mut shell, arguments)
    }

    /// Serves on when its terminal hangs up.
    pub fn under_nohup(arguments: &[&str]) -> Self {
        let mut nohup = Command::new("nohup");
        nohup.arg(env!("CARGO_BIN_EXE_ropewalk"));
        Self::spawn(&mut nohup, arguments)
    }

    /// Serves, and its log goes into a pipe that nobody reads any more.
    pub fn unheard(arguments: &[&str]) -> Self {
        Self::heard(arguments).0
    }

    /// Serves, and its log goes into a pipe.
    pub fn heard(arguments: &[&str]) -> (Self, PipeReader) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ropewalk"));
        let (reader, log) = std::io::pipe().unwrap();
        let state = tempfile::tempdir().unwrap();
        (Self::start(&mut command, ANY_PORT, arguments, log.into(), state), reader)
    }

    fn spawn(command: &mut Command, arguments: &[&str]) -> Self {
        Self::start(command, ANY_PORT, arguments, Stdio::null(), tempfile::tempdir().unwrap())
    }

    fn start(
        command: &mut Command,
        address: &str,
        arguments: &[&str],
        log: Stdio,
        state: tempfile::TempDir,
    ) -> Self {
        let mut child = command
            .env("STATE_DIRECTORY", state.path())
            .args(["serve", "--listen", address])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let address = ready.strip_prefix("Ready at ").and_then(|rest| rest.split_once(": ")).unwrap();
        Self { address: address.0.to_owned(), child, state }
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn url(&self, lun: u16) -> String {
        format!("iscsi://{}/{TARGET}/{lun}", self.address)
    }

    /// Asks it to stop, and returns its exit status.
    pub fn terminate(self) -> i32 {
        self.stop_by("TERM")
    }

    /// The same by this signal.
    pub fn stop_by(mut self, name: &str) -> i32 {
        signal(self.child.id(), name);
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process of this test.
pub fn signal(process: u32, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(status.unwrap().success());
}

/// Waits until a line of a process's output satisfies the condition.
pub fn wait_for_line(output: impl Read, mut condition: impl FnMut(&str) -> bool) {
    let mut lines = BufReader::new(output).lines();
    assert!(lines.any(|line| condition(&line.unwrap())), "the output ended without it");
}

/// Never zero, never periodic.
pub fn noise(bytes: usize) -> Vec<u8> {
    let word = |index: u64| (index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
    (0..bytes.div_ceil(8) as u64).flat_map(word).take(bytes).collect()
}

/// A folder for a test, with a file in it.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn write(&self, name: &str, data: &[u8]) -> String {
        std::fs::write(self.path(name), data).unwrap();
        self.text(name)
    }

    /// A file that only its owner may read.
    pub fn write_secret(&self, name: &str, data: &[u8]) -> String {
        let path = self.write(name, data);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    pub fn read(&self, name: impl AsRef<Path>) -> Vec<u8> {
        std::fs::read(self.0.path().join(name)).unwrap()
    }
}
