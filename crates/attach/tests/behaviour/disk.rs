use crate::scripted::Scripted;
use block::{Backend, BlockErrorKind, Ram};
use ropewalk_attach::Disk;
use rustix::io::Errno;
use std::future::Future;
use std::sync::Arc;

/// Runs a future of the disk while `end` ends what it has begun.
async fn with<T>(future: impl Future<Output = T>, end: impl FnOnce()) -> T {
    tokio::pin!(future);
    tokio::select! {
        biased;
        _ = &mut future => unreachable!("the operation waits for the test"),
        () = std::future::ready(()) => end(),
    }
    future.await
}

#[tokio::test]
async fn a_loss_of_acknowledged_writes_is_told_by_every_flush_from_then_on() {
    let backend = Arc::new(Scripted::default());
    let disk = Disk::new(Arc::clone(&backend) as Arc<dyn Backend>, false);
    assert_eq!(with(disk.flush(), || backend.fail(BlockErrorKind::WritesLost)).await, Err(Errno::IO));
    for _ in 0..2 {
        assert_eq!(with(disk.flush(), || backend.succeed(0)).await, Err(Errno::IO));
    }
    assert!(disk.has_lost_writes());
}

#[tokio::test]
async fn another_user_of_the_disk_hears_of_the_loss_too() {
    let backend = Arc::new(Scripted::default());
    let disk = Disk::new(Arc::clone(&backend) as Arc<dyn Backend>, false);
    let other = disk.clone();
    assert!(with(disk.flush(), || backend.fail(BlockErrorKind::Disconnected)).await.is_err());
    assert_eq!(with(other.flush(), || backend.succeed(0)).await, Err(Errno::IO));
}

#[tokio::test]
async fn a_failed_read_leaves_flushes_alone() {
    let backend = Arc::new(Scripted::default());
    let disk = Disk::new(Arc::clone(&backend) as Arc<dyn Backend>, false);
    let read = with(disk.read(0, 512), || backend.fail(BlockErrorKind::Medium)).await;
    assert_eq!(read.err(), Some(Errno::IO));
    assert_eq!(with(disk.flush(), || backend.succeed(0)).await, Ok(()));
}

#[tokio::test]
async fn a_disk_that_is_attached_read_only_refuses_what_its_backend_would_take() {
    let disk = Disk::new(Arc::new(Ram::new(512, 64).unwrap()), true);
    let mut buffer = disk.buffer(512).await.unwrap();
    buffer.fill(1);
    assert_eq!(disk.write(0, buffer.share(), false).await, Err(Errno::PERM));
    assert_eq!(disk.zero(0, 512, true, false).await, Err(Errno::PERM));
    assert!(disk.read(0, 512).await.is_ok());
}

#[tokio::test]
async fn zeroes_are_written_where_the_backend_cannot_make_them() {
    let backend = Arc::new(Scripted::default());
    let disk = Disk::new(Arc::clone(&backend) as Arc<dyn Backend>, false);
    let zeroed = with(disk.zero(0, 4096, true, true), || {
        assert_eq!(backend.waiting(), ["write zeroes"]);
        backend.fail(BlockErrorKind::Unsupported);
    });
    let flushed = with(zeroed, || {
        assert_eq!(backend.waiting(), ["write"]);
        backend.succeed(0);
    });
    assert_eq!(with(flushed, || backend.succeed(0)).await, Ok(()));
}
