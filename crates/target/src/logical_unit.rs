//! A logical unit: its backend, what it tells of itself, and the state that its sessions share.

use crate::access::Mask;
use crate::config::LunConfig;
use crate::lun_spec::{LunSpec, Medium, Pace};
use crate::name::IscsiName;
use crate::pace_timer::PaceTimer;
use block::{
    Backend, BlockError, BlockErrorKind, Engine, File, FileOptions, Operation, Paced, Payload, Pending,
    Properties, Ram, Slab, Volatile,
};
use pdu::Lun;
use scsi::{BlockLength, Blocks, Disk, Extent, Identity, Lba, Outcome, Provisioning, TargetPort};
use std::cell::RefCell;
use std::num::NonZeroU64;
use std::sync::Arc;

/// One logical unit of one target. It lives on its target's shard, so its state needs no lock.
pub(crate) struct LogicalUnit {
    pub number: u16,
    pub mask: Mask,
    pub disk: Disk,
    pub backend: Arc<dyn Backend>,
    /// Unit attentions and the task set, of all sessions.
    pub shared: RefCell<nexus::target::LogicalUnit>,
    /// See [`crate::memory::Memory::working`].
    pub working: Slab,
}

/// A LUN that cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("LUN {number} of {target}: {source}")]
pub struct OpenError {
    /// Whose.
    pub target: IscsiName,
    /// Which.
    pub number: u16,
    /// Why.
    pub source: BlockError,
}

/// Unflushed writes that a `volatile` LUN holds in memory.
const VOLATILE_CACHE_BYTES: usize = 64 << 20;

/// The longest transfer of one command: as long as one buffer may be.
pub(crate) const TRANSFER_BYTES_MAX: u32 = 32 << 20;
const _: () = assert!(TRANSFER_BYTES_MAX as usize == block::BUFFER_BYTES_MAX);

impl LogicalUnit {
    /// Opens what the configuration names. `engine` is the shard's, made when the first file needs it.
    pub(crate) fn open(
        target: &IscsiName,
        portal_group_tag: u16,
        lun: &LunConfig,
        engine: &mut Option<Engine>,
        working: Slab,
    ) -> Result<Self, OpenError> {
        let failed = |source| OpenError { target: target.clone(), number: lun.number, source };
        let backend = open_backend(&lun.backend, engine).map_err(failed)?;
        let properties = backend.properties();
        let block = BlockLength::from_bytes(properties.block_bytes).ok_or_else(|| {
            failed(BlockError::new(BlockErrorKind::Unsupported, "logical blocks of this length"))
        })?;
        let port = TargetPort { target_name: target.to_string(), portal_group_tag, relative_identifier: 1 };
        let disk = Disk {
            identity: Identity::from_name(&lun.backend.identity_name(target, lun.number)),
            target_port: Some(port),
            other_ports: Vec::new(),
            block,
            physical_exponent: scsi::PhysicalExponent::default(),
            blocks: Blocks(properties.blocks),
            // Memory cannot be opened for reading only as a file can.
            read_only: properties.read_only || lun.backend.read_only,
            write_cache: properties.volatile_cache,
            provisioning: provisioning(&properties),
            limits: scsi::Limits { transfer_bytes_max: TRANSFER_BYTES_MAX, ..scsi::Limits::default() },
        };
        let shared = RefCell::default();
        Ok(Self { number: lun.number, mask: lun.mask.clone(), disk, backend, shared, working })
    }

    pub(crate) fn lun(&self) -> Lun {
        Lun::from_index(self.number)
    }

    /// How many bytes these blocks are.
    pub(crate) fn bytes_of(&self, extent: Extent) -> u64 {
        self.disk.block.times(extent.blocks)
    }

    /// Where these blocks begin on the backend.
    pub(crate) fn offset_of(&self, lba: Lba) -> u64 {
        self.disk.block.times(Blocks(lba.0))
    }

    /// The block in which a byte of the backend is.
    pub(crate) fn lba_at(&self, offset: u64) -> Lba {
        Lba(offset / u64::from(self.disk.block.bytes()))
    }

    pub(crate) fn write(&self, offset: u64, payload: Payload, fua: bool) -> Pending {
        self.backend.submit(Operation::Write { offset, payload, fua })
    }

    /// What is answered when reading from `offset` failed.
    pub(crate) fn read_failure(&self, offset: u64, error: &BlockError) -> Outcome {
        tracing::warn!(lun = self.number, offset, error = %with_source(error), "read failed");
        match error.kind() {
            BlockErrorKind::Medium => Outcome::read_failed(self.lba_at(offset)),
            _ => Outcome::internal_failure(),
        }
    }

    /// What is answered when writing, zeroing or unmapping from `offset` failed.
    pub(crate) fn write_failure(&self, offset: u64, error: &BlockError) -> Outcome {
        tracing::warn!(lun = self.number, offset, error = %with_source(error), "write failed");
        match error.kind() {
            BlockErrorKind::Medium => Outcome::write_failed(self.lba_at(offset)),
            BlockErrorKind::NoSpace => Outcome::out_of_space(),
            BlockErrorKind::ReadOnly => Outcome::write_protected(),
            _ => Outcome::internal_failure(),
        }
    }
}

/// An error and what caused it, in one line.
pub(crate) fn with_source(error: &BlockError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

impl LunSpec {
    /// What the unit's identity is made from: the same after a restart and on every path to it.
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

fn provisioning(properties: &Properties) -> Provisioning {
    match properties.thin {
        Some(thin) => Provisioning::Thin {
            zeroes: thin.reads_zero,
            granularity: Blocks(u64::from(thin.granularity_bytes / properties.block_bytes).max(1)),
        },
        None => Provisioning::Full,
    }
}

fn open_backend(spec: &LunSpec, engine: &mut Option<Engine>) -> Result<Arc<dyn Backend>, BlockError> {
    let mut backend: Arc<dyn Backend> = match &spec.medium {
        Medium::Ram { bytes } => Arc::new(Ram::new(spec.block_bytes, bytes / u64::from(spec.block_bytes))?),
        Medium::File { path, size_bytes, direct } => {
            let options = FileOptions {
                direct: *direct,
                read_only: spec.read_only,
                thin: spec.thin,
                size_bytes: *size_bytes,
                block_bytes: spec.block_bytes,
            };
            let engine = match engine {
                Some(engine) => engine,
                none => none.insert(Engine::probe()?),
            };
            Arc::new(File::open(path, &options, engine)?)
        }
    };
    if let Some(pace) = spec.pace {
        backend = Arc::new(Paced::new(backend, Arc::new(PaceTimer::start()), block_pace(pace)));
    }
    if spec.volatile {
        backend = Arc::new(Volatile::new(backend, VOLATILE_CACHE_BYTES));
    }
    Ok(backend)
}

fn block_pace(pace: Pace) -> block::Pace {
    block::Pace {
        bytes_per_second: pace.bytes_per_second.and_then(NonZeroU64::new),
        latency: pace.latency,
        jitter: std::time::Duration::ZERO,
        seed: 0,
    }
}
