//! Connects to a target's portals before the connections may log in.
//!
//! Only the login of a session's first connection tells how the others have to log in, but their TCP handshakes need not
//! wait for it: that saves a round trip. Where the network loses a SYN, it also saves the first connection a second,
//! because a login takes whichever connection to its portal is made first.
//!
//! Linux's target serves one login at a time, in the order in which it accepted the connections, and waits for a silent
//! one. Logins therefore take early connections in the order in which they were made, and those that nobody has taken
//! after [`LIFE`] are closed: if another order has reached the target, the login behind them then goes on.

use crate::{Dial, Dialed, Host, NetworkError, Portal};
use event_listener::Event;
use framing::SocketOptions;
use futures_util::future::BoxFuture;
use pdu::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How long early connections are of use: some round trips of a long path, and shorter than any target waits for a login.
pub(crate) const LIFE: Duration = Duration::from_secs(1);

/// A network in which some connections are already being made.
pub(crate) struct EarlyDials {
    network: Arc<dyn Dial>,
    portals: Mutex<Vec<EarlyPortal>>,
    changed: Event,
}

/// The early connections to one portal.
struct EarlyPortal {
    portal: Portal,
    /// Those that are being made.
    pending: usize,
    /// Those that wait to be used.
    connected: VecDeque<Dialed>,
    /// The logins that wait for one.
    waiting: usize,
}

impl EarlyDials {
    pub(crate) fn new(network: Arc<dyn Dial>) -> Arc<Self> {
        Arc::new(Self { network, portals: Mutex::default(), changed: Event::new() })
    }

    /// Begins to connect to each of these portals, once for each time that it is named.
    pub(crate) fn begin<'a>(
        self: &Arc<Self>,
        host: &dyn Host,
        portals: impl Iterator<Item = &'a Portal>,
        options: &SocketOptions,
    ) {
        for portal in portals {
            self.expect(portal);
            let (dials, portal, options) = (Arc::clone(self), portal.clone(), options.clone());
            host.spawn(Box::pin(async move {
                let dialed = dials.network.dial(&portal, &options).await;
                // If it failed, so will the next attempt, whose login reports it.
                dials.ended(&portal, dialed.ok());
            }));
        }
    }

    /// Closes the connections that nobody took. From now on, connections are made when they are asked for.
    pub(crate) fn end(&self) {
        self.lock().clear();
        self.changed.notify(usize::MAX);
    }

    fn expect(&self, portal: &Portal) {
        let mut portals = self.lock();
        match portals.iter_mut().find(|early| early.portal == *portal) {
            Some(early) => early.pending += 1,
            None => {
                let portal = portal.clone();
                portals.push(EarlyPortal { portal, pending: 1, connected: VecDeque::new(), waiting: 0 });
            }
        }
    }

    fn ended(&self, portal: &Portal, dialed: Option<Dialed>) {
        self.at(portal, |early| {
            early.pending -= 1;
            early.connected.extend(dialed);
        });
        self.changed.notify(usize::MAX);
    }

    /// The oldest connection to this portal; `None` if fewer connections are pending than logins wait.
    async fn take(&self, portal: &Portal) -> Option<Dialed> {
        let _waiting = Waiting::begin(self, portal)?;
        loop {
            let changed = self.changed.listen();
            let (connected, is_hopeful) =
                self.at(portal, |early| (early.connected.pop_front(), early.pending >= early.waiting))?;
            if connected.is_some() || !is_hopeful {
                return connected;
            }
            changed.await;
        }
    }

    fn at<R>(&self, portal: &Portal, act: impl FnOnce(&mut EarlyPortal) -> R) -> Option<R> {
        self.lock().iter_mut().find(|early| early.portal == *portal).map(act)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<EarlyPortal>> {
        self.portals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dial for EarlyDials {
    fn dial<'a>(
        &'a self,
        to: &'a Portal,
        options: &'a SocketOptions,
    ) -> BoxFuture<'a, Result<Dialed, NetworkError>> {
        Box::pin(async move {
            match self.take(to).await {
                Some(dialed) => Ok(dialed),
                None => self.network.dial(to, options).await,
            }
        })
    }
}

/// A login that waits for an early connection.
struct Waiting<'a> {
    dials: &'a EarlyDials,
    portal: &'a Portal,
}

impl<'a> Waiting<'a> {
    fn begin(dials: &'a EarlyDials, portal: &'a Portal) -> Option<Self> {
        dials.at(portal, |early| early.waiting += 1)?;
        Some(Self { dials, portal })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.dials.at(self.portal, |early| early.waiting -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use framing::{InForce, SocketOptionsError, Wire};
    use futures_util::FutureExt;
    use policy::PathMeasurement;
    use std::io::{self, IoSlice, IoSliceMut};
    use std::task::{Context, Poll};

    /// A stream that is only told apart by its peer.
    struct Silent;

    impl Wire for Silent {
        fn poll_read(&mut self, _: &mut Context<'_>, _: &mut [IoSliceMut<'_>]) -> Poll<io::Result<usize>> {
            Poll::Pending
        }

        fn poll_write(&mut self, _: &mut Context<'_>, _: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
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

        fn apply(&self, _: &SocketOptions) -> Result<InForce, SocketOptionsError> {
            Ok(InForce::default())
        }
    }

    /// A network in which every connection that is made anew has port 1.
    struct Network;

    impl Dial for Network {
        fn dial<'a>(
            &'a self,
            _: &'a Portal,
            _: &'a SocketOptions,
        ) -> BoxFuture<'a, Result<Dialed, NetworkError>> {
            Box::pin(async { Ok(dialed(1)) })
        }
    }

    fn dialed(port: u16) -> Dialed {
        Dialed { wire: Box::new(Silent), peer: ([127, 0, 0, 1], port).into(), observe: None }
    }

    /// This many connections are being made.
    fn early(connections: usize) -> (Arc<EarlyDials>, Portal) {
        let (dials, portal) = (EarlyDials::new(Arc::new(Network)), "host".parse::<Portal>().unwrap());
        (0..connections).for_each(|_| dials.expect(&portal));
        (dials, portal)
    }

    /// The port that a dial has got, if it is over.
    fn port(dial: &mut BoxFuture<'_, Result<Dialed, NetworkError>>) -> Option<u16> {
        dial.now_or_never().map(|ended| ended.unwrap().peer.port())
    }

    #[test]
    fn a_login_takes_the_connection_that_is_made_first() {
        let (dials, portal) = early(2);
        let options = SocketOptions::default();
        let mut dial = dials.dial(&portal, &options);
        assert_eq!(port(&mut dial), None);
        dials.ended(&portal, Some(dialed(7)));
        assert_eq!(port(&mut dial), Some(7));
    }

    #[test]
    fn logins_take_the_connections_in_the_order_in_which_they_were_made() {
        let (dials, portal) = early(2);
        [7, 8].into_iter().for_each(|port| dials.ended(&portal, Some(dialed(port))));
        let options = SocketOptions::default();
        let ports = [(), ()].map(|()| port(&mut dials.dial(&portal, &options)));
        assert_eq!(ports, [Some(7), Some(8)]);
    }

    #[test]
    fn whoever_comes_after_all_early_connections_are_taken_makes_one() {
        let (dials, portal) = early(1);
        let options = SocketOptions::default();
        let (mut first, mut second) = (dials.dial(&portal, &options), dials.dial(&portal, &options));
        assert_eq!((port(&mut first), port(&mut second)), (None, Some(1)));
        dials.ended(&portal, Some(dialed(7)));
        assert_eq!(port(&mut first), Some(7));
    }

    #[test]
    fn a_login_whose_early_connection_fails_makes_one() {
        let (dials, portal) = early(1);
        let options = SocketOptions::default();
        let mut dial = dials.dial(&portal, &options);
        assert_eq!(port(&mut dial), None);
        dials.ended(&portal, None);
        assert_eq!(port(&mut dial), Some(1));
    }

    #[test]
    fn connections_that_nobody_took_are_of_no_use_later() {
        let (dials, portal) = early(2);
        dials.ended(&portal, Some(dialed(7)));
        dials.end();
        dials.ended(&portal, Some(dialed(8)));
        assert_eq!(port(&mut dials.dial(&portal, &SocketOptions::default())), Some(1));
    }
}
