//! One client: its negotiation, then its requests, many at once, each answered when it ends.

use super::negotiation::{
    Agreed, CLIENT_FLAGS_BYTES, Negotiation, Next, OPTION_BYTES_MAX, OPTION_HEADER_BYTES, OptionHeader,
};
use super::reply::{Done, Reply};
use super::request::{Command, REQUEST_BYTES, Request};
use super::stopped;
use crate::Disk;
use crate::start::start;
use block::Payload;
use rustix::io::Errno;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

/// The most requests of one client that are under way. The longest queue of Linux's own client has 128.
const REQUESTS_MAX: usize = 256;

/// The memory for them.
const MEMORY_BYTES: usize = 64 << 20;

/// How long a client may take before it uses the disk.
const NEGOTIATION: Duration = Duration::from_secs(30);

/// The most options of one client; real ones need about five.
const OPTIONS_MAX: usize = 100;

/// How long a client may take no reply once the server has been stopped.
const GOODBYE: Duration = Duration::from_secs(10);

/// What is read at once: two thousand requests without data.
const READ_BYTES: usize = 64 << 10;

/// The most replies that leave by one system call.
const REPLIES_AT_ONCE: usize = 64;

/// Serves one client until it says goodbye, or until `stop` becomes true. What it has asked for by then is done and
/// answered, unless it takes no answers.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] if the client breaks the protocol so that nothing can follow; the connection's own.
pub async fn serve(
    reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    disk: &Disk,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(READ_BYTES, reader);
    let agreed = tokio::select! {
        agreed = timeout(NEGOTIATION, negotiate(&mut reader, &mut writer, disk)) => agreed??,
        () = stopped(&mut stop) => None,
    };
    let Some(agreed) = agreed else { return Ok(()) };
    let (replies, waiting) = mpsc::unbounded_channel();
    let disk = disk.with_memory(MEMORY_BYTES);
    let client = Client { disk, agreed, replies, slots: Arc::new(Semaphore::new(REQUESTS_MAX)) };
    let sending = send(&mut writer, waiting, stop.clone());
    tokio::pin!(sending);
    tokio::select! {
        received = client.receive(&mut reader, stop) => received?,
        sent = &mut sending => return sent,
    }
    sending.await
}

/// `None`: the client left.
async fn negotiate(
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    disk: &Disk,
) -> io::Result<Option<Agreed>> {
    writer.write_all(&Negotiation::greeting()).await?;
    let mut flags = [0; CLIENT_FLAGS_BYTES];
    reader.read_exact(&mut flags).await?;
    let mut negotiation = Negotiation::begin(disk, flags).ok_or_else(|| broken("unknown client flags"))?;
    for _ in 0..OPTIONS_MAX {
        let mut header = [0; OPTION_HEADER_BYTES];
        reader.read_exact(&mut header).await?;
        let header = OptionHeader::parse(&header).ok_or_else(|| broken("no option where one belongs"))?;
        if header.bytes > OPTION_BYTES_MAX {
            return Err(broken("an option of too many bytes"));
        }
        let mut data = vec![0; header.bytes as usize];
        reader.read_exact(&mut data).await?;
        let mut reply = Vec::new();
        let next = negotiation.handle(header.option, &data, &mut reply);
        writer.write_all(&reply).await?;
        match next {
            Next::Option => {}
            Next::Transmission(agreed) => return Ok(Some(agreed)),
            Next::Close => return Ok(None),
        }
    }
    Err(broken("too many options"))
}

/// A reply, and the place among the client's requests that it keeps until it is sent.
type Waiting = (Reply, OwnedSemaphorePermit);

/// A client in the transmission phase.
struct Client {
    disk: Disk,
    agreed: Agreed,
    replies: UnboundedSender<Waiting>,
    slots: Arc<Semaphore>,
}

impl Client {
    /// Takes requests until the client says goodbye, its stream ends, or `stop` becomes true. The last reply follows the
    /// end of the last request.
    async fn receive(
        self,
        reader: &mut BufReader<impl AsyncRead + Unpin>,
        mut stop: watch::Receiver<bool>,
    ) -> io::Result<()> {
        let runtime = Handle::current();
        loop {
            let asked = tokio::select! {
                asked = self.next(reader) => asked?,
                () = stopped(&mut stop) => None,
            };
            let Some((request, payload, slot)) = asked else { return Ok(()) };
            let command = request.command();
            let (disk, agreed, replies) = (self.disk.clone(), self.agreed, self.replies.clone());
            start(&runtime, async move {
                let result = match command {
                    Ok(command) => execute(&disk, agreed, &request, command, payload).await,
                    Err(error) => Err(error),
                };
                // Nobody waits for the reply if the connection is gone.
                let _ = replies.send((Reply::new(agreed, request.cookie, result), slot));
            });
        }
    }

    /// The next request, its data, and its place among the client's requests; `None` if the client leaves.
    async fn next(
        &self,
        reader: &mut BufReader<impl AsyncRead + Unpin>,
    ) -> io::Result<Option<(Request, Option<Payload>, OwnedSemaphorePermit)>> {
        let slot = Arc::clone(&self.slots).acquire_owned().await.map_err(io::Error::other)?;
        let mut header = [0; REQUEST_BYTES];
        match reader.read_exact(&mut header).await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        };
        let request = Request::parse(&header).ok_or_else(|| broken("no request where one belongs"))?;
        if request.command() == Ok(Command::Disconnect) {
            return Ok(None);
        }
        let payload = self.payload(&request, reader).await?;
        Ok(Some((request, payload, slot)))
    }

    /// The data that follows a request.
    async fn payload(
        &self,
        request: &Request,
        reader: &mut BufReader<impl AsyncRead + Unpin>,
    ) -> io::Result<Option<Payload>> {
        let bytes = request.payload_bytes() as usize;
        if bytes == 0 {
            return Ok(None);
        }
        // Nobody would read so much to refuse it.
        let buffer = self.disk.buffer(bytes).await;
        let mut buffer = buffer.map_err(|_| broken("a write of more than 32 MiB"))?;
        if reader.buffer().is_empty() {
            // Clients send a request and its data one after the other. By the time that the event loop has looked once,
            // the data is usually there, and a thread that went to sleep for it would be woken at once.
            tokio::task::yield_now().await;
        }
        reader.read_exact(&mut buffer).await?;
        Ok(Some(buffer.share()))
    }
}

/// Does what a request asks for.
async fn execute(
    disk: &Disk,
    agreed: Agreed,
    request: &Request,
    command: Command,
    payload: Option<Payload>,
) -> Result<Done, Errno> {
    let Request { offset, bytes, .. } = *request;
    let length = u64::from(bytes);
    if command != Command::Flush {
        inside(disk, offset, length, command)?;
    }
    match command {
        Command::Read => {
            let payload = disk.read(offset, bytes).await?.share();
            return Ok(Done::Data { offset, payload });
        }
        Command::Write { durable } => {
            let payload = payload.ok_or(Errno::INVAL)?;
            disk.write(offset, payload, durable).await?;
        }
        Command::Flush => disk.flush().await?,
        Command::Trim { durable } => disk.discard(offset, length, durable).await?,
        Command::WriteZeroes { may_unmap, durable } => disk.zero(offset, length, may_unmap, durable).await?,
        Command::BlockStatus { one } if agreed.allocation => {
            let mut extents = disk.extents(offset, length).await?;
            if one {
                extents.truncate(1);
            }
            return Ok(Done::Extents(extents));
        }
        Command::BlockStatus { .. } => return Err(Errno::INVAL),
        // A hint. There is no cache on this side of the path that it could fill.
        Command::Cache | Command::Disconnect => {}
    }
    Ok(Done::Nothing)
}

/// "Error values": what lies beyond the disk's end is no space for a write, and an invalid argument otherwise.
fn inside(disk: &Disk, offset: u64, bytes: u64, command: Command) -> Result<(), Errno> {
    let beyond = if matches!(command, Command::Write { .. } | Command::WriteZeroes { .. }) {
        Errno::NOSPC
    } else {
        Errno::INVAL
    };
    match offset.checked_add(bytes) {
        _ if bytes == 0 => Err(Errno::INVAL),
        Some(end) if end <= disk.properties().bytes() => Ok(()),
        _ => Err(beyond),
    }
}

/// Sends replies as they come, until no request can have another, or until a client has taken none for a while after the
/// server was stopped.
async fn send(
    writer: &mut (impl AsyncWrite + Unpin),
    mut waiting: UnboundedReceiver<Waiting>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut batch = Vec::with_capacity(REPLIES_AT_ONCE);
    while waiting.recv_many(&mut batch, REPLIES_AT_ONCE).await > 0 {
        let parts =
            batch.iter().flat_map(|(reply, _)| [&reply.head[..], reply.data.as_deref().unwrap_or(&[])]);
        let mut parts: Vec<_> = parts.filter(|part| !part.is_empty()).map(IoSlice::new).collect();
        let mut rest = &mut parts[..];
        while !rest.is_empty() {
            let written = tokio::select! {
                biased;
                written = writer.write_vectored(rest) => written?,
                () = given_up(&mut stop) => return Err(io::ErrorKind::TimedOut.into()),
            };
            match written {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => IoSlice::advance_slices(&mut rest, written),
            }
        }
        batch.clear();
    }
    Ok(())
}

async fn given_up(stop: &mut watch::Receiver<bool>) {
    stopped(stop).await;
    tokio::time::sleep(GOODBYE).await;
}

fn broken(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
