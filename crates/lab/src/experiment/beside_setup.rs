//! What else uses the path of a SCSI workload, as in an experiment's file.

use super::setup::check_congestion;
use crate::workload::Direction;
use netem::Span;
use serde::{Deserialize, Serialize};

/// What else uses the path, for as long as a SCSI workload runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BesideSetup {
    /// Plain TCP streams.
    #[serde(default)]
    pub streams: u8,
    /// Their direction: `write` to the server, `read` from it.
    #[serde(default = "to_the_server")]
    pub direction: Direction,
    /// When they begin, since the workload did.
    #[serde(default)]
    pub from: Span,
    /// When they end; with the workload, if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Span>,
    /// Their congestion control, which may have terms; the setup's, if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// Further clients with the same workload, each with a target of its own.
    #[serde(default)]
    pub clients: u8,
}

/// More clients would wait for the machine, not for the path.
const CLIENTS_MAX: u8 = 16;

fn to_the_server() -> Direction {
    Direction::Write
}

impl BesideSetup {
    /// Checks the settings.
    ///
    /// # Errors
    /// The defect, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.streams == 0 && self.clients == 0 {
            return Err("setup.beside needs streams or clients, at least one of them".to_owned());
        }
        if self.streams == 0 && (self.from, self.to) != (Span::default(), None) {
            return Err("setup.beside.from and to are of streams, and there are none".to_owned());
        }
        if let Some(to) = self.to.filter(|to| *to <= self.from) {
            return Err(format!("setup.beside.to is {to}, but must be after from, {}", self.from));
        }
        if self.clients > CLIENTS_MAX {
            return Err(format!(
                "setup.beside.clients is {}, but must be at most {CLIENTS_MAX}",
                self.clients
            ));
        }
        self.congestion_control
            .iter()
            .try_for_each(|text| check_congestion("beside.congestion_control", text))
    }
}
