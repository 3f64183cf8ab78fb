//! Accepts connections, and bounds those that have not logged in.

use crate::catalog::Doorkeeper;
use crate::counters::{Counted, CountedHost, Gauges};
use crate::login_task::{self, LoginFailure};
use crate::shard::Shard;
use device::PeerHost;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use transport::Socket;

/// The pause of accepting when the process has no descriptor left: closing connections takes a moment.
const EXHAUSTED_REST: Duration = Duration::from_millis(100);

/// The connections in login, the oldest first.
#[derive(Default)]
pub(crate) struct WaitingRoom {
    guests: RefCell<VecDeque<Guest>>,
    next: Cell<u64>,
}

struct Guest {
    number: u64,
    peer: SocketAddr,
    host: PeerHost,
    login: AbortHandle,
}

/// Accepts until the shard stops.
pub(crate) async fn accept(shard: Rc<Shard>, listener: TcpListener, portal_group_tag: u16) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => welcome(&shard, stream, peer, portal_group_tag),
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::error!(%error, "cannot accept connections");
                tokio::time::sleep(EXHAUSTED_REST).await;
            }
        }
    }
}

/// Errors of a connection that was gone before it was accepted; the listener is fine (accept(2)).
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}

fn welcome(shard: &Rc<Shard>, stream: TcpStream, peer: SocketAddr, portal_group_tag: u16) {
    let gauges = &shard.gauges;
    gauges.accepted_connections.fetch_add(1, Ordering::Relaxed);
    let established = gauges.connections.load(Ordering::Relaxed);
    let waiting = shard.waiting_room.guests.borrow().len();
    if established + waiting >= shard.limits.connections {
        return shard.refused(peer, None, &"there are too many connections");
    }
    let limit = shard.limits.connections_per_address;
    let host = shard.host_of(peer.ip());
    let Some(counted_host) = CountedHost::new(gauges, host, limit) else {
        return shard.refused(peer, None, &"there are too many connections from its host");
    };
    if let Err(error) = transport::apply(&shard.socket, &stream) {
        tracing::warn!(%peer, %error, "a socket option was refused");
    }
    if waiting >= shard.limits.unauthenticated_connections {
        shard.waiting_room.make_room(shard);
    }
    let counted = Counted::new(gauges, |gauges: &Gauges| &gauges.unauthenticated_connections);
    let number = shard.waiting_room.next.get();
    shard.waiting_room.next.set(number + 1);
    let login = {
        let shard = Rc::clone(shard);
        tokio::task::spawn_local(async move {
            login(&shard, stream, peer, portal_group_tag, (counted, counted_host)).await;
            shard.waiting_room.guests.borrow_mut().retain(|guest| guest.number != number);
        })
    };
    shard.waiting_room.guests.borrow_mut().push_back(Guest {
        number,
        peer,
        host,
        login: login.abort_handle(),
    });
}

/// Logs a connection in and hands it over. The first of `counted` counts it until then, the second until its end.
async fn login(
    shard: &Shard,
    stream: TcpStream,
    peer: SocketAddr,
    portal_group_tag: u16,
    counted: (Counted, CountedHost),
) {
    let (waiting, counted_host) = counted;
    let mut socket = Socket::from(stream);
    let mut login = match login_task::begin(shard, portal_group_tag) {
        Ok(login) => login,
        Err(reason) => return shard.refused(peer, None, &reason),
    };
    let seconds = shard.limits.login_seconds;
    let doorkeeper = Doorkeeper { catalog: &shard.catalog, peer: peer.ip(), portal_group_tag };
    let negotiation = login_task::negotiate(shard, &mut login, &mut socket, &doorkeeper);
    let result = tokio::time::timeout(Duration::from_secs(seconds), negotiation).await;
    let applicant = match result.unwrap_or(Err(LoginFailure::Late(seconds))) {
        Ok(applicant) => applicant,
        // Whoever tests the port does that, and so does an initiator with connections that it has made early.
        Err(LoginFailure::Closed) if login.initiator_name().is_none() => {
            return tracing::debug!(%peer, "a connection closed before it had said who it is");
        }
        Err(reason) => return shard.refused(peer, login.initiator_name(), &reason),
    };
    drop(waiting);
    let arrival = login_task::pack(shard, login, socket, applicant, (peer, counted_host));
    let handed_over =
        arrival.and_then(|arrival| shard.hand_over(arrival).map_err(|()| LoginFailure::Stopping));
    if let Err(reason) = handed_over {
        shard.refused(peer, None, &reason);
    }
}

impl WaitingRoom {
    /// Closes the connection that has been in login longest, among those of the host with the most. A flood thus
    /// displaces only its own connections.
    fn make_room(&self, shard: &Shard) {
        let Some(guest) = self.take_from_largest_party() else { return };
        guest.login.abort();
        shard.refused(guest.peer, None, &"it had not logged in when others wanted to");
    }

    fn take_from_largest_party(&self) -> Option<Guest> {
        let mut guests = self.guests.borrow_mut();
        let mut parties = HashMap::new();
        for guest in guests.iter() {
            *parties.entry(guest.host).or_insert(0_usize) += 1;
        }
        let largest = parties.values().copied().max()?;
        let place = guests.iter().position(|guest| parties.get(&guest.host) == Some(&largest))?;
        guests.remove(place)
    }

    /// Closes all connections in login, because the server stops.
    pub(crate) fn dismiss_all(&self) {
        self.guests.borrow_mut().drain(..).for_each(|guest| guest.login.abort());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::Ipv6Prefix;

    /// Connections in login from these addresses, the oldest first.
    fn room(addresses: &[&str]) -> WaitingRoom {
        let room = WaitingRoom::default();
        for (number, address) in (0..).zip(addresses) {
            let address = address.parse().unwrap();
            let host = Ipv6Prefix::LINK.host_of(address);
            let login = tokio::spawn(std::future::pending::<()>()).abort_handle();
            room.guests.borrow_mut().push_back(Guest {
                number,
                peer: SocketAddr::new(address, 1),
                host,
                login,
            });
        }
        room
    }

    #[tokio::test]
    async fn a_flood_from_all_addresses_of_one_network_pushes_out_its_own() {
        let room = room(&["2001:db8:0:1::1", "2001:db8::1", "2001:db8::2", "2001:db8::3", "192.0.2.1"]);
        assert_eq!([(); 2].map(|()| room.take_from_largest_party().unwrap().number), [1, 2]);
    }

    #[tokio::test]
    async fn ipv4_hosts_that_come_through_ipv6_are_not_one_party() {
        let room = room(&["::ffff:192.0.2.9", "::ffff:192.0.2.1", "192.0.2.1"]);
        assert_eq!(room.take_from_largest_party().unwrap().number, 1);
    }
}
