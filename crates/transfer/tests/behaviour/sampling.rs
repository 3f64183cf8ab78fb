//! The sample of a copy that is read back.

use crate::world::{Disk, KIB, MIB, copy, noise, options, source};
use block::{Backend, Buffer, Completer, Completion, Operation, Pending, Properties};
use ropewalk_transfer::{Destination, Identity, Options, Original, Verify};
use std::sync::{Arc, Mutex};

/// A disk that answers no read before it has so many to answer.
struct Gathering {
    disk: Arc<Disk>,
    reads_min: usize,
    reads: Mutex<Vec<(u64, Buffer, Completer)>>,
}

impl Gathering {
    fn answer(&self, reads: Vec<(u64, Buffer, Completer)>) {
        let contents = self.disk.contents();
        for (offset, mut buffer, completer) in reads {
            let bytes = buffer.len();
            buffer.copy_from_slice(&contents[usize::try_from(offset).unwrap()..][..bytes]);
            let mut completion = Completion::complete();
            completion.buffer = Some(buffer);
            completer.complete(completion);
        }
    }
}

impl Backend for Gathering {
    fn properties(&self) -> Properties {
        self.disk.properties()
    }

    fn submit(&self, operation: Operation) -> Pending {
        let Operation::Read { offset, buffer } = operation else { return self.disk.submit(operation) };
        let (completer, pending) = Pending::channel();
        let mut reads = self.reads.lock().unwrap();
        reads.push((offset, buffer, completer));
        if reads.len() >= self.reads_min {
            self.answer(std::mem::take(&mut reads));
        }
        pending
    }
}

#[test]
fn all_of_a_sample_is_read_at_once() {
    const BYTES: u64 = 64 * MIB;
    let options = Options {
        request_bytes: 64 * KIB,
        requests: 4,
        verify: Verify::Sample,
        overwrite: true,
        ..options()
    };
    let original =
        Original { bytes: BYTES, request_bytes: options.request_bytes, unit_bytes: 512, is_stream: false };
    let reads_min = Verify::Sample.parts(original, options.verify_seed).count();
    assert!(reads_min > options.requests);
    let (from, disk) = (Disk::new(BYTES), Disk::new(BYTES));
    from.fill(0, &noise(BYTES));
    let to = Gathering { disk, reads_min, reads: Mutex::default() };
    let destination = Destination::device(Identity::named("destination"), Arc::new(to));
    let copy = copy(source(&from), destination, options);
    copy.outcome.unwrap();
    assert!(copy.progress.verified_bytes <= 6 * 16 * KIB);
}
