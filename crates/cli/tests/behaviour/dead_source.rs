//! The target of a copy's source dies for good while the copy is under way.

use crate::world::{Folder, MIB, Server, noise};
use block::{Backend, Operation, Pending, Properties, Ram};
use initiator::{Config, Connections, Reconnect};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use transfer::{
    Clock, Destination, DestinationState, Error, Failure, Identity, Job, Options, Progress, Source,
};

/// Longer than what is under way at once.
const BYTES: usize = 32 * MIB;
/// The copy must end by itself long before.
const PATIENCE: Duration = Duration::from_secs(60);
const BLOCK_BYTES: u32 = 512;

/// A disk that kills a target when it is first written to.
struct Deadly {
    ram: Ram,
    victim: Mutex<Option<Server>>,
}

impl Backend for Deadly {
    fn properties(&self) -> Properties {
        self.ram.properties()
    }

    fn submit(&self, operation: Operation) -> Pending {
        if matches!(operation, Operation::Write { .. }) {
            drop(self.victim.lock().unwrap().take());
        }
        self.ram.submit(operation)
    }
}

/// Nothing waits for the time in a copy without a limit.
struct StoppedClock;

impl block::Timer for StoppedClock {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn wait_until(&self, _time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

impl Clock for StoppedClock {
    fn time_of_day(&self) -> Duration {
        Duration::ZERO
    }
}

#[test]
fn a_copy_from_a_target_that_stays_dead_ends_and_says_that_the_destination_is_incomplete() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let failure = runtime.block_on(copy_from_a_target_that_dies());
    assert_eq!(failure.destination, DestinationState::Incomplete);
    assert!(matches!(failure.error, Error::Read { .. }), "{}", failure.error);
}

async fn copy_from_a_target_that_dies() -> Failure {
    let folder = Folder::new();
    let image = folder.write("image", &noise(BYTES));
    let target = Server::with_luns(&[&format!("0=file:{image},ro")]);
    let reconnect = Reconnect { give_up_after: Duration::from_millis(500), ..Reconnect::default() };
    let config = Config { connections: Connections::Fixed(2), reconnect, ..Config::default() };
    let session = initiator::connect(&target.url(0).parse().unwrap(), config).await.unwrap();
    let lun = session.lun(0).await.unwrap();
    let source = Source::device(Identity::named("source"), Arc::new(lun));
    let ram = Ram::new(BLOCK_BYTES, BYTES as u64 / u64::from(BLOCK_BYTES)).unwrap();
    let deadly = Deadly { ram, victim: Mutex::new(Some(target)) };
    let destination = Destination::device(Identity::named("destination"), Arc::new(deadly));
    let (clock, progress) = (Arc::new(StoppedClock), Arc::new(Progress::default()));
    let options = Options { requests: 4, ..Options::default() };
    let job = Job::prepare(source, destination, options, clock, progress).await.unwrap();

    let ended = tokio::time::timeout(PATIENCE, job.run(std::future::pending())).await;
    ended.unwrap().unwrap_err()
}
