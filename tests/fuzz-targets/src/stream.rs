//! PDUs in a stream of bytes, for targets that need to look at them before the code under test does.

use pdu::Header;

/// One PDU, as far as it can be told where it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    /// BHS, AHS, data segment and padding; shorter if the stream ends within.
    pub(crate) bytes: &'a [u8],
    header_bytes: usize,
    data_bytes: usize,
}

/// The next PDU and what follows it. `None` at the end, or at less than a header.
pub(crate) fn split(stream: &[u8]) -> Option<(Piece<'_>, &[u8])> {
    let header = Header::new(*stream.first_chunk()?);
    let header_bytes = Header::BHS_BYTES + header.ahs_bytes();
    let data_bytes = header.data_segment_bytes();
    let whole = header_bytes + data_bytes as usize + pdu::padding(data_bytes) as usize;
    let (bytes, rest) = stream.split_at(whole.min(stream.len()));
    Some((Piece { bytes, header_bytes, data_bytes: data_bytes as usize }, rest))
}

impl Piece<'_> {
    /// BHS and data segment, if all of it is there.
    pub(crate) fn whole(&self) -> Option<(Header, &[u8])> {
        let data = self.bytes.get(self.header_bytes..self.header_bytes + self.data_bytes)?;
        Some((Header::new(*self.bytes.first_chunk()?), data))
    }
}

/// A field of four bytes in the header at the start of `bytes`; 0 if they end before it.
pub(crate) fn field(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|field| field.first_chunk().copied()).map_or(0, u32::from_be_bytes)
}

/// Where CmdSN stands in a request, and StatSN in a response.
pub(crate) const NUMBER_AT: usize = 24;
/// Where ExpCmdSN stands in a response.
pub(crate) const EXP_CMD_SN_AT: usize = 28;
/// Where MaxCmdSN stands in a response.
pub(crate) const MAX_CMD_SN_AT: usize = 32;
/// Where the initiator task tag stands.
pub(crate) const ITT_AT: usize = 16;
