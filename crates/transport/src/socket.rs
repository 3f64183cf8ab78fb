//! A TCP socket as a [`Wire`].

use crate::path_measurement::measure;
use crate::{acknowledgement, send_queue, socket_options};
use framing::{InForce, SocketOptions, SocketOptionsError, Wire};
use policy::PathMeasurement;
use socket2::SockRef;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A TCP socket on tokio's event loop.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    acknowledges_at_once: bool,
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        Self { stream, acknowledges_at_once: false }
    }
}

impl Socket {
    /// Returns the stream.
    #[must_use]
    pub fn into_inner(self) -> TcpStream {
        self.stream
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>, to: &mut [IoSliceMut<'_>]) -> Poll<io::Result<usize>> {
        if let [only] = to {
            // After a short read into one slice, tokio knows that no more is there, and saves a system call.
            let mut buffer = ReadBuf::new(only);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
            return Poll::Ready(Ok(buffer.filled().len()));
        }
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read_vectored(to) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Wire for Socket {
    fn poll_read(&mut self, cx: &mut Context<'_>, to: &mut [IoSliceMut<'_>]) -> Poll<io::Result<usize>> {
        let read = ready!(self.poll_receive(cx, to))?;
        if self.acknowledges_at_once {
            acknowledgement::send(&self.stream);
        }
        Poll::Ready(Ok(read))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, from: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, from)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn unacknowledged_bytes(&self) -> io::Result<u64> {
        send_queue::unacknowledged_bytes(&self.stream)
    }

    fn measure(&self) -> Option<PathMeasurement> {
        measure(&self.stream).ok()
    }

    fn limit_unsent(&self, bytes: u32) {
        // Without the limit the kernel keeps more, and placement decides about less.
        let _ = SockRef::from(&self.stream).set_tcp_notsent_lowat(bytes);
    }

    fn acknowledge_at_once(&mut self) {
        self.acknowledges_at_once = true;
    }

    fn apply(&self, options: &SocketOptions) -> Result<InForce, SocketOptionsError> {
        socket_options::apply(options, &self.stream)?;
        Ok(socket_options::in_force(&self.stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::net::TcpListener;

    async fn pair() -> (Socket, Socket) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
        (near.unwrap().into(), far.unwrap().0.into())
    }

    async fn pass(from: &mut Socket, to: &mut Socket) {
        poll_fn(|cx| from.poll_write(cx, &[IoSlice::new(b"word")])).await.unwrap();
        let mut bytes = [0; 4];
        assert_eq!(poll_fn(|cx| to.poll_read(cx, &mut [IoSliceMut::new(&mut bytes)])).await.unwrap(), 4);
    }

    #[tokio::test]
    async fn what_is_to_be_acknowledged_at_once_waits_for_no_answer() {
        let (mut near, mut far) = pair().await;
        // The kernel sees that answers come, and would wait for the next one before it acknowledges.
        pass(&mut near, &mut far).await;
        pass(&mut far, &mut near).await;
        far.acknowledge_at_once();
        pass(&mut near, &mut far).await;
        assert_eq!(near.unacknowledged_bytes().unwrap(), 0);
    }
}
