//! TCP as a client's network.

use client::{Dial, Dialed, NetworkError, Observe, Portal};
use framing::SocketOptions;
use futures_util::future::BoxFuture;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use transport::Observer;

/// TCP, with the system's name resolution.
pub(crate) struct TcpNetwork {
    observer: Option<Arc<dyn Observer>>,
}

impl TcpNetwork {
    pub(crate) fn new(observer: Option<Arc<dyn Observer>>) -> Self {
        Self { observer }
    }

    /// Makes a connection's observer. The observer has a descriptor of its own, because the connection owns the socket.
    fn observe(&self, stream: &TcpStream) -> io::Result<Option<Observe>> {
        let Some(observer) = self.observer.clone() else { return Ok(None) };
        let socket = stream.as_fd().try_clone_to_owned()?;
        Ok(Some(Box::new(move |established| observer.connected(socket.as_fd(), established))))
    }
}

impl Dial for TcpNetwork {
    fn dial<'a>(
        &'a self,
        to: &'a Portal,
        options: &'a SocketOptions,
    ) -> BoxFuture<'a, Result<Dialed, NetworkError>> {
        Box::pin(async move {
            let stream = connect(to, options).await?;
            let failed = |source| NetworkError::Connect { portal: to.clone(), source };
            let peer = stream.peer_addr().map_err(failed)?;
            let observe = self.observe(&stream).map_err(failed)?;
            let wire = transport::wire(stream, options.threads).map_err(failed)?;
            Ok(Dialed { wire, peer, observe })
        })
    }
}

/// Tries all addresses of a portal in turn.
async fn connect(portal: &Portal, options: &SocketOptions) -> Result<TcpStream, NetworkError> {
    let failed = |source| NetworkError::Connect { portal: portal.clone(), source };
    let addresses = lookup_host((portal.host.as_str(), portal.port)).await.map_err(failed)?;
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "it has no address");
    for address in addresses {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let connected = match socket {
            Ok(socket) => {
                transport::apply(options, &socket)
                    .map_err(|source| NetworkError::SocketOptions { portal: portal.clone(), source })?;
                socket.connect(address).await
            }
            // A machine without IPv6 still tries a name's other addresses.
            Err(error) => Err(error),
        };
        match connected {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failed(failure))
}
