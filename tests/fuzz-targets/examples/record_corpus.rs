//! Makes the corpus of what real programs say to each other: libiscsi's and our initiator to our target, our initiator
//! to tgt. Run by `make corpus`, seldom: what is there stays.

#![allow(clippy::unwrap_used, reason = "a program for developers, who look at where it stops")]

use ropewalk_interop::{Image, PATIENCE, Program, Recorded, Relay, Ropewalk, Tgt, Way, ropewalk};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");

/// What is kept of one stream: a fuzzer likes short inputs.
const STREAM_BYTES_MAX: usize = 4 << 10;
const BHS_BYTES: usize = 48;
const LOGIN_REQUEST: u8 = 0x03;
const LOGIN_RESPONSE: u8 = 0x23;
const SCSI_COMMAND: u8 = 0x01;
const TEXT_REQUEST: u8 = 0x04;
/// The first byte of an input, for every default.
const DEFAULTS: u8 = 0;
/// For the targets that are fed a session: error recovery level 2, with tasks that are kept.
const RECOVERY: u8 = 0x14;

/// Tests of libiscsi that together use most kinds of commands, each in few of them.
const TESTS: [&str; 12] = [
    "CompareAndWrite.InvalidDataOutSize",
    "ExtendedCopy.Simple",
    "Inquiry.EVPD",
    "ModeSense6.AllPages",
    "ProutRegister.Simple",
    "ReadCapacity16.Alloclen",
    "ReportSupportedOpcodes.Simple",
    "Reserve6.2Initiators",
    "Unmap.VPD",
    "WriteSame16.UnmapVPD",
    "iSCSITMF.AbortTaskSimpleAsync",
    "iSCSIResiduals.Write10Residuals",
];

fn main() -> io::Result<()> {
    let target = Ropewalk::serve(&["0=ram:64M", "1=ram:64M,bs=4096,ro"])?;
    let image = Image::random(1)?;
    let initiator_name = "iqn.2026-11.org.example:host";
    record(target.address(), |address| {
        let url = target.url_by(address, 0);
        run("iscsi-ls", &["-s", &format!("iscsi://{address}")])?;
        run("iscsi-inq", &["-i", initiator_name, &url])?;
        for test in TESTS {
            run("iscsi-test-cu", &["--dataloss", "--test", &format!("ALL.{test}"), &url])?;
        }
        Ok(())
    })?;
    record(target.address(), |address| {
        let url = target.url_by(address, 0);
        copy(&[image.name(), &url, "--connections", "2", "--overwrite"])?;
        ropewalk(["info", &url]).map(drop)
    })?;
    let device = Image::empty(4)?;
    let tgt = Tgt::serve(1, &[device.path()])?;
    record(tgt.address(), |address| {
        let url = tgt.url(1).replace(&tgt.address().to_string(), &address.to_string());
        copy(&[image.name(), &url, "--overwrite"])?;
        copy(&[&url, &image.beside("back.raw")])
    })
}

/// A copy in small requests.
fn copy(arguments: &[&str]) -> io::Result<()> {
    let options =
        ["--request-size", "4K", "--requests", "4", "--initiator-name", "iqn.2026-11.org.example:host"];
    ropewalk(["copy"].into_iter().chain(arguments.iter().copied()).chain(options)).map(drop)
}

fn run(program: &str, arguments: &[&str]) -> io::Result<()> {
    Program::run(Command::new(program).args(arguments), PATIENCE).map(drop)
}

/// Lets programs talk through a relay, and keeps what they said.
fn record(target: SocketAddr, talk: impl FnOnce(SocketAddr) -> io::Result<()>) -> io::Result<()> {
    let relay = Relay::recording(target)?;
    talk(relay.address())?;
    let recorded = relay.recorded();
    let mut streams: BTreeMap<(usize, bool), Vec<u8>> = BTreeMap::new();
    for piece in &recorded {
        let stream = streams.entry((piece.connection, piece.way == Way::ToTarget)).or_default();
        stream.extend(&piece.bytes);
    }
    for ((_, to_target), stream) in &streams {
        if *to_target { keep_requests(stream)? } else { keep_responses(stream)? }
    }
    keep_interleaved(&recorded, &streams)
}

/// The PDUs of a stream. Programs that were asked for no digest send none.
fn pdus(mut stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let header = stream.get(..BHS_BYTES)?;
        let bytes = BHS_BYTES + usize::from(header[4]) * 4 + data_bytes(header).next_multiple_of(4);
        let (pdu, rest) = stream.split_at_checked(bytes)?;
        stream = rest;
        Some(pdu)
    })
}

fn opcode(pdu: &[u8]) -> u8 {
    pdu[0] & 0x3f
}

fn data(pdu: &[u8]) -> &[u8] {
    &pdu[BHS_BYTES + usize::from(pdu[4]) * 4..][..data_bytes(pdu)]
}

fn data_bytes(header: &[u8]) -> usize {
    u32::from_be_bytes([0, header[5], header[6], header[7]]) as usize
}

/// Whole PDUs, as many as fit.
fn bounded<'a>(pdus: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut bytes = vec![DEFAULTS];
    for pdu in pdus {
        if bytes.len() + pdu.len() > STREAM_BYTES_MAX {
            break;
        }
        bytes.extend(pdu);
    }
    bytes
}

fn keep_requests(stream: &[u8]) -> io::Result<()> {
    keep("pdu_stream_before_login", &bounded(pdus(stream).take_while(|pdu| opcode(pdu) == LOGIN_REQUEST)))?;
    let session: Vec<&[u8]> = pdus(stream).skip_while(|pdu| opcode(pdu) == LOGIN_REQUEST).collect();
    // Its beginning, and its end with the logout.
    keep_session("pdu_stream_after_login", bounded(session.iter().copied()))?;
    keep_session(
        "pdu_stream_after_login",
        bounded(session[session.len().saturating_sub(6)..].iter().copied()),
    )?;
    for pdu in pdus(stream).filter(|pdu| [LOGIN_REQUEST, TEXT_REQUEST].contains(&opcode(pdu))) {
        keep("text_keys", &[&[u8::MAX], data(pdu)].concat())?;
    }
    let mut seen = BTreeSet::new();
    for pdu in session.into_iter().filter(|pdu| opcode(pdu) == SCSI_COMMAND) {
        let cdb = &pdu[32..BHS_BYTES];
        // One of each operation code and service action.
        if seen.insert((cdb[0], cdb[1])) {
            let list = &data(pdu)[..data(pdu).len().min(512)];
            keep("cdb_with_data", &[&[DEFAULTS, 16], cdb, list].concat())?;
        }
    }
    Ok(())
}

/// Task tags are replaced by small numbers, which the fuzz target takes for those of its own tasks.
fn keep_responses(stream: &[u8]) -> io::Result<()> {
    let mut tags: Vec<[u8; 4]> = Vec::new();
    let mut renamed = Vec::new();
    for pdu in pdus(stream).skip_while(|pdu| opcode(pdu) == LOGIN_RESPONSE) {
        let mut pdu = pdu.to_vec();
        let tag = *pdu[16..].first_chunk().unwrap();
        if tag != [u8::MAX; 4] {
            let known = tags.iter().position(|known| *known == tag);
            let number = known.unwrap_or(tags.len());
            if known.is_none() {
                tags.push(tag);
            }
            pdu[16..20].copy_from_slice(&u32::try_from(number % 8).unwrap().to_be_bytes());
        }
        renamed.push(pdu);
    }
    keep_session("pdu_stream_into_initiator", bounded(renamed.iter().map(Vec::as_slice)))?;
    let texts = pdus(stream).take_while(|pdu| opcode(pdu) == LOGIN_RESPONSE);
    texts.into_iter().try_for_each(|pdu| keep("text_keys", &[&[u8::MAX], data(pdu)].concat()))
}

/// The first two connections that logged in and went on, in the order in which their pieces passed.
fn keep_interleaved(recorded: &[Recorded], streams: &BTreeMap<(usize, bool), Vec<u8>>) -> io::Result<()> {
    let login_bytes = |stream: &[u8]| {
        pdus(stream).take_while(|pdu| opcode(pdu) == LOGIN_REQUEST).map(<[u8]>::len).sum::<usize>()
    };
    let mut skip: BTreeMap<usize, usize> = BTreeMap::new();
    for ((connection, _), stream) in streams.iter().filter(|((_, to_target), _)| *to_target) {
        skip.insert(*connection, login_bytes(stream));
    }
    let mut input = vec![DEFAULTS];
    let mut names: Vec<usize> = Vec::new();
    for piece in recorded.iter().filter(|piece| piece.way == Way::ToTarget) {
        let skipped = skip.get(&piece.connection).copied().unwrap_or(0).min(piece.bytes.len());
        skip.entry(piece.connection).and_modify(|left| *left -= skipped);
        let bytes = &piece.bytes[skipped..];
        if !names.contains(&piece.connection) {
            names.push(piece.connection);
        }
        let Some(name) = names.iter().position(|name| *name == piece.connection).filter(|name| *name < 2)
        else {
            continue;
        };
        if bytes.is_empty() || input.len() + bytes.len() > STREAM_BYTES_MAX * 2 {
            continue;
        }
        input.push(u8::try_from(name).unwrap());
        input.extend(u16::try_from(bytes.len()).unwrap().to_be_bytes());
        input.extend(bytes);
    }
    keep_session("two_connections_interleaved", input)
}

/// At both ends of the scale of error recovery.
fn keep_session(fuzz_target: &str, mut input: Vec<u8>) -> io::Result<()> {
    keep(fuzz_target, &input)?;
    input[0] = RECOVERY;
    keep(fuzz_target, &input)
}

/// Under a name made of the contents, so that what is known is kept once.
fn keep(fuzz_target: &str, input: &[u8]) -> io::Result<()> {
    if input.len() <= 1 {
        return Ok(());
    }
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let folder = Path::new(CORPUS).join(fuzz_target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(format!("{:016x}", hasher.finish())), input)
}
