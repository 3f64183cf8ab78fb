//! Verification: compares source and destination request by request.

use crate::disk::Disk;
use crate::outstanding::{Control, Outstanding, Turn};
use crate::{Error, Progress, Verify, progress};
use block::{ByteRange, Slab};

/// The reference with which the copy is compared.
#[derive(Clone, Copy)]
pub(crate) enum Reference<'a> {
    /// The source, read again.
    Disk(&'a Disk),
    /// The checksums taken while a stream was copied, which cannot be read twice.
    Checksums(&'a [u64]),
}

/// A comparison to make.
#[derive(Clone, Copy)]
pub(crate) struct Verification<'a> {
    pub(crate) reference: Reference<'a>,
    pub(crate) copy: &'a Disk,
    /// Length of the source.
    pub(crate) bytes: u64,
    pub(crate) request_bytes: u64,
    pub(crate) unit_bytes: u64,
    pub(crate) requests: usize,
    pub(crate) verify: Verify,
    pub(crate) seed: u64,
    pub(crate) slab: &'a Slab,
    pub(crate) progress: &'a Progress,
}

/// The CRC-64/NVME of a request. One wrong request in 2^64 goes unnoticed, which is far rarer than other causes of a
/// bad copy.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, bytes)
}

impl Verification<'_> {
    pub(crate) async fn run(self, control: &mut Control) -> Result<(), Error> {
        let mut outstanding = Outstanding::new();
        let outcome = self.compare_all(&mut outstanding, control).await;
        outstanding.drain().await;
        outcome
    }

    async fn compare_all<'a>(
        self,
        outstanding: &mut Outstanding<'a, Result<(), Error>>,
        control: &mut Control,
    ) -> Result<(), Error>
    where
        Self: 'a,
    {
        let total = self.bytes.div_ceil(self.request_bytes);
        let chosen = || (0..total).filter(|request| self.verify.chooses(*request, total, self.seed));
        progress::add(
            &self.progress.counts.to_verify,
            chosen().map(|request| self.source_range(request).bytes).sum(),
        );
        let mut chosen = chosen().peekable();
        loop {
            while outstanding.len() < self.requests
                && let Some(request) = chosen.peek().copied()
                && control.admit(self.request_bytes)
            {
                chosen.next();
                outstanding.start(self.compare(request));
            }
            match outstanding.next(control).await {
                Turn::Done(compared) => compared?,
                Turn::Look => {}
                Turn::Idle => return Ok(()),
            }
            if control.is_interrupted() {
                return Err(Error::Interrupted);
            }
        }
    }

    fn source_range(&self, request: u64) -> ByteRange {
        let offset = request * self.request_bytes;
        ByteRange { offset, bytes: self.request_bytes.min(self.bytes - offset) }
    }

    async fn compare(self, request: u64) -> Result<(), Error> {
        let wanted = self.source_range(request);
        let range = ByteRange { bytes: wanted.bytes.next_multiple_of(self.unit_bytes), ..wanted };
        let copy = self.copy.read(self.slab, range).await?;
        let length = usize::try_from(wanted.bytes).unwrap_or(copy.len());
        let different = match self.reference {
            Reference::Disk(source) => {
                let original = source.read(self.slab, range).await?;
                first_difference(&original, &copy)
            }
            Reference::Checksums(checksums) => {
                let expected = usize::try_from(request).ok().and_then(|request| checksums.get(request));
                (expected != Some(&checksum(&copy[..length]))).then_some(0)
            }
        };
        match different {
            Some(at) => {
                Err(Error::Mismatch { offset: range.offset + at as u64, bytes: range.bytes - at as u64 })
            }
            None => {
                progress::add(&self.progress.counts.verified, wanted.bytes);
                Ok(())
            }
        }
    }
}

fn first_difference(one: &[u8], other: &[u8]) -> Option<usize> {
    // Comparing whole slices is many times faster than comparing bytes.
    (one != other).then(|| one.iter().zip(other).position(|(one, other)| one != other).unwrap_or(0))
}
