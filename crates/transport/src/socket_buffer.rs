//! Socket buffers with a fixed length, which the kernel does not tune: SO_SNDBUF and SO_RCVBUF (socket(7)).

use framing::SocketOptionsError;
use rustix::net::sockopt;
use std::io;
use std::os::fd::AsFd;

/// One of a socket's two buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketBuffer {
    /// Holds unacknowledged data, sent or not.
    Send,
    /// Holds unread data.
    Receive,
}

/// The factor by which the kernel exceeds the requested length, for its bookkeeping.
const TAKEN: u64 = 2;

/// The kernel counts the length in an `i32`.
const BYTES_MAX: u32 = i32::MAX as u32 / 2;

impl SocketBuffer {
    /// The length that the kernel reports for a buffer requested with `bytes`.
    #[must_use]
    pub fn taken(bytes: u64) -> u64 {
        bytes.saturating_mul(TAKEN)
    }

    /// The requested length of a buffer for which the kernel reports `bytes`.
    #[must_use]
    pub fn asked(bytes: u64) -> u64 {
        bytes / TAKEN
    }

    /// The name of the option.
    #[must_use]
    pub fn option(self) -> &'static str {
        match self {
            Self::Send => "SO_SNDBUF",
            Self::Receive => "SO_RCVBUF",
        }
    }

    /// Requests `bytes`, beyond the system's limit if this process has `CAP_NET_ADMIN`, which a user namespace does not
    /// give.
    ///
    /// # Errors
    /// If the kernel grants less; the error says what would help.
    pub fn set(self, socket: &impl AsFd, bytes: u32) -> Result<(), SocketOptionsError> {
        let failed = |source| SocketOptionsError { option: self.option(), value: bytes.to_string(), source };
        if bytes > BYTES_MAX {
            let problem = format!("a buffer has at most {BYTES_MAX} bytes");
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, problem)));
        }
        let granted = self.request(socket, bytes as usize).map_err(failed)?;
        match granted < u64::from(bytes) {
            true => Err(failed(io::Error::other(self.refusal(bytes, granted)))),
            false => Ok(()),
        }
    }

    /// The granted length, in terms of a request.
    fn request(self, socket: &impl AsFd, bytes: usize) -> io::Result<u64> {
        let taken = match self {
            Self::Send => {
                sockopt::set_socket_send_buffer_size_force(socket, bytes)
                    .or_else(|_| sockopt::set_socket_send_buffer_size(socket, bytes))?;
                sockopt::socket_send_buffer_size(socket)?
            }
            Self::Receive => {
                sockopt::set_socket_recv_buffer_size_force(socket, bytes)
                    .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, bytes))?;
                sockopt::socket_recv_buffer_size(socket)?
            }
        };
        Ok(Self::asked(taken as u64))
    }

    fn refusal(self, asked: u32, granted: u64) -> String {
        let limit = match self {
            Self::Send => "net.core.wmem_max",
            Self::Receive => "net.core.rmem_max",
        };
        format!(
            "without root's rights the kernel grants {granted} bytes; \"sysctl -w {limit}={asked}\", as root, raises that \
             limit for everybody"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Whether a socket gets a buffer of `bytes`, or the reason why not.
    fn set(buffer: SocketBuffer, bytes: u32) -> Result<(), String> {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        buffer.set(&socket, bytes).map_err(|error| error.to_string())?;
        let taken = match buffer {
            SocketBuffer::Send => sockopt::socket_send_buffer_size(&socket),
            SocketBuffer::Receive => sockopt::socket_recv_buffer_size(&socket),
        };
        assert_eq!(taken.unwrap() as u64, SocketBuffer::taken(bytes.into()));
        Ok(())
    }

    #[test]
    fn a_buffer_has_the_length_that_was_asked_for() {
        for buffer in [SocketBuffer::Send, SocketBuffer::Receive] {
            assert_eq!(set(buffer, 100_000), Ok(()));
        }
    }

    #[test]
    fn a_buffer_beyond_the_systems_limit_is_had_by_those_who_may_and_the_others_are_told_what_would_help() {
        for (buffer, limit) in
            [(SocketBuffer::Send, "net.core.wmem_max"), (SocketBuffer::Receive, "net.core.rmem_max")]
        {
            let file = format!("/proc/sys/{}", limit.replace('.', "/"));
            let allowed: u32 = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
            let asked = allowed + 1;
            if let Err(refusal) = set(buffer, asked) {
                let option = buffer.option();
                let expected = format!(
                    "cannot set {option} to {asked}: without root's rights the kernel grants {allowed} bytes; "
                );
                assert!(refusal.starts_with(&expected), "{refusal}");
                assert!(refusal.contains(&format!("sysctl -w {limit}={asked}")), "{refusal}");
            }
        }
    }

    #[test]
    fn a_refusal_names_the_limit_and_the_value_that_it_must_have() {
        let refusal = SocketBuffer::Send.refusal(524_288, 212_992);
        assert_eq!(
            refusal,
            "without root's rights the kernel grants 212992 bytes; \"sysctl -w net.core.wmem_max=524288\", as root, \
             raises that limit for everybody"
        );
        assert!(SocketBuffer::Receive.refusal(1, 0).contains("net.core.rmem_max=1"));
    }

    #[test]
    fn a_buffer_that_no_kernel_has_is_refused() {
        let refusal = set(SocketBuffer::Send, BYTES_MAX + 1).unwrap_err();
        assert_eq!(refusal, "cannot set SO_SNDBUF to 1073741824: a buffer has at most 1073741823 bytes");
    }
}
