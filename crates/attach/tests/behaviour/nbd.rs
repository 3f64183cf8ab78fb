use crate::scripted::{BYTES, Scripted};
use block::{Backend, BlockErrorKind, Ram};
use ropewalk_attach::Disk;
use ropewalk_attach::nbd::{Server, serve};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

const GO: u32 = 7;
const STRUCTURED_REPLY: u32 = 8;
const SET_META_CONTEXT: u32 = 10;
const ACK: u32 = 1;
const INFO: u32 = 3;
const META_CONTEXT: u32 = 4;

const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
const WRITE_ZEROES: u16 = 6;
const BLOCK_STATUS: u16 = 7;
const FUA: u16 = 1;

const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;

/// A client that speaks in bytes, and the server's task.
struct Client {
    stream: DuplexStream,
    server: JoinHandle<io::Result<()>>,
    stop: watch::Sender<bool>,
}

/// A chunk of a structured reply.
#[derive(Debug, PartialEq, Eq)]
struct Chunk {
    kind: u16,
    cookie: u64,
    payload: Vec<u8>,
}

impl Client {
    /// Has read the greeting and answered with these flags.
    async fn greet(backend: Arc<dyn Backend>, flags: u32) -> Self {
        let (stream, theirs) = tokio::io::duplex(1 << 20);
        let (stop, stopping) = watch::channel(false);
        let server = tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(theirs);
            serve(reader, writer, &Disk::new(backend, false), stopping).await
        });
        let mut client = Self { stream, server, stop };
        assert_eq!(client.bytes(18).await, [&b"NBDMAGICIHAVEOPT"[..], &[0, 3]].concat());
        client.stream.write_all(&flags.to_be_bytes()).await.unwrap();
        client
    }

    /// Is in the transmission phase, with structured replies and the allocation of blocks.
    async fn go(backend: Arc<dyn Backend>) -> Self {
        let mut client = Self::greet(backend, 3).await;
        client.option(STRUCTURED_REPLY, &[]).await;
        assert_eq!(client.answer(STRUCTURED_REPLY).await, (ACK, vec![]));
        let context =
            [&0_u32.to_be_bytes()[..], &1_u32.to_be_bytes(), &15_u32.to_be_bytes(), b"base:allocation"];
        client.option(SET_META_CONTEXT, &context.concat()).await;
        assert_eq!(client.answer(SET_META_CONTEXT).await.0, META_CONTEXT);
        assert_eq!(client.answer(SET_META_CONTEXT).await, (ACK, vec![]));
        client.option(GO, &[0; 6]).await;
        while client.answer(GO).await.0 != ACK {}
        client
    }

    async fn bytes(&mut self, number: usize) -> Vec<u8> {
        let mut bytes = vec![0; number];
        self.stream.read_exact(&mut bytes).await.unwrap();
        bytes
    }

    async fn u16(&mut self) -> u16 {
        self.stream.read_u16().await.unwrap()
    }

    async fn u32(&mut self) -> u32 {
        self.stream.read_u32().await.unwrap()
    }

    async fn u64(&mut self) -> u64 {
        self.stream.read_u64().await.unwrap()
    }

    async fn option(&mut self, option: u32, data: &[u8]) {
        let length = u32::try_from(data.len()).unwrap();
        let message = [b"IHAVEOPT", &option.to_be_bytes()[..], &length.to_be_bytes(), data].concat();
        self.stream.write_all(&message).await.unwrap();
    }

    /// The type and the data of one answer to an option.
    async fn answer(&mut self, option: u32) -> (u32, Vec<u8>) {
        assert_eq!(self.u64().await, 0x0003_e889_0455_65a9);
        assert_eq!(self.u32().await, option);
        let kind = self.u32().await;
        let length = self.u32().await;
        (kind, self.bytes(length as usize).await)
    }

    async fn request(&mut self, kind: u16, flags: u16, cookie: u64, offset: u64, bytes: u32) {
        let words = [&0x2560_9513_u32.to_be_bytes()[..], &flags.to_be_bytes(), &kind.to_be_bytes()].concat();
        let places = [&cookie.to_be_bytes()[..], &offset.to_be_bytes(), &bytes.to_be_bytes()].concat();
        self.stream.write_all(&[words, places].concat()).await.unwrap();
    }

    async fn write(&mut self, flags: u16, cookie: u64, offset: u64, data: &[u8]) {
        self.request(WRITE, flags, cookie, offset, u32::try_from(data.len()).unwrap()).await;
        self.stream.write_all(data).await.unwrap();
    }

    async fn chunk(&mut self) -> Chunk {
        assert_eq!(self.u32().await, 0x668e_33ef);
        assert_eq!(self.u16().await, 1, "every reply is one chunk");
        let kind = self.u16().await;
        let cookie = self.u64().await;
        let length = self.u32().await;
        Chunk { kind, cookie, payload: self.bytes(length as usize).await }
    }

    /// The end of the server's side.
    async fn end(mut self) -> io::Result<()> {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, []);
        self.server.await.unwrap()
    }
}

fn ram() -> Arc<dyn Backend> {
    Arc::new(Ram::new(512, BYTES / 512).unwrap())
}

fn done(cookie: u64) -> Chunk {
    Chunk { kind: 0, cookie, payload: vec![] }
}

fn failed(cookie: u64, error: u32) -> Chunk {
    Chunk { kind: 1 << 15 | 1, cookie, payload: [&error.to_be_bytes()[..], &[0, 0]].concat() }
}

/// Lets the server take what was sent.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_client_learns_size_abilities_and_block_sizes() {
    let mut client = Client::greet(ram(), 3).await;
    client.option(GO, &[0; 6]).await;
    let (kind, export) = client.answer(GO).await;
    let abilities = 1_u16 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 8 | 1 << 10;
    assert_eq!((kind, &export[..2], &export[2..10]), (INFO, &[0, 0][..], &BYTES.to_be_bytes()[..]));
    assert_eq!(export[10..], abilities.to_be_bytes());
    let (kind, sizes) = client.answer(GO).await;
    let expected = [512, 4096, 32 << 20_u32].map(u32::to_be_bytes).concat();
    assert_eq!((kind, &sizes[..2], &sizes[2..]), (INFO, &[0, 3][..], &expected[..]));
    assert_eq!(client.answer(GO).await, (ACK, vec![]));
}

#[tokio::test]
async fn an_old_client_names_the_export_and_gets_zeroes_unless_it_declines_them() {
    for (flags, padding) in [(1, 124), (3, 0)] {
        let mut client = Client::greet(ram(), flags).await;
        client.option(1, &[]).await;
        assert_eq!(client.u64().await, BYTES);
        client.u16().await;
        assert_eq!(client.bytes(padding).await, vec![0; padding]);
        client.request(READ, 0, 5, 0, 512).await;
        assert_eq!(client.u32().await, 0x6744_6698);
        assert_eq!((client.u32().await, client.u64().await), (0, 5));
        assert_eq!(client.bytes(512).await, [0; 512]);
    }
}

#[tokio::test]
async fn an_unknown_option_and_an_unknown_export_are_refused_and_the_next_option_is_heard() {
    let mut client = Client::greet(ram(), 3).await;
    client.option(77, b"what").await;
    assert_eq!(client.answer(77).await.0, 1 << 31 | 1);
    client.option(GO, &[&3_u32.to_be_bytes()[..], b"big", &[0, 0]].concat()).await;
    assert_eq!(client.answer(GO).await.0, 1 << 31 | 6);
    client.option(GO, &[0, 0]).await;
    assert_eq!(client.answer(GO).await.0, 1 << 31 | 3);
    client.option(2, &[]).await;
    assert_eq!(client.answer(2).await, (ACK, vec![]));
    client.end().await.unwrap();
}

#[tokio::test]
async fn what_was_written_is_read_and_lies_where_it_belongs() {
    let mut client = Client::go(ram()).await;
    client.write(0, 1, 4096, &[7; 1024]).await;
    assert_eq!(client.chunk().await, done(1));
    client.request(READ, 0, 2, 3584, 1024).await;
    let data = [&3584_u64.to_be_bytes()[..], &[0; 512], &[7; 512]].concat();
    assert_eq!(client.chunk().await, Chunk { kind: 1, cookie: 2, payload: data });
    client.request(BLOCK_STATUS, 0, 3, 0, 1 << 20).await;
    let status = client.chunk().await;
    assert_eq!((status.kind, &status.payload[..4]), (5, &1_u32.to_be_bytes()[..]));
    let lengths = status.payload[4..].chunks(8).map(|part| u32::from_be_bytes(part[..4].try_into().unwrap()));
    assert_eq!(lengths.sum::<u32>(), 1 << 20);
    client.request(WRITE_ZEROES, 0, 4, 4096, 1024).await;
    assert_eq!(client.chunk().await, done(4));
    client.request(READ, 0, 5, 4096, 1024).await;
    assert_eq!(client.chunk().await.payload[8..], [0; 1024]);
}

#[tokio::test]
async fn requests_run_side_by_side_and_each_is_answered_when_it_ends() {
    let backend = Arc::new(Scripted::default());
    let mut client = Client::go(Arc::clone(&backend) as Arc<dyn Backend>).await;
    client.request(READ, 0, 1, 0, 512).await;
    client.write(FUA, 2, 512, &[1; 512]).await;
    client.request(FLUSH, 0, 3, 0, 0).await;
    settle().await;
    assert_eq!(backend.waiting(), ["read", "write", "flush"]);
    backend.succeed(9);
    assert_eq!(client.chunk().await.payload[8..], [9; 512]);
    assert!(backend.oldest_is_forced());
    backend.fail(BlockErrorKind::NoSpace);
    assert_eq!(client.chunk().await, failed(2, ENOSPC));
    backend.succeed(0);
    assert_eq!(client.chunk().await, done(3));
}

#[tokio::test]
async fn a_request_that_makes_no_sense_is_refused_and_its_data_are_skipped() {
    let mut client = Client::go(ram()).await;
    client.request(READ, 0, 1, BYTES - 512, 1024).await;
    assert_eq!(client.chunk().await, failed(1, EINVAL));
    client.write(0, 2, BYTES, &[1; 512]).await;
    assert_eq!(client.chunk().await, failed(2, ENOSPC));
    client.request(READ, 0, 3, 100, 512).await;
    assert_eq!(client.chunk().await, failed(3, EINVAL));
    client.write(1 << 9, 4, 0, &[1; 512]).await;
    assert_eq!(client.chunk().await, failed(4, EINVAL));
    client.request(99, 0, 5, 0, 0).await;
    assert_eq!(client.chunk().await, failed(5, EINVAL));
    client.request(READ, 0, 6, u64::MAX, 512).await;
    assert_eq!(client.chunk().await, failed(6, EINVAL));
    client.request(FLUSH, 0, 7, 0, 0).await;
    assert_eq!(client.chunk().await, done(7));
}

#[tokio::test]
async fn a_client_that_says_goodbye_gets_its_last_replies_first() {
    let backend = Arc::new(Scripted::default());
    let mut client = Client::go(Arc::clone(&backend) as Arc<dyn Backend>).await;
    client.write(0, 1, 0, &[1; 512]).await;
    client.request(DISCONNECT, 0, 0, 0, 0).await;
    settle().await;
    backend.succeed(0);
    assert_eq!(client.chunk().await, done(1));
    client.end().await.unwrap();
}

#[tokio::test]
async fn a_server_that_stops_answers_what_it_was_asked_for() {
    let backend = Arc::new(Scripted::default());
    let mut client = Client::go(Arc::clone(&backend) as Arc<dyn Backend>).await;
    client.write(0, 1, 0, &[1; 512]).await;
    settle().await;
    client.stop.send(true).unwrap();
    settle().await;
    backend.succeed(0);
    assert_eq!(client.chunk().await, done(1));
    client.end().await.unwrap();
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_the_rest_of_a_write() {
    let mut client = Client::go(ram()).await;
    client.request(WRITE, 0, 1, 0, 1024).await;
    client.stream.write_all(&[1; 512]).await.unwrap();
    settle().await;
    client.stop.send(true).unwrap();
    client.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_does_not_wait_for_a_client_that_takes_no_replies() {
    let mut client = Client::go(ram()).await;
    for cookie in 0..4 {
        client.request(READ, 0, cookie, 0, 1 << 20).await;
    }
    settle().await;
    client.stop.send(true).unwrap();
    let Client { stream, server, .. } = client;
    assert_eq!(server.await.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
    drop(stream);
}

#[test]
fn what_is_no_socket_is_not_replaced_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.img");
    std::fs::write(&path, "an image").unwrap();
    let refused = Server::bind(&path).err().unwrap();
    assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
    assert_eq!(std::fs::read(&path).unwrap(), b"an image");
}

#[tokio::test]
async fn a_client_that_loses_its_place_in_the_stream_is_sent_away() {
    let mut client = Client::go(ram()).await;
    client.stream.write_all(&[0xaa; 28]).await.unwrap();
    assert_eq!(client.end().await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    let client = Client::greet(ram(), 0x80).await;
    assert_eq!(client.end().await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    let mut client = Client::greet(ram(), 3).await;
    let endless = [b"IHAVEOPT", &GO.to_be_bytes()[..], &u32::MAX.to_be_bytes()].concat();
    client.stream.write_all(&endless).await.unwrap();
    assert_eq!(client.end().await.unwrap_err().kind(), io::ErrorKind::InvalidData);
}
