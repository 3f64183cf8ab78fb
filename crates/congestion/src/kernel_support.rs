//! What our controls need of the kernel.

use std::fs;
use std::path::Path;

/// The first Linux whose congestion controls may be held by links of BPF.
const FIRST: (u32, u32) = (6, 4);

/// What the running kernel lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lack {
    /// Links that hold congestion controls.
    #[error("this is Linux {0}, and congestion controls of ropewalk need Linux 6.4 or later")]
    Links(String),
    /// A description of its types.
    #[error(
        "this kernel has no /sys/kernel/btf/vmlinux, by which programs are fitted to it: it was built without \
         CONFIG_DEBUG_INFO_BTF"
    )]
    Types,
}

/// What the running kernel lacks, if anything.
#[must_use]
pub fn lack() -> Option<Lack> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    if !is_recent(release.trim()) {
        return Some(Lack::Links(release.trim().to_owned()));
    }
    (!Path::new("/sys/kernel/btf/vmlinux").exists()).then_some(Lack::Types)
}

/// Whether it may be recent enough: one whose release cannot be read is asked.
fn is_recent(release: &str) -> bool {
    let mut numbers =
        release.split(|letter: char| !letter.is_ascii_digit()).map_while(|part| part.parse().ok());
    numbers.next().zip(numbers.next()).is_none_or(|version: (u32, u32)| version >= FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_need_linux_6_4() {
        let recent = ["6.4", "6.4.0-rc1", "6.12.95+deb12-cloud-amd64", "7.0-rc1", "unreadable", ""];
        assert_eq!(recent.map(is_recent), [true; 6]);
        let old = ["6.1.0-42-amd64", "5.15.0-generic", "4.19.1"];
        assert_eq!(old.map(is_recent), [false; 3]);
    }
}
