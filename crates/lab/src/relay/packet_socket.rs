//! A socket for the frames of one interface (packet(7)), many for each system call.

use super::buffers::FRAME_BYTES_MAX;
use crate::frame::{Frame, OFFLOAD_BYTES, Offload};
use crate::interface::index_of;
use rustix::time::Timespec;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use transport::SocketBuffer;

/// Frames of one call. More would keep the relay from reading the clock for too long: TCP at the far end receives each
/// within the call.
pub(crate) const FRAMES_PER_CALL: usize = 16;

/// Frames that wait in the kernel until the relay looks: 250 ms at 2 Gbit/s.
const RECEIVE_BUFFER_BYTES: u32 = 64 << 20;
/// Frames on their way through the far end's host.
const SEND_BUFFER_BYTES: u32 = 16 << 20;

/// The length of one message about the time of arrival.
const CONTROL_WORDS: usize = 8;

/// A socket that receives all frames that reach an interface, and none of those that leave through it.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    socket: Socket,
    /// Frames that the kernel refused for want of room, counted so far.
    dropped: u64,
    /// Whether the buffers are as large as wanted.
    pub has_large_buffers: bool,
}

/// A frame in a [`Batch`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    pub offload: Offload,
    pub bytes: &'a [u8],
    /// The wall-clock time at which the interface had it; `None` if the kernel does not report it.
    pub at: Option<Timespec>,
    /// It was longer than any frame should be: `bytes` is a part.
    pub is_cut_off: bool,
}

/// Memory into which frames are received.
pub(crate) struct Batch {
    offloads: [[u8; OFFLOAD_BYTES]; FRAMES_PER_CALL],
    frames: Box<[u8]>,
    lengths: [usize; FRAMES_PER_CALL],
    times: [Option<Timespec>; FRAMES_PER_CALL],
    are_cut_off: [bool; FRAMES_PER_CALL],
    count: usize,
}

impl PacketSocket {
    /// Opens the socket of an interface in the calling thread's namespace.
    pub fn open(interface: &str) -> io::Result<Self> {
        // Without a protocol it receives nothing yet.
        let socket = Socket::new(
            Domain::PACKET,
            Type::from(libc::SOCK_RAW).nonblocking().cloexec(),
            Some(Protocol::from(0)),
        )?;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        let has_large_buffers = set_large_buffers(&socket);
        socket.bind(&all_frames_of(index_of(interface)?)?)?;
        Ok(Self { socket, dropped: 0, has_large_buffers })
    }

    /// Receives the frames that are there, up to [`FRAMES_PER_CALL`].
    ///
    /// # Errors
    /// The kernel's error for a frame, which is lost. No frame is not an error.
    pub fn receive(&self, batch: &mut Batch) -> io::Result<()> {
        batch.receive(self.as_fd())
    }

    /// Sends the first of `frames`, up to [`FRAMES_PER_CALL`], and returns their number.
    ///
    /// # Errors
    /// The kernel's error for the first; after "would block", send it again.
    pub fn send<'a>(&self, frames: impl Iterator<Item = &'a Frame>) -> io::Result<usize> {
        let mut offloads = [[0; OFFLOAD_BYTES]; FRAMES_PER_CALL];
        // SAFETY: both are plain integers and pointers, for which all-zero bytes are a value.
        let (mut parts, mut messages): (
            [[libc::iovec; 2]; FRAMES_PER_CALL],
            [libc::mmsghdr; FRAMES_PER_CALL],
        ) = unsafe { zeroed() };
        let mut count = 0;
        let places = offloads.iter_mut().zip(&mut parts).zip(&mut messages);
        for (frame, ((offload, parts), message)) in frames.zip(places) {
            *offload = frame.offload.emit();
            let bytes = frame.bytes();
            parts[0] = libc::iovec { iov_base: offload.as_mut_ptr().cast(), iov_len: OFFLOAD_BYTES };
            parts[1] = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
            message.msg_hdr.msg_iov = parts.as_mut_ptr();
            message.msg_hdr.msg_iovlen = parts.len();
            count += 1;
        }
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: the first `count` messages point to memory that outlives the call, with its length; it is only read.
        let sent = unsafe { libc::sendmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), count, flags) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// The number of frames dropped since the beginning because they waited here for too long.
    pub fn dropped(&mut self) -> io::Result<u64> {
        // SAFETY: plain integers, for which all-zero bytes are a value.
        let mut statistics: libc::tpacket_stats = unsafe { zeroed() };
        let mut bytes = length(size_of::<libc::tpacket_stats>())?;
        // SAFETY: the kernel writes at most `bytes` bytes into `statistics`, which has that size.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut bytes,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        // The kernel restarts its count after each query.
        self.dropped += u64::from(statistics.tp_drops);
        Ok(self.dropped)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Batch {
    pub fn new() -> Self {
        Self {
            offloads: [[0; OFFLOAD_BYTES]; FRAMES_PER_CALL],
            frames: vec![0; FRAMES_PER_CALL * FRAME_BYTES_MAX].into_boxed_slice(),
            lengths: [0; FRAMES_PER_CALL],
            times: [None; FRAMES_PER_CALL],
            are_cut_off: [false; FRAMES_PER_CALL],
            count: 0,
        }
    }

    /// Whether there may be more.
    pub fn is_full(&self) -> bool {
        self.count == FRAMES_PER_CALL
    }

    /// The received frames, in order.
    pub fn frames(&self) -> impl Iterator<Item = Received<'_>> {
        let frames = self.frames.chunks_exact(FRAME_BYTES_MAX).take(self.count);
        frames.enumerate().map(|(index, frame)| Received {
            offload: Offload::parse(&self.offloads[index]),
            bytes: &frame[..self.lengths[index]],
            at: self.times[index],
            is_cut_off: self.are_cut_off[index],
        })
    }

    fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.count = 0;
        let mut control = [[0_u64; CONTROL_WORDS]; FRAMES_PER_CALL];
        // SAFETY: both are plain integers and pointers, for which all-zero bytes are a value.
        let (mut parts, mut messages): (
            [[libc::iovec; 2]; FRAMES_PER_CALL],
            [libc::mmsghdr; FRAMES_PER_CALL],
        ) = unsafe { zeroed() };
        let memory = self.offloads.iter_mut().zip(self.frames.chunks_exact_mut(FRAME_BYTES_MAX));
        for ((parts, message), ((offload, frame), control)) in
            parts.iter_mut().zip(&mut messages).zip(memory.zip(&mut control))
        {
            parts[0] = libc::iovec { iov_base: offload.as_mut_ptr().cast(), iov_len: OFFLOAD_BYTES };
            parts[1] = libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: FRAME_BYTES_MAX };
            message.msg_hdr.msg_iov = parts.as_mut_ptr();
            message.msg_hdr.msg_iovlen = parts.len();
            message.msg_hdr.msg_control = control.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = size_of_val(control);
        }
        // SAFETY: all messages point to memory that outlives the call, with its length.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                length(FRAMES_PER_CALL)?,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        let Ok(count) = usize::try_from(received) else {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(()) } else { Err(error) };
        };
        for (index, message) in messages.iter().take(count).enumerate() {
            let bytes = (message.msg_len as usize).saturating_sub(OFFLOAD_BYTES);
            self.lengths[index] = bytes.min(FRAME_BYTES_MAX);
            self.are_cut_off[index] = message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            self.times[index] = arrival_time(&message.msg_hdr);
        }
        self.count = count;
        Ok(())
    }
}

/// The kernel's timestamp in a message that it has filled in.
fn arrival_time(message: &libc::msghdr) -> Option<Timespec> {
    // SAFETY: the kernel has written whole control messages, and their length, into the memory that `message` names.
    let (control, data) = unsafe {
        let control = libc::CMSG_FIRSTHDR(message).as_ref()?;
        (control, libc::CMSG_DATA(control))
    };
    let is_time = control.cmsg_level == libc::SOL_SOCKET && control.cmsg_type == libc::SCM_TIMESTAMPNS;
    if !is_time {
        return None;
    }
    // SAFETY: a message of this type holds a `timespec`, perhaps not aligned.
    let time = unsafe { data.cast::<libc::timespec>().read_unaligned() };
    Some(Timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_nsec })
}

/// Whether the socket got them; if not, it has the longest that this process may have.
fn set_large_buffers(socket: &Socket) -> bool {
    let receive = SocketBuffer::Receive.set(socket, RECEIVE_BUFFER_BYTES);
    let send = SocketBuffer::Send.set(socket, SEND_BUFFER_BYTES);
    receive.and(send).is_ok()
}

fn set_option(socket: &Socket, level: i32, option: i32, value: i32) -> io::Result<()> {
    let bytes = length(size_of_val(&value))?;
    // SAFETY: the kernel reads `bytes` bytes of `value`.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), bytes) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn all_frames_of(interface: u32) -> io::Result<SockAddr> {
    let protocol = u16::try_from(libc::ETH_P_ALL).map_err(io::Error::other)?.to_be();
    let index = i32::try_from(interface).map_err(io::Error::other)?;
    // SAFETY: the storage is larger than a `sockaddr_ll`, aligned for every address, and zero where nothing is written.
    let (_, address) = unsafe {
        SockAddr::try_init(|storage, bytes| {
            let address = storage.cast::<libc::sockaddr_ll>();
            (*address).sll_family = u16::try_from(libc::AF_PACKET).map_err(io::Error::other)?;
            (*address).sll_protocol = protocol;
            (*address).sll_ifindex = index;
            *bytes = length(size_of::<libc::sockaddr_ll>())?;
            Ok(())
        })
    }?;
    Ok(address)
}

/// Converts a length or count to the kernel's type.
fn length(length: usize) -> io::Result<u32> {
    u32::try_from(length).map_err(io::Error::other)
}
