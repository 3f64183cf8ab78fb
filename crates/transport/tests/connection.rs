//! What a connection does with the bytes of its socket.

#![expect(clippy::unwrap_used, reason = "a test says by its failure what went wrong")]

use framing::{BufferTable, ConnectionError, ConnectionObserver, Scratch, Threads, Wire};
use pdu::{BufferId, Header, Instant, LaneId};
use proptest::prelude::*;
use ropewalk_transport::{Clock, wire};
use session::parameters::ConnectionParameters;
use session::peer_fault::PeerFault;
use session::seam::{Buffers, Destination, Digest, Endpoint, Fault, LaneLoss, Payload, PayloadRef, Transmit};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

const LANE: LaneId = LaneId(7);
const SEGMENT_BYTES_MAX: u32 = 1 << 20;

/// An endpoint that puts the data of each PDU into one buffer, one after the other.
#[derive(Default)]
struct Collector {
    buffer: Option<BufferId>,
    filled_bytes: u32,
    headers: Vec<Header>,
    digests: Vec<Digest>,
    inline: Vec<Vec<u8>>,
    outgoing: VecDeque<Transmit>,
    departed_pdus: u32,
    /// How often it was told that bytes had arrived.
    reads: u32,
    doubts: bool,
    delivered_bytes: u64,
}

impl Endpoint for Collector {
    type Event = ();

    fn receive_header(
        &mut self,
        _now: Instant,
        lane: LaneId,
        header: &Header,
        digest: Digest,
        _buffers: &mut dyn Buffers,
    ) -> Result<Destination, Fault> {
        assert_eq!(lane, LANE);
        if digest == Digest::Bad {
            return Err(Fault::HeaderDigest);
        }
        self.headers.push(header.clone());
        let bytes = header.data_segment_bytes();
        let Some(buffer) = self.buffer else { return Ok(Destination::Inline { bytes }) };
        let offset_bytes = self.filled_bytes;
        self.filled_bytes += bytes;
        Ok(Destination::Buffer(PayloadRef { buffer, offset_bytes, bytes }))
    }

    fn receive_data(&mut self, _: Instant, _: LaneId, inline: &[u8], digest: Digest) -> Result<(), Fault> {
        self.inline.push(inline.to_vec());
        self.digests.push(digest);
        Ok(())
    }

    fn poll_transmit(&mut self, _: Instant, _: LaneId, _budget_bytes: u32) -> Option<Transmit> {
        self.outgoing.pop_front()
    }

    fn wants_transmit(&self, _: LaneId) -> bool {
        !self.outgoing.is_empty()
    }

    fn transmitted(&mut self, _: Instant, _: LaneId, pdus: u32) {
        self.departed_pdus += pdus;
    }

    fn heard(&mut self, _: Instant, _: LaneId) {
        self.reads += 1;
    }

    fn doubts(&self, _: LaneId) -> bool {
        self.doubts
    }

    fn delivered(&mut self, _: Instant, _: LaneId, bytes: u64) {
        self.delivered_bytes = bytes;
    }

    fn lane_lost(&mut self, _: Instant, _: LaneId, _: LaneLoss) {}

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _: Instant) {}
}

/// Both ends of a connection, each with an endpoint.
struct End {
    connection: framing::Connection<Box<dyn Wire + Send>>,
    endpoint: Collector,
    buffers: BufferTable,
    scratch: Scratch,
    clock: Clock,
}

impl End {
    fn new(stream: TcpStream, digests: bool) -> Self {
        Self::worked_by(Threads::Shared, stream, digests)
    }

    fn worked_by(threads: Threads, stream: TcpStream, digests: bool) -> Self {
        let parameters = ConnectionParameters {
            header_digest: digests,
            data_digest: digests,
            send_segment_bytes_max: SEGMENT_BYTES_MAX,
            receive_segment_bytes_max: SEGMENT_BYTES_MAX,
        };
        Self {
            connection: framing::Connection::new(LANE, wire(stream, threads).unwrap(), &parameters),
            endpoint: Collector::default(),
            buffers: BufferTable::new(block::Slab::new(64 << 20)),
            scratch: Scratch::default(),
            clock: Clock::start(),
        }
    }

    async fn receive(&mut self) -> Result<(), ConnectionError> {
        poll_fn(|cx| {
            let Self { connection, endpoint, buffers, scratch, clock } = self;
            connection.poll_receive(cx, clock.now(), endpoint, buffers, scratch)
        })
        .await
    }

    async fn receive_segments(&mut self, count: usize) -> Result<(), ConnectionError> {
        while self.endpoint.digests.len() < count {
            self.receive().await?;
        }
        Ok(())
    }

    async fn send(&mut self) -> Result<(), ConnectionError> {
        poll_fn(|cx| {
            let Self { connection, endpoint, buffers, clock, .. } = self;
            connection.poll_send(cx, clock.now(), endpoint, buffers)
        })
        .await
    }

    /// Sends what the socket takes now.
    async fn send_some(&mut self) -> Poll<()> {
        poll_fn(|cx| {
            let Self { connection, endpoint, buffers, clock, .. } = self;
            Poll::Ready(connection.poll_send(cx, clock.now(), endpoint, buffers).map(Result::unwrap))
        })
        .await
    }

    /// Queues one PDU per length, the data taken from a buffer that counts upwards.
    fn queue(&mut self, lengths: &[u32]) -> Vec<u8> {
        let total: u32 = lengths.iter().sum();
        let bytes: Vec<u8> = (0..total).map(|index| (index % 251) as u8).collect();
        let allocation = self.buffers.allocate(total, total).unwrap();
        let whole = PayloadRef { buffer: allocation.buffer, offset_bytes: 0, bytes: total };
        self.buffers.bytes_mut(whole).unwrap().copy_from_slice(&bytes);
        let mut offset_bytes = 0;
        for &bytes in lengths {
            let payload = Payload::Buffer(PayloadRef { buffer: allocation.buffer, offset_bytes, bytes });
            self.endpoint.outgoing.push_back(Transmit { header: header(bytes), payload });
            offset_bytes += bytes;
        }
        bytes
    }

    /// Collects what arrives in one buffer of so many bytes.
    fn expect(&mut self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap();
        self.endpoint.buffer = Some(self.buffers.allocate(bytes, bytes).unwrap().buffer);
    }

    fn collected(&self) -> &[u8] {
        self.buffers.get(self.endpoint.buffer.unwrap()).unwrap()
    }
}

fn header(data_bytes: u32) -> Header {
    let mut bhs = [0; Header::BHS_BYTES];
    bhs[5..8].copy_from_slice(&data_bytes.to_be_bytes()[1..]);
    Header::new(bhs)
}

async fn socket_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
    (near.unwrap(), far.unwrap().0)
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn data_arrives_where_it_belongs_whatever_its_lengths(
        lengths in prop::collection::vec(1..200_000u32, 1..12),
        digests: bool,
        threads in prop::sample::select(&[Threads::Shared, Threads::PerLane]),
    ) {
        run(async {
            let (near, far) = socket_pair().await;
            let near = End::worked_by(threads, near, digests);
            let (mut near, mut far) = (near, End::worked_by(threads, far, digests));
            let sent = near.queue(&lengths);
            far.expect(sent.len());
            let (left, arrived) = tokio::join!(near.send(), far.receive_segments(lengths.len()));
            left.unwrap();
            arrived.unwrap();
            assert_eq!(far.collected(), sent);
            assert!(far.endpoint.digests.iter().all(|digest| *digest == Digest::Good));
            assert_eq!(near.endpoint.departed_pdus as usize, lengths.len());
        });
    }

    #[test]
    fn a_stream_cut_anywhere_makes_the_same_pdus(
        lengths in prop::collection::vec(0..600u32, 1..8),
        cuts in prop::collection::vec(1..200usize, 1..20),
        digests: bool,
    ) {
        run(async {
            let stream = stream_of(&lengths, digests).await;
            let (mut near, far) = socket_pair().await;
            let mut far = End::new(far, digests);
            let mut rest = &stream[..];
            for cut in cuts.iter().cycle() {
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                near.write_all(piece).await.unwrap();
                far.receive().await.unwrap();
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            while far.endpoint.headers.len() < lengths.len() {
                far.receive().await.unwrap();
            }
            let arrived: Vec<_> = far.endpoint.headers.iter().map(Header::data_segment_bytes).collect();
            assert_eq!(arrived, lengths);
        });
    }
}

/// The bytes that a connection makes of PDUs with data of these lengths.
async fn stream_of(lengths: &[u32], digests: bool) -> Vec<u8> {
    let (near, far) = socket_pair().await;
    let mut near = End::new(near, digests);
    for &bytes in lengths {
        let payload = if bytes == 0 { Payload::None } else { Payload::Inline(vec![0x5a; bytes as usize]) };
        near.endpoint.outgoing.push_back(Transmit { header: header(bytes), payload });
    }
    near.send().await.unwrap();
    drop(near);
    let mut far = far.into_std().unwrap();
    far.set_nonblocking(false).unwrap();
    let mut stream = Vec::new();
    far.read_to_end(&mut stream).unwrap();
    stream
}

/// Sends raw bytes to a fresh connection and receives until `segments` data segments or an error came.
async fn receive_raw(stream: &[u8], digests: bool, segments: usize) -> (End, Result<(), ConnectionError>) {
    let (near, far) = socket_pair().await;
    let mut near = near.into_std().unwrap();
    near.set_nonblocking(false).unwrap();
    near.write_all(stream).unwrap();
    drop(near);
    let mut far = End::new(far, digests);
    let result = far.receive_segments(segments).await;
    (far, result)
}

#[test]
fn a_damaged_data_segment_is_reported_as_such() {
    run(async {
        let mut stream = stream_of(&[100], true).await;
        stream[Header::BHS_BYTES + 4 + 50] ^= 1;
        let (far, result) = receive_raw(&stream, true, 1).await;
        result.unwrap();
        assert_eq!(far.endpoint.digests, [Digest::Bad]);
    });
}

#[test]
fn a_damaged_header_ends_the_connection() {
    run(async {
        let mut stream = stream_of(&[100], true).await;
        stream[20] ^= 1;
        let (_, result) = receive_raw(&stream, true, 1).await;
        assert!(matches!(result, Err(ConnectionError::Fault(Fault::HeaderDigest))));
    });
}

#[test]
fn a_segment_longer_than_was_declared_ends_the_connection() {
    run(async {
        let stream = header(SEGMENT_BYTES_MAX + 1).bhs().to_vec();
        let (_, result) = receive_raw(&stream, false, 1).await;
        let fault = Fault::Peer(PeerFault::SegmentTooLong);
        assert!(matches!(result, Err(ConnectionError::Fault(found)) if found == fault));
    });
}

#[test]
fn a_peer_that_leaves_in_the_middle_of_a_pdu_is_noticed() {
    run(async {
        let stream = stream_of(&[100], false).await;
        let (far, result) = receive_raw(&stream[..100], false, 1).await;
        assert!(matches!(result, Err(ConnectionError::Closed)));
        assert_eq!(far.connection.counters().received_bytes, 100);
    });
}

#[test]
fn a_part_of_a_segment_is_a_sign_of_life() {
    run(async {
        let (mut near, far) = socket_pair().await;
        let mut far = End::new(far, false);
        far.expect(1 << 20);
        near.write_all(header(1 << 20).bhs()).await.unwrap();
        for part in 1..=3 {
            near.write_all(&[7; 100]).await.unwrap();
            let reads = far.endpoint.reads;
            far.receive().await.unwrap();
            assert!(far.endpoint.reads > reads, "part {part}");
        }
        assert_eq!(far.endpoint.digests, []);
    });
}

#[test]
fn what_a_peer_has_not_taken_is_not_told_as_delivered() {
    run(async {
        let (near, far) = socket_pair().await;
        let (mut near, mut far) = (End::new(near, false), End::new(far, false));
        let lengths = [1 << 20; 32];
        let sent = near.queue(&lengths);
        far.expect(sent.len());
        // As much as both kernels hold.
        assert!(near.send_some().await.is_pending());
        near.endpoint.doubts = true;
        assert!(near.send_some().await.is_pending());
        assert!(near.endpoint.delivered_bytes < near.connection.counters().sent_bytes);
        let (left, arrived) = tokio::join!(near.send(), far.receive_segments(lengths.len()));
        left.unwrap();
        arrived.unwrap();
        // The last acknowledgement may still be under way.
        while near.endpoint.delivered_bytes < near.connection.counters().sent_bytes {
            near.send().await.unwrap();
            tokio::task::yield_now().await;
        }
    });
}

/// What an observer was told, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    headers: usize,
    segments: usize,
    pulled_pdus: usize,
    sent_bytes: u64,
    sent_pdus: u64,
    blocked: usize,
}

#[derive(Clone, Debug, Default)]
struct Notes(Arc<Mutex<Told>>);

impl Notes {
    fn note(&self, note: impl FnOnce(&mut Told)) {
        note(&mut self.0.lock().unwrap());
    }

    fn told(&self) -> Told {
        *self.0.lock().unwrap()
    }

    fn watch(&self, end: End) -> End {
        End { connection: end.connection.watched_by(Some(Box::new(self.clone()))), ..end }
    }
}

impl ConnectionObserver for Notes {
    fn header_received(&mut self, _: &Header) {
        self.note(|told| told.headers += 1);
    }

    fn data_received(&mut self) {
        self.note(|told| told.segments += 1);
    }

    fn pulled(&mut self, _: &Header) {
        self.note(|told| told.pulled_pdus += 1);
    }

    fn sent(&mut self, bytes: usize, pdus: u32) {
        self.note(|told| {
            told.sent_bytes += bytes as u64;
            told.sent_pdus += u64::from(pdus);
        });
    }

    fn blocked(&mut self) {
        self.note(|told| told.blocked += 1);
    }
}

#[test]
fn an_observer_is_told_what_goes_over_a_connection_and_when_its_socket_is_full() {
    run(async {
        let (near, far) = socket_pair().await;
        let (sending, receiving) = (Notes::default(), Notes::default());
        let (mut near, mut far) = (sending.watch(End::new(near, true)), receiving.watch(End::new(far, true)));
        let lengths = [1 << 20; 32];
        let sent = near.queue(&lengths);
        far.expect(sent.len());
        assert!(near.send_some().await.is_pending());
        assert_eq!(sending.told().blocked, 1);
        let (left, arrived) = tokio::join!(near.send(), far.receive_segments(lengths.len()));
        left.unwrap();
        arrived.unwrap();
        assert_eq!(far.collected(), sent, "nothing is different for it");
        let (counters, told) = (near.connection.counters(), sending.told());
        assert_eq!((told.pulled_pdus, told.sent_pdus), (lengths.len(), counters.sent_pdus));
        assert_eq!(told.sent_bytes, counters.sent_bytes);
        assert_eq!((receiving.told().headers, receiving.told().segments), (lengths.len(), lengths.len()));
    });
}
