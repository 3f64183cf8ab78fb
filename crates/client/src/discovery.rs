//! Discovery: the targets that a portal leads to (RFC 7143 §4.3, appendix C).

use crate::login::{Applicant, Opened, open};
use crate::{Config, Environment, Error, LoginError, NetworkError, Portal};
use framing::{read_pdu, write_pdu};
use pdu::{
    Assembler, Cid, CmdSn, Duration, Header, Itt, LogoutReason, LogoutRequest, Lun, Opcode, StatSn,
    TextRequest, TextResponse, TextWriter, Ttt,
};
use session::discovery;
use session::parameters::{DigestPreference, LaneRole, Offer, SplitLanes};
use session::seam::{Payload, Transmit};
pub use session::target::TargetRecord;
use std::io;

/// The longest list that is read: 4096 targets with a few portals each.
const LIST_BYTES_MAX: usize = 1 << 20;

/// Unrelated PDUs that are skipped before discovery gives up the portal.
const STRAY_PDUS_MAX: usize = 64;

/// The longest wait for the answer to a logout.
const GOODBYE: Duration = Duration::from_secs(1);

/// The tag of every request: only one is outstanding at a time.
const TASK: Itt = Itt(0);

/// Asks a portal for the targets that this initiator may use, and their addresses.
///
/// # Errors
/// If the portal is unreachable, refuses the login, or breaks the protocol.
pub async fn discover(
    environment: &Environment,
    portal: &Portal,
    config: &Config,
) -> Result<Vec<TargetRecord>, Error> {
    let applicant = Applicant {
        portal: portal.clone(),
        portal_group_tag: None,
        target_name: None,
        isid: crate::isid::random(&*environment.host)?,
        cid: Cid(0),
        joining: None,
        role: LaneRole::Whole,
        cmd_sn: CmdSn(1),
        // This module reads and writes whole PDUs, so the connection must have no digests.
        offer: Offer {
            header_digest: DigestPreference::Never,
            data_digest: DigestPreference::Never,
            split: SplitLanes::None,
            ..config.offer
        },
    };
    let opened = open(environment, config, &applicant).await?;
    let exchange = environment.within(config.login_timeout, send_targets(environment, opened));
    let text = exchange
        .await
        .ok_or_else(|| NetworkError::Timeout { portal: portal.clone(), during: "discovery" })?
        .map_err(|source| NetworkError::Broken { portal: portal.clone(), during: "discovery", source })?;
    let invalid = |reason| LoginError::TargetList { portal: portal.clone(), reason };
    Ok(discovery::parse(&text).map_err(invalid)?)
}

/// Sends SendTargets, collects the parts of the answer, and logs out.
async fn send_targets(environment: &Environment, mut opened: Opened) -> io::Result<Vec<u8>> {
    let mut request = TextWriter::new();
    request.push("SendTargets", "All");
    let mut request = request.into_bytes();
    let mut assembler = Assembler::new(LIST_BYTES_MAX);
    let mut text = Vec::new();
    let (mut cmd_sn, mut ttt) = (opened.established.cmd_sn, Ttt::NONE);
    let mut exp_stat_sn = opened.established.stat_sn;
    loop {
        let header = TextRequest {
            immediate: false,
            final_: true,
            continued: false,
            lun: Lun(0),
            itt: TASK,
            ttt,
            cmd_sn,
            exp_stat_sn,
            data_segment_bytes: u32::try_from(request.len()).map_err(io::Error::other)?,
        }
        .emit();
        let payload =
            if request.is_empty() { Payload::None } else { Payload::Inline(std::mem::take(&mut request)) };
        write_pdu(&mut opened.wire, &Transmit { header, payload }).await?;
        let (header, data) = next_answer(&mut opened, Opcode::TextResponse).await?;
        let response = TextResponse::parse(&header).map_err(io::Error::other)?;
        if let Some(piece) = assembler.push(&data, response.continued).map_err(io::Error::other)? {
            text.extend(piece);
        }
        (cmd_sn, ttt, exp_stat_sn) = (cmd_sn.next(), response.ttt, next_stat_sn(&response));
        if response.final_ {
            // The list has arrived, so a missing logout response does not matter.
            let _ = environment.within(GOODBYE, log_out(&mut opened, cmd_sn, exp_stat_sn)).await;
            return Ok(text);
        }
        if text.len() > LIST_BYTES_MAX {
            return Err(io::Error::other("the list of targets is too long"));
        }
    }
}

/// Closes the session in order, so that the portal does not report a loss.
async fn log_out(opened: &mut Opened, cmd_sn: CmdSn, exp_stat_sn: StatSn) -> io::Result<()> {
    let request = LogoutRequest {
        reason: LogoutReason::CloseSession,
        immediate: false,
        itt: TASK,
        cid: opened.established.cid,
        cmd_sn,
        exp_stat_sn,
    };
    write_pdu(&mut opened.wire, &Transmit { header: request.emit(), payload: Payload::None }).await?;
    next_answer(opened, Opcode::LogoutResponse).await.map(drop)
}

fn next_stat_sn(response: &TextResponse) -> StatSn {
    response.stat_sn.next()
}

/// The next PDU of the expected kind. Pings and messages are skipped, because this initiator is about to leave.
async fn next_answer(opened: &mut Opened, kind: Opcode) -> io::Result<(Header, Vec<u8>)> {
    let segment_bytes_max = opened.established.connection.receive_segment_bytes_max;
    for _ in 0..STRAY_PDUS_MAX {
        let (header, data) = read_pdu(&mut opened.wire, segment_bytes_max).await?;
        match header.opcode() {
            Ok(opcode) if opcode == kind => return Ok((header, data)),
            Ok(Opcode::Reject) => return Err(io::Error::other("the target rejects what it was asked")),
            _ => {}
        }
    }
    Err(io::Error::other("no answer among many PDUs"))
}
