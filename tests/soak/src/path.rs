//! The way from the clients to the target: a TCP relay that breaks connections.

use anyhow::{Context as _, Result};
use ropewalk_interop::dice::Dice;
use socket2::SockRef;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::{LocalSet, spawn_local};

/// The relay, on a thread of its own.
pub struct Path {
    address: SocketAddr,
    broken: Arc<AtomicU64>,
    rate: watch::Sender<Option<f64>>,
    thread: Option<JoinHandle<()>>,
}

/// How a connection breaks. What is in the relay at that moment is lost.
#[derive(Clone, Copy, Debug)]
enum Break {
    /// Both ends are told that the other has closed it (FIN).
    Closed,
    /// Both ends are told that there is no such connection (RST).
    Reset,
    /// The initiator is told so; the target hears nothing any more, as if a router had forgotten the connection.
    Forgotten,
}

/// What passes in one piece.
const PIECE_BYTES: usize = 16 << 10;

/// How long a forgotten connection is kept from the target's knowledge at most.
const FORGOTTEN: Duration = Duration::from_secs(120);

impl Path {
    /// Relays from a port of loopback to `target`.
    ///
    /// # Errors
    /// No port, or no thread.
    pub fn to(target: SocketAddr, seed: u64) -> Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (rate, orders) = watch::channel(Some(0.0));
        let broken = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&broken);
        let thread = std::thread::Builder::new().name("path".to_owned()).spawn(move || {
            let relay = Rc::new(Relay { target, live: RefCell::default(), next: Cell::default(), counter });
            LocalSet::new().block_on(&runtime, async move {
                let accepting = spawn_local(Rc::clone(&relay).accept(listener));
                relay.break_some(orders, Dice::new(seed)).await;
                accepting.abort();
            });
        });
        let thread = Some(thread.context("cannot start a thread")?);
        Ok(Self { address, broken, rate, thread })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Breaks so many connections per second from now on.
    pub fn break_per_second(&self, rate: f64) {
        self.rate.send_replace(Some(rate));
    }

    /// Connections broken so far.
    pub fn broken(&self) -> u64 {
        self.broken.load(Ordering::Relaxed)
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.rate.send_replace(None);
        let ended = self.thread.take().map(JoinHandle::join);
        debug_assert!(!matches!(ended, Some(Err(_))), "the relay ended by a panic");
    }
}

struct Relay {
    target: SocketAddr,
    /// By numbers that are never used twice.
    live: RefCell<BTreeMap<u64, oneshot::Sender<Break>>>,
    next: Cell<u64>,
    counter: Arc<AtomicU64>,
}

impl Relay {
    async fn accept(self: Rc<Self>, listener: std::net::TcpListener) {
        let Ok(listener) = TcpListener::from_std(listener) else { return };
        loop {
            // Out of descriptors is the only reason not to, and told by the initiators, who are refused.
            let Ok((initiator, _)) = listener.accept().await else { continue };
            let relay = Rc::clone(&self);
            spawn_local(async move { relay.carry(initiator).await });
        }
    }

    /// Carries what two ends say to each other until one is silent, or the connection is to break.
    async fn carry(&self, mut initiator: TcpStream) {
        let Ok(mut target) = TcpStream::connect(self.target).await else { return };
        // Without it the load is slower, and nothing else changes.
        let _ = (initiator.set_nodelay(true), target.set_nodelay(true));
        let (order, ordered) = oneshot::channel();
        let number = self.next.replace(self.next.get() + 1);
        self.live.borrow_mut().insert(number, order);
        let how = tokio::select! {
            _ = copy_bidirectional_with_sizes(&mut initiator, &mut target, PIECE_BYTES, PIECE_BYTES) => None,
            how = ordered => how.ok(),
        };
        match how {
            Some(how) => break_off(how, initiator, target).await,
            None => drop(self.live.borrow_mut().remove(&number)),
        }
    }

    /// Breaks connections at the rate that is ordered, until `None` is.
    async fn break_some(&self, mut orders: watch::Receiver<Option<f64>>, mut dice: Dice) {
        loop {
            let Some(rate) = *orders.borrow_and_update() else { return };
            let pause = if rate > 0.0 { Duration::from_secs_f64(1.0 / rate) } else { Duration::MAX };
            let changed = tokio::time::timeout(pause, orders.changed()).await;
            if changed.is_err() {
                self.break_one(&mut dice);
            }
        }
    }

    fn break_one(&self, dice: &mut Dice) {
        let mut live = self.live.borrow_mut();
        let place = dice.below(live.len());
        let Some(number) = live.keys().nth(place).copied() else { return };
        let how = [Break::Closed, Break::Reset, Break::Forgotten][dice.below(3)];
        if live.remove(&number).is_some_and(|order| order.send(how).is_ok()) {
            self.counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn break_off(how: Break, initiator: TcpStream, target: TcpStream) {
    match how {
        Break::Closed => {}
        Break::Reset => [&initiator, &target].into_iter().for_each(reset_on_close),
        Break::Forgotten => {
            reset_on_close(&initiator);
            drop(initiator);
            forget(target).await;
        }
    }
}

/// Makes the close to come one that resets.
fn reset_on_close(stream: &TcpStream) {
    // Otherwise it closes as others do, which is a break too.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// Takes what the target says to nobody, until it closes the connection itself.
async fn forget(mut target: TcpStream) {
    let _ = tokio::time::timeout(FORGOTTEN, tokio::io::copy(&mut target, &mut tokio::io::sink())).await;
}
