//! How much of a connection's data is taken from its session before the network takes it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod listener;

use block::Slab;
use listener::Listener;
use pdu::{InitiatorPdu, Instant, Itt, LaneId, Lun, NopOut, Ttt};
use policy::PathMeasurement;
use ropewalk_framing::{BufferTable, Connection, InForce, SocketOptions, SocketOptionsError, Wire};
use session::parameters::ConnectionParameters;
use std::cell::Cell;
use std::io::{self, IoSlice, IoSliceMut};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

const PARAMETERS: ConnectionParameters = ConnectionParameters {
    header_digest: false,
    data_digest: false,
    send_segment_bytes_max: 1 << 20,
    receive_segment_bytes_max: 8192,
};

/// A stream that is full. Remembers what was offered to it, and how much it may keep.
#[derive(Clone, Default)]
struct Full {
    offered_bytes: Rc<Cell<usize>>,
    unsent_bytes_max: Rc<Cell<Option<u32>>>,
}

impl Wire for Full {
    fn poll_read(&mut self, _: &mut Context<'_>, _: &mut [IoSliceMut<'_>]) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn poll_write(&mut self, _: &mut Context<'_>, from: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.offered_bytes.set(from.iter().map(|slice| slice.len()).sum());
        Poll::Pending
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn unacknowledged_bytes(&self) -> io::Result<u64> {
        Ok(0)
    }

    fn measure(&self) -> Option<PathMeasurement> {
        None
    }

    fn limit_unsent(&self, bytes: u32) {
        self.unsent_bytes_max.set(Some(bytes));
    }

    fn apply(&self, _: &SocketOptions) -> Result<InForce, SocketOptionsError> {
        Ok(InForce::default())
    }
}

fn talkative() -> Listener {
    let ping = NopOut {
        immediate: true,
        lun: Lun(0),
        itt: Itt(1),
        ttt: Ttt::NONE,
        cmd_sn: pdu::CmdSn(0),
        exp_stat_sn: pdu::StatSn(0),
        data_segment_bytes: 0,
    };
    Listener { sends: Some(InitiatorPdu::NopOut(ping).emit()), ..Listener::default() }
}

/// How much is pulled, at least, when so much may be taken ahead; and how much the stream may keep.
fn pulled(ahead_bytes: Option<u32>) -> (usize, Option<u32>) {
    let stream = Full::default();
    let mut connection = Connection::new(LaneId(0), stream.clone(), &PARAMETERS);
    if let Some(bytes) = ahead_bytes {
        connection.limit_ahead(bytes);
    }
    let buffers = BufferTable::new(Slab::new(1 << 20));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(connection.poll_send(&mut cx, Instant::ZERO, &mut talkative(), &buffers).is_pending());
    (stream.offered_bytes.get(), stream.unsent_bytes_max.get())
}

#[test]
fn half_of_what_may_be_taken_ahead_is_pulled_and_the_stream_may_keep_the_other() {
    let (pulled_bytes, unsent_bytes_max) = pulled(Some(64 << 10));
    assert!((32 << 10..33 << 10).contains(&pulled_bytes), "{pulled_bytes}");
    assert_eq!(unsent_bytes_max, Some(32 << 10));
}

#[test]
fn without_a_bound_one_large_gather_is_pulled_and_the_stream_decides_for_itself() {
    let (pulled_bytes, unsent_bytes_max) = pulled(None);
    assert!((512 << 10..513 << 10).contains(&pulled_bytes), "{pulled_bytes}");
    assert_eq!(unsent_bytes_max, None);
}
