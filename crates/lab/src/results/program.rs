//! The program that measured.

use pdu::Crc32c;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::sync::OnceLock;

/// The ropewalk that measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The version in its package.
    pub version: String,
    /// The commit checked out at the build, if git knew it. The sources may differ from it.
    pub revision: Option<String>,
    /// CRC32C of the executable file, which distinguishes builds; missing if the file could not be read.
    pub executable_crc32c: Option<String>,
}

impl Program {
    /// The running program.
    #[must_use]
    pub fn this() -> Self {
        static EXECUTABLE: OnceLock<Option<String>> = OnceLock::new();
        let revision = env!("ROPEWALK_REVISION");
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            revision: (!revision.is_empty()).then(|| revision.to_owned()),
            executable_crc32c: EXECUTABLE.get_or_init(|| executable_crc32c().ok()).clone(),
        }
    }

    /// A description, in one line.
    pub(crate) fn describe(&self) -> String {
        let revision = self.revision.as_ref().map(|revision| format!(", revision {revision}"));
        let executable = self.executable_crc32c.as_ref().map(|crc| format!(", executable {crc}"));
        format!("{}{}{}", self.version, revision.unwrap_or_default(), executable.unwrap_or_default())
    }
}

fn executable_crc32c() -> io::Result<String> {
    // Works even if the path leads to a newer build by now.
    let mut file = File::open("/proc/self/exe")?;
    let mut crc = Crc32c::new();
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(format!("{:08x}", u32::from_le_bytes(crc.finish()))),
            length => crc.update(&piece[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_says_which_build_it_is_as_far_as_that_is_known() {
        let program = |revision: Option<&str>| Program {
            version: "1.2.3".to_owned(),
            revision: revision.map(str::to_owned),
            executable_crc32c: Some("0badcafe".to_owned()),
        };
        assert_eq!(program(None).describe(), "1.2.3, executable 0badcafe");
        assert_eq!(program(Some("abc")).describe(), "1.2.3, revision abc, executable 0badcafe");
    }

    #[test]
    fn this_program_tells_its_executable() {
        let file = std::fs::read("/proc/self/exe").unwrap();
        let mut crc = Crc32c::new();
        crc.update(&file);
        let crc = format!("{:08x}", u32::from_le_bytes(crc.finish()));
        assert_eq!(Program::this().executable_crc32c, Some(crc));
    }
}
