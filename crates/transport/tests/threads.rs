//! A connection whose bytes two threads of its own move.

#![expect(clippy::unwrap_used, reason = "a test says by its failure what went wrong")]

use framing::{Threads, Wire};
use ropewalk_transport::wire;
use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::pin::pin;
use std::task::Poll;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

/// A connection with threads of its own, and its peer.
async fn connection() -> (Box<dyn Wire + Send>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
    (wire(near.unwrap(), Threads::PerLane).unwrap(), far.unwrap().0)
}

fn numbered(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from(at % 251).unwrap()).collect()
}

async fn write(wire: &mut dyn Wire, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = poll_fn(|cx| wire.poll_write(cx, &[IoSlice::new(bytes)])).await?;
        bytes = &bytes[written..];
    }
    Ok(())
}

async fn read(wire: &mut dyn Wire, to: &mut [u8]) -> io::Result<usize> {
    poll_fn(|cx| wire.poll_read(cx, &mut [IoSliceMut::new(to)])).await
}

#[tokio::test]
async fn what_was_written_arrives_although_the_connection_ends_at_once() {
    let (mut near, mut far) = connection().await;
    let written = numbered(200_000);
    write(&mut *near, &written).await.unwrap();
    drop(near);
    let mut arrived = Vec::new();
    far.read_to_end(&mut arrived).await.unwrap();
    assert!(arrived == written);
}

#[tokio::test]
async fn a_writer_waits_for_a_peer_that_takes_nothing() {
    let (mut near, mut far) = connection().await;
    // More than the ring and both sockets hold.
    let written = numbered(64 << 20);
    let writing = async {
        write(&mut *near, &written).await.unwrap();
        drop(near);
    };
    let mut writing = pin!(writing);
    assert!(poll_fn(|cx| Poll::Ready(writing.as_mut().poll(cx).is_pending())).await);
    let mut arrived = Vec::new();
    let ((), read) = tokio::join!(writing, far.read_to_end(&mut arrived));
    read.unwrap();
    assert!(arrived == written);
}

#[tokio::test]
async fn bytes_that_came_before_the_end_are_read_before_it() {
    let (mut near, far) = connection().await;
    let sent = numbered(500_000);
    let sending = async {
        let mut far = far;
        tokio::io::AsyncWriteExt::write_all(&mut far, &sent).await.unwrap();
    };
    let reading = async {
        let mut arrived = Vec::new();
        let mut bytes = vec![0; 10_000];
        loop {
            match read(&mut *near, &mut bytes).await.unwrap() {
                0 => return arrived,
                count => arrived.extend_from_slice(&bytes[..count]),
            }
        }
    };
    let (arrived, ()) = tokio::join!(reading, sending);
    assert!(arrived == sent);
}

#[tokio::test]
async fn a_connection_that_is_dropped_unread_is_closed() {
    let (near, mut far) = connection().await;
    // More than the ring and both sockets hold: it fails if all descriptors of the other end are closed, and else never ends.
    let flood = numbered(64 << 20);
    let mut flooding = pin!(tokio::io::AsyncWriteExt::write_all(&mut far, &flood));
    assert!(poll_fn(|cx| Poll::Ready(flooding.as_mut().poll(cx).is_pending())).await);
    drop(near);
    assert!(flooding.await.is_err());
}

#[tokio::test]
async fn a_closed_connection_has_sent_everything() {
    let (mut near, mut far) = connection().await;
    let written = numbered(200_000);
    write(&mut *near, &written).await.unwrap();
    let mut arrived = Vec::new();
    let (closed, read) = tokio::join!(poll_fn(|cx| near.poll_close(cx)), far.read_to_end(&mut arrived));
    closed.unwrap();
    read.unwrap();
    assert!(arrived == written);
}
