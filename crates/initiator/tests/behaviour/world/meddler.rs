//! A relay that changes what a target answers.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

const HEADER_BYTES: usize = 48;
const OPCODE: u8 = 0x3f;
const SCSI_COMMAND: u8 = 0x01;
const SCSI_RESPONSE: u8 = 0x21;
const DATA_IN: u8 = 0x25;
const ASYNC_MESSAGE: u8 = 0x32;
const STATUS_BIT: u8 = 0x01;

/// What becomes of the answer to a command, which the target has carried out.
pub enum Meddling {
    /// It passes as it is.
    Nothing,
    /// The target never sees the command.
    Swallow,
    /// It comes late.
    Delay(Duration),
    /// It comes when the target has been sent this many commands.
    After(usize),
    /// CHECK CONDITION with this sense key, code and qualifier instead.
    Sense(u8, u8, u8),
    /// This status instead, without sense data.
    Status(u8),
    /// Parameter data goes through this.
    Patch(fn(&mut [u8])),
    /// An asynchronous message with this event code and these parameters instead.
    Message(u8, [u16; 3]),
    /// The target seems to have left this many bytes.
    Underflow(u32),
}

/// Notified when a command has come.
type Arrival = Arc<Notify>;

type Rule = Box<dyn FnMut(&[u8; 16]) -> Meddling + Send>;

/// Every command passes through the rule, in the order in which they leave.
pub struct Meddler {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    rule: Rule,
    /// Operation codes in the order in which they came.
    seen: Vec<u8>,
}

impl Meddler {
    pub async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = State { rule: Box::new(|_| Meddling::Nothing), seen: Vec::new() };
        let state = Arc::new(Mutex::new(state));
        let relayed = Arc::clone(&state);
        let arrival = Arrival::default();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (far_read, far_write) = TcpStream::connect(target).await.unwrap().into_split();
                let (near_read, near_write) = near.into_split();
                let pending = Arc::default();
                let passage = Passage { state: Arc::clone(&relayed), arrival: Arc::clone(&arrival), pending };
                tokio::spawn(requests(near_read, far_write, passage.clone()));
                tokio::spawn(answers(far_read, near_write, passage));
            }
        });
        Self { address, state }
    }

    /// From now on, this says what becomes of the answer to each command.
    pub fn meddle(&self, rule: impl FnMut(&[u8; 16]) -> Meddling + Send + 'static) {
        self.lock().rule = Box::new(rule);
    }

    /// Meddles with the next command of this operation code, once.
    pub fn once(&self, operation_code: u8, meddling: Meddling) {
        let mut meddling = Some(meddling);
        self.meddle(move |cdb| {
            if cdb[0] == operation_code {
                meddling.take().unwrap_or(Meddling::Nothing)
            } else {
                Meddling::Nothing
            }
        });
    }

    /// How many commands have come.
    pub fn commands(&self) -> usize {
        self.lock().seen.len()
    }

    /// No command is answered before this many more have come.
    pub fn gather(&self, more: usize) {
        let commands = self.commands() + more;
        self.meddle(move |_| Meddling::After(commands));
    }

    /// How many commands of this operation code have come.
    pub fn count(&self, operation_code: u8) -> usize {
        self.lock().seen.iter().filter(|seen| **seen == operation_code).count()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

/// One connection through the relay.
#[derive(Clone)]
struct Passage {
    state: Arc<Mutex<State>>,
    arrival: Arrival,
    pending: Pending,
}

impl Passage {
    /// Waits until as many commands have come.
    async fn has_seen(&self, commands: usize) {
        loop {
            let arrived = self.arrival.notified();
            if self.state.lock().unwrap().seen.len() >= commands {
                return;
            }
            arrived.await;
        }
    }
}

/// By initiator task tag.
type Pending = Arc<Mutex<HashMap<[u8; 4], Meddling>>>;

struct Pdu {
    header: [u8; HEADER_BYTES],
    /// Additional header segments and data, padded.
    rest: Vec<u8>,
}

async fn read(from: &mut OwnedReadHalf) -> Option<Pdu> {
    let mut header = [0; HEADER_BYTES];
    from.read_exact(&mut header).await.ok()?;
    let data = u32::from_be_bytes([0, header[5], header[6], header[7]]).next_multiple_of(4);
    let mut rest = vec![0; usize::from(header[4]) * 4 + data as usize];
    from.read_exact(&mut rest).await.ok()?;
    Some(Pdu { header, rest })
}

async fn write(to: &mut OwnedWriteHalf, pdu: &Pdu) -> Option<()> {
    to.write_all(&[&pdu.header[..], &pdu.rest].concat()).await.ok()
}

fn tag(pdu: &Pdu) -> [u8; 4] {
    pdu.header[16..20].try_into().unwrap()
}

async fn requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, passage: Passage) {
    let Passage { state, arrival, pending } = passage;
    while let Some(pdu) = read(&mut from).await {
        if pdu.header[0] & OPCODE == SCSI_COMMAND {
            let cdb = pdu.header[32..48].try_into().unwrap();
            let mut state = state.lock().unwrap();
            state.seen.push(pdu.header[32]);
            let meddling = (state.rule)(&cdb);
            if matches!(meddling, Meddling::Swallow) {
                continue;
            }
            pending.lock().unwrap().insert(tag(&pdu), meddling);
            drop(state);
            arrival.notify_waiters();
        }
        if write(&mut to, &pdu).await.is_none() {
            return;
        }
    }
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, passage: Passage) {
    let pending = &passage.pending;
    while let Some(mut pdu) = read(&mut from).await {
        let code = pdu.header[0] & OPCODE;
        let ends = code == SCSI_RESPONSE || code == DATA_IN && pdu.header[1] & STATUS_BIT != 0;
        let (delay, commands) = match pending.lock().unwrap().get(&tag(&pdu)) {
            Some(Meddling::Delay(delay)) if ends => (*delay, 0),
            Some(Meddling::After(commands)) if ends => (Duration::ZERO, *commands),
            _ => (Duration::ZERO, 0),
        };
        tokio::time::sleep(delay).await;
        passage.has_seen(commands).await;
        if code == SCSI_RESPONSE || code == DATA_IN {
            let mut pending = pending.lock().unwrap();
            if let Some(meddling) = pending.get(&tag(&pdu)) {
                meddling.apply(&mut pdu, ends);
            }
            if ends {
                pending.remove(&tag(&pdu));
            }
        }
        if write(&mut to, &pdu).await.is_none() {
            return;
        }
    }
}

impl Meddling {
    fn apply(&self, pdu: &mut Pdu, ends: bool) {
        const UNDERFLOW_BIT: u8 = 0x02;
        match *self {
            Self::Sense(key, code, qualifier) if ends => {
                let mut sense =
                    vec![0, 18, 0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, code, qualifier, 0, 0, 0, 0];
                pdu.become_response(0x02, std::mem::take(&mut sense));
            }
            Self::Message(event, parameters) if ends => {
                pdu.become_response(0, Vec::new());
                pdu.header[0] = ASYNC_MESSAGE;
                pdu.header[16..20].fill(0xff);
                pdu.header[36] = event;
                for (at, parameter) in parameters.into_iter().enumerate() {
                    pdu.header[38 + 2 * at..][..2].copy_from_slice(&parameter.to_be_bytes());
                }
            }
            Self::Status(status) if ends => pdu.become_response(status, Vec::new()),
            Self::Patch(patch) if pdu.header[0] & OPCODE == DATA_IN => patch(&mut pdu.rest),
            Self::Underflow(bytes) if pdu.header[0] & OPCODE == SCSI_RESPONSE => {
                pdu.header[1] |= UNDERFLOW_BIT;
                pdu.header[44..48].copy_from_slice(&bytes.to_be_bytes());
            }
            _ => {}
        }
    }
}

impl Pdu {
    /// StatSN and the command window stay what they are.
    fn become_response(&mut self, status: u8, data: Vec<u8>) {
        self.header[0] = SCSI_RESPONSE;
        self.header[1] = 0x80;
        self.header[2] = 0;
        self.header[3] = status;
        self.header[4..8].copy_from_slice(&u32::try_from(data.len()).unwrap().to_be_bytes());
        self.header[8..16].fill(0);
        self.header[20..24].fill(0);
        self.header[36..48].fill(0);
        self.rest = data;
    }
}
