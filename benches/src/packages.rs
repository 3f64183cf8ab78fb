//! The packages of other programs, which a report names with their versions.

use std::process::Command;

/// The names and versions of those of these Debian packages that are installed, sorted by name. Without `dpkg-query`,
/// there are none.
pub fn installed(packages: &[&str]) -> Vec<String> {
    let query =
        Command::new("dpkg-query").args(["-W", "-f", "${Package} ${Version}\n"]).args(packages).output();
    let lines = query.map(|query| String::from_utf8_lossy(&query.stdout).into_owned()).unwrap_or_default();
    lines.lines().map(str::to_owned).collect()
}
