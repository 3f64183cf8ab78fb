//! Whole PDUs, one at a time, while a connection is in login (RFC 7143 §6.3).
//!
//! Digests take effect only in full feature phase, and login text is short. These functions read exactly one PDU and
//! leave every later byte in the stream for the [`crate::Connection`].

use crate::Wire;
use pdu::Header;
use session::seam::{Payload, Transmit};
use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};

/// Reads one PDU whose data segment has at most `data_bytes_max` bytes.
///
/// # Errors
/// The stream's errors; [`io::ErrorKind::InvalidData`] if the peer announces a longer data segment, or an AHS, which
/// login PDUs never have.
pub async fn read_pdu(wire: &mut impl Wire, data_bytes_max: u32) -> io::Result<(Header, Vec<u8>)> {
    let mut bhs = [0; Header::BHS_BYTES];
    read_exact(wire, &mut bhs).await?;
    let header = Header::new(bhs);
    let bytes = header.data_segment_bytes();
    if bytes > data_bytes_max || header.ahs_bytes() != 0 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("not a login: {bytes} bytes of data and {} of AHS announced", header.ahs_bytes()),
        ));
    }
    let mut data = vec![0; (bytes + pdu::padding(bytes)) as usize];
    read_exact(wire, &mut data).await?;
    data.truncate(bytes as usize);
    Ok((header, data))
}

/// Writes one PDU.
///
/// # Errors
/// The stream's errors; [`io::ErrorKind::InvalidInput`] if the payload is a named buffer, which login PDUs never have.
pub async fn write_pdu(wire: &mut impl Wire, transmit: &Transmit) -> io::Result<()> {
    let data: &[u8] = match &transmit.payload {
        Payload::None => &[],
        Payload::Inline(data) => data,
        Payload::Buffer(_) => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let mut bytes = Vec::with_capacity(Header::BHS_BYTES + data.len() + 3);
    bytes.extend_from_slice(transmit.header.bhs());
    bytes.extend_from_slice(transmit.header.ahs());
    bytes.extend_from_slice(data);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    write_all(wire, &bytes).await
}

async fn read_exact(wire: &mut impl Wire, mut to: &mut [u8]) -> io::Result<()> {
    while !to.is_empty() {
        let bytes = poll_fn(|cx| wire.poll_read(cx, &mut [IoSliceMut::new(to)])).await?;
        if bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        to = &mut to[bytes..];
    }
    Ok(())
}

async fn write_all(wire: &mut impl Wire, mut from: &[u8]) -> io::Result<()> {
    while !from.is_empty() {
        let bytes = poll_fn(|cx| wire.poll_write(cx, &[IoSlice::new(from)])).await?;
        if bytes == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        from = &from[bytes..];
    }
    Ok(())
}
