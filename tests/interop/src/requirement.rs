//! What a test needs of the machine. Without it the test is skipped, with the reason, unless `REQUIRE` names it.

use std::io::{self, Write};
use std::path::PathBuf;

/// Something that not every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The rights of root.
    Root,
    /// These programs of other projects.
    Peers(&'static [&'static str]),
}

/// Whether the test can run here. If not, the reason is printed, and the test should return.
///
/// # Panics
/// If something is missing that the environment variable `REQUIRE` names: a list of `root`, `bpf`, `netns` and
/// `peers`, or `all`.
#[must_use]
pub fn require(requirements: &[Requirement]) -> bool {
    let missing = requirements.iter().find_map(|requirement| requirement.missing());
    let Some((name, reason)) = missing else { return true };
    skip(name, &reason);
    false
}

/// Says that the test is skipped because the machine lacks what is called `name`, for that reason.
///
/// # Panics
/// As [`require`].
pub fn skip(name: &str, reason: &str) {
    let wanted = std::env::var("REQUIRE").unwrap_or_default();
    let insisted = wanted.split(',').any(|wanted| wanted == name || wanted == "all");
    assert!(!insisted, "{reason}, and REQUIRE={wanted} forbids to skip");
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // Past the harness, which keeps what a passing test prints. If nobody reads it, nothing is lost.
    let _ = writeln!(io::stderr(), "skipped: {test}: {reason}");
}

impl Requirement {
    fn missing(self) -> Option<(&'static str, String)> {
        match self {
            Self::Root if rustix::process::geteuid().is_root() => None,
            Self::Root => Some(("root", "it needs the rights of root".to_owned())),
            Self::Peers(programs) => {
                let program = programs.iter().find(|program| find(program).is_none())?;
                Some(("peers", format!("{program} is not installed")))
            }
        }
    }
}

/// Where daemons live, which ordinary users do not have in their path.
const DAEMON_PATHS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Where the program is, if it is installed.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(DAEMON_PATHS.map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}
