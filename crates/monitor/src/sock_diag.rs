//! Asks the kernel about sockets of any process (`sock_diag(7)`).

use crate::inet_diag::{Diagnosis, Family, Message, SocketId, dump, messages, question};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use std::io;
use std::os::fd::OwnedFd;

/// The most bytes that the kernel sends at once.
const RECEIVED_BYTES_MAX: usize = 32 << 10;

/// A socket to the kernel, which answers for the network namespace in which the socket was opened.
#[derive(Debug)]
pub(crate) struct SockDiag {
    socket: OwnedFd,
    received: Vec<u8>,
    sequence: u32,
}

impl SockDiag {
    /// Opens the socket in the calling thread's namespace.
    pub fn open() -> io::Result<Self> {
        let protocol = Some(netlink::SOCK_DIAG);
        let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, protocol)?;
        Ok(Self { socket, received: vec![0; RECEIVED_BYTES_MAX], sequence: 0 })
    }

    /// The kernel's account of one socket.
    ///
    /// # Errors
    /// "Not found" if there is none with this cookie.
    pub fn ask(&mut self, id: &SocketId) -> io::Result<Diagnosis<'_>> {
        self.sequence = self.sequence.wrapping_add(1);
        send(&self.socket, &question(id, self.sequence), SendFlags::empty())?;
        // The answer is ready when the question has been sent. Messages before it answer earlier questions.
        loop {
            let (length, _) = recv(&self.socket, &mut *self.received, RecvFlags::DONTWAIT)?;
            if messages(&self.received[..length], self.sequence).next().is_some() {
                return answer(&self.received[..length], self.sequence);
            }
        }
    }

    /// Calls `found` with each connection of the namespace.
    ///
    /// # Errors
    /// Any error of the kernel; some connections may then be missing.
    pub fn connections(&mut self, family: Family, mut found: impl FnMut(SocketId)) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        send(&self.socket, &dump(family, self.sequence), SendFlags::empty())?;
        loop {
            let (length, _) = recv(&self.socket, &mut *self.received, RecvFlags::DONTWAIT)?;
            for message in messages(&self.received[..length], self.sequence) {
                match message {
                    Message::Socket(diagnosis) => found(diagnosis.id),
                    Message::Failed(error) => return Err(error.into()),
                    Message::Done => return Ok(()),
                }
            }
        }
    }
}

fn answer(received: &[u8], sequence: u32) -> io::Result<Diagnosis<'_>> {
    match messages(received, sequence).next() {
        Some(Message::Socket(diagnosis)) => Ok(diagnosis),
        Some(Message::Failed(error)) => Err(error.into()),
        Some(Message::Done) | None => Err(Errno::BADMSG.into()),
    }
}
