//! Verification: compares source and destination part by part.

use crate::disk::Disk;
use crate::outstanding::{Control, Outstanding, Turn};
use crate::sample::Original;
use crate::{Error, Progress, Verify, progress};
use block::{ByteRange, Slab};
use futures_util::future;
use std::sync::atomic::Ordering;

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
        let parts = || self.verify.parts(self.original(), self.seed);
        self.progress.counts.to_verify.store(parts().map(|part| part.bytes).sum(), Ordering::Relaxed);
        self.progress.counts.verified.store(0, Ordering::Relaxed);
        let mut parts = parts().peekable();
        loop {
            while outstanding.len() < self.parts_max()
                && let Some(part) = parts.peek().copied()
                && control.admit(part.bytes)
            {
                parts.next();
                outstanding.start(self.compare(part));
            }
            match outstanding.next(control).await? {
                Turn::Done(compared) => compared?,
                Turn::Look => {}
                Turn::Idle => return Ok(()),
            }
        }
    }

    fn original(&self) -> Original {
        Original {
            bytes: self.bytes,
            request_bytes: self.request_bytes,
            unit_bytes: self.unit_bytes,
            is_stream: matches!(self.reference, Reference::Checksums(_)),
        }
    }

    /// As many parts under way as have room in the memory of the copy's requests.
    fn parts_max(&self) -> usize {
        let part_bytes = self.verify.part_bytes(self.original());
        let parts = (self.requests as u64).saturating_mul(self.request_bytes) / part_bytes;
        usize::try_from(parts).unwrap_or(usize::MAX).max(1)
    }

    async fn compare(self, wanted: ByteRange) -> Result<(), Error> {
        let range = ByteRange { bytes: wanted.bytes.next_multiple_of(self.unit_bytes), ..wanted };
        let original = async {
            match self.reference {
                Reference::Disk(source) => source.read(self.slab, range).await.map(Some),
                Reference::Checksums(_) => Ok(None),
            }
        };
        let (copy, original) = future::join(self.copy.read(self.slab, range), original).await;
        let (copy, original) = (copy?, original?);
        let length = usize::try_from(wanted.bytes).unwrap_or(copy.len());
        let different = match self.reference {
            Reference::Disk(_) => first_difference(original.as_deref().unwrap_or_default(), &copy),
            Reference::Checksums(checksums) => {
                let request = usize::try_from(wanted.offset / self.request_bytes);
                let expected = request.ok().and_then(|request| checksums.get(request));
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
