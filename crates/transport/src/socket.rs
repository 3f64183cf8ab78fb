//! A TCP socket as a [`Wire`].

use crate::path_sample::path_sample;
use crate::{congestion_of, send_queue, socket_options};
use framing::{InForce, PathSample, SocketOptions, SocketOptionsError, Wire};
use socket2::SockRef;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A TCP socket on tokio's event loop.
#[derive(Debug)]
pub struct Socket(TcpStream);

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        Self(stream)
    }
}

impl Socket {
    /// Returns the stream.
    #[must_use]
    pub fn into_inner(self) -> TcpStream {
        self.0
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Wire for Socket {
    fn poll_read(&mut self, cx: &mut Context<'_>, to: &mut [IoSliceMut<'_>]) -> Poll<io::Result<usize>> {
        if let [only] = to {
            // After a short read into one slice, tokio knows that no more is there, and saves a system call.
            let mut buffer = ReadBuf::new(only);
            ready!(Pin::new(&mut self.0).poll_read(cx, &mut buffer))?;
            return Poll::Ready(Ok(buffer.filled().len()));
        }
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            match self.0.try_read_vectored(to) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, from: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, from)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn unacknowledged_bytes(&self) -> io::Result<u64> {
        send_queue::unacknowledged_bytes(&self.0)
    }

    fn sample(&self) -> Option<PathSample> {
        path_sample(&self.0).ok()
    }

    fn limit_unsent(&self, bytes: u32) {
        // Without the limit the kernel keeps more, and placement decides about less.
        let _ = SockRef::from(&self.0).set_tcp_notsent_lowat(bytes);
    }

    fn apply(&self, options: &SocketOptions) -> Result<InForce, SocketOptionsError> {
        socket_options::apply(options, &self.0)?;
        Ok(InForce { congestion: congestion_of(&self.0).ok() })
    }
}
