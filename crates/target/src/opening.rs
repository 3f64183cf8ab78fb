//! Opens the backends of LUNs.

use crate::config::{Config, LunConfig};
use crate::lun_spec::{LunSpec, Medium, Pace};
use crate::name::IscsiName;
use crate::pace_timer::PaceTimer;
use crate::state_directory::{StateDirectory, StateError};
use block::{Backend, BlockError, BlockErrorKind, Engine, File, FileOptions, Paced, Ram, Volatile};
use device::{LogicalUnit, Memory, UnitDescription};
use scsi::{Identity, TargetPort};
use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::Arc;

/// A LUN that cannot be served.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message shows what each field is")]
#[error("LUN {number} of {target}: {source}")]
pub struct OpenError {
    pub target: IscsiName,
    pub number: u16,
    pub source: OpenFailure,
}

/// The reason why a LUN cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OpenFailure {
    /// Its backend cannot be opened.
    #[error(transparent)]
    Backend(#[from] BlockError),
    /// Its reservations cannot be read.
    #[error(transparent)]
    Reservations(#[from] StateError),
}

/// The most unflushed writes that a `volatile` LUN holds in memory.
const VOLATILE_CACHE_BYTES: usize = 64 << 20;

/// Opens the LUN's backend. `engine` is the shard's, made when the first file needs it.
pub(crate) fn open(
    target: &IscsiName,
    portal_groups: &[u16],
    lun: &LunConfig,
    engine: &mut Option<Engine>,
    memory: &Memory,
    state: Option<&StateDirectory>,
) -> Result<LogicalUnit, OpenError> {
    let opened = open_unit(target, portal_groups, lun, engine, memory, state);
    opened.map_err(|source| OpenError { target: target.clone(), number: lun.number, source })
}

fn open_unit(
    target: &IscsiName,
    portal_groups: &[u16],
    lun: &LunConfig,
    engine: &mut Option<Engine>,
    memory: &Memory,
    state: Option<&StateDirectory>,
) -> Result<LogicalUnit, OpenFailure> {
    let engine = match engine {
        Some(engine) => engine,
        none => none.insert(Engine::probe()?),
    };
    let backend = lun.backend.open(engine)?;
    let mut ports = portal_groups.iter().map(|tag| port_of(target, *tag));
    let identity = lun.identity(target);
    let naa = identity.naa;
    let description = UnitDescription {
        number: lun.number,
        identity,
        target_port: ports.next().unwrap_or_else(|| port_of(target, Config::default().portal_group_tag)),
        other_ports: ports.collect(),
        physical_bytes: lun.backend.physical_bytes,
        removable: lun.backend.removable,
        read_only: lun.backend.read_only,
        threshold_percent: lun.backend.threshold_percent,
        write_same_to_end: lun.backend.write_same_to_end,
    };
    let unit = LogicalUnit::new(description, backend, memory)?;
    // A medium that forgets its data has nothing for reservations to protect.
    let state = state.filter(|_| matches!(lun.backend.medium, Medium::File { .. }));
    let kept = state.map(|state| state.unit(target.as_str(), naa)).transpose()?.flatten();
    Ok(match kept {
        Some((file, last)) => unit.keep_reservations(Rc::new(file), last),
        None => unit,
    })
}

/// A target's port in a portal group. The tag is also its relative identifier, so it does not depend on other groups.
fn port_of(target: &IscsiName, portal_group_tag: u16) -> TargetPort {
    TargetPort { target_name: target.to_string(), portal_group_tag, relative_identifier: portal_group_tag }
}

impl LunConfig {
    /// The identity by which initiators recognise the unit.
    pub(crate) fn identity(&self, target: &IscsiName) -> Identity {
        Identity::from_name(&self.backend.identity_name(target, self.number))
    }
}

impl LunSpec {
    /// Opens the backend. A slow one counts its time from now on, with the timers of the calling thread's runtime.
    ///
    /// # Errors
    /// The backend's.
    pub fn open(&self, engine: &Engine) -> Result<Arc<dyn Backend>, BlockError> {
        let mut backend: Arc<dyn Backend> = match &self.medium {
            Medium::Ram { bytes } => {
                Arc::new(Ram::new(self.block_bytes, bytes / u64::from(self.block_bytes))?)
            }
            Medium::File { path, size_bytes, direct } => {
                let options = FileOptions {
                    direct: *direct,
                    read_only: self.read_only,
                    thin: self.thin,
                    size_bytes: *size_bytes,
                    block_bytes: self.block_bytes,
                };
                let file = File::open(path, &options, engine)?;
                if self.threshold_percent.is_some() && !path.is_file() {
                    let context = "a threshold of a block device, which does not tell how much of it is used";
                    return Err(BlockError::new(BlockErrorKind::Unsupported, context));
                }
                Arc::new(file)
            }
        };
        if let Some(pace) = self.pace {
            backend = Arc::new(Paced::new(backend, Arc::new(PaceTimer::start()), block_pace(pace)));
        }
        if self.volatile {
            backend = Arc::new(Volatile::new(backend, VOLATILE_CACHE_BYTES));
        }
        Ok(backend)
    }

    /// The source of the unit's identity: the same after a restart and over every path.
    fn identity_name(&self, target: &IscsiName, number: u16) -> String {
        match (&self.id, &self.medium) {
            (Some(id), _) => id.clone(),
            (None, Medium::File { path, .. }) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                format!("{target}/{number}/{}", path.display())
            }
            (None, Medium::Ram { bytes }) => format!("{target}/{number}/ram:{bytes}"),
        }
    }
}

fn block_pace(pace: Pace) -> block::Pace {
    block::Pace {
        bytes_per_second: pace.bytes_per_second.and_then(NonZeroU64::new),
        latency: pace.latency,
        jitter: std::time::Duration::ZERO,
        seed: 0,
    }
}
