//! Lets the program know of which commit it was built, where git knows: results say it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let revision = revision().unwrap_or_default();
    println!("cargo::rustc-env=ROPEWALK_REVISION={revision}");
}

/// The commit that is checked out; `None` without git, and where the sources lie in somebody else's repository.
fn revision() -> Option<String> {
    // Not as it was compiled: one build script may serve several copies of the sources.
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    let workspace = here.join("../..").canonicalize().ok()?;
    let top = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?).canonicalize().ok()?;
    if top != workspace {
        return None;
    }
    // It has a line for every commit and checkout; a file that is not there would make Cargo build anew each time.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).is_file() {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

/// What it says in its first line, if it succeeds.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
