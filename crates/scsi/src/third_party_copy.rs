//! VPD page 8Fh, third-party copy (SPC-4): the copy commands and their limits.

use crate::Disk;
use crate::extended_copy::{
    BLOCK_TO_BLOCK, DESCRIPTOR_LIST_BYTES_MAX, IDENTIFICATION_DESCRIPTOR, SEGMENTS_MAX, TARGETS_MAX,
};
use crate::operation_code::{COMMANDS, EXTENDED_COPY, RECEIVE_COPY_RESULTS};
use crate::receive_copy_results::segment_bytes_max;

const SUPPORTED_COMMANDS: u16 = 0x0001;
const PARAMETER_DATA: u16 = 0x0004;
const SUPPORTED_DESCRIPTORS: u16 = 0x0008;
const GENERAL_COPY_OPERATIONS: u16 = 0x8001;

/// The page's contents, after its header.
pub fn page(disk: &Disk) -> Vec<u8> {
    let mut page = Vec::new();
    push_descriptor(&mut page, SUPPORTED_COMMANDS, counted(&supported_commands()));
    push_descriptor(&mut page, PARAMETER_DATA, parameter_data());
    push_descriptor(&mut page, SUPPORTED_DESCRIPTORS, counted(&[BLOCK_TO_BLOCK, IDENTIFICATION_DESCRIPTOR]));
    push_descriptor(&mut page, GENERAL_COPY_OPERATIONS, general_copy_operations(disk));
    page
}

/// A third-party copy descriptor: type, length, and contents padded to a multiple of four bytes with their length.
fn push_descriptor(page: &mut Vec<u8>, kind: u16, mut contents: Vec<u8>) {
    contents.resize(contents.len().next_multiple_of(4), 0);
    page.extend(kind.to_be_bytes());
    page.extend(u16::try_from(contents.len()).unwrap_or(u16::MAX).to_be_bytes());
    page.extend(contents);
}

/// A list after its length in one byte.
fn counted(list: &[u8]) -> Vec<u8> {
    let length = u8::try_from(list.len()).unwrap_or(u8::MAX);
    [&[length], list].concat()
}

/// Each operation code with its service actions.
fn supported_commands() -> Vec<u8> {
    let mut list = Vec::new();
    for code in [EXTENDED_COPY, RECEIVE_COPY_RESULTS] {
        let actions: Vec<u8> = COMMANDS
            .iter()
            .filter(|command| command.operation_code == code)
            .filter_map(|command| command.service_action)
            .collect();
        list.push(code);
        list.extend(counted(&actions));
    }
    list
}

/// No INLINE DATA.
fn parameter_data() -> Vec<u8> {
    let count = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    let mut contents = vec![0; 28];
    contents[4..6].copy_from_slice(&count(TARGETS_MAX).to_be_bytes());
    contents[6..8].copy_from_slice(&count(SEGMENTS_MAX).to_be_bytes());
    contents[8..12].copy_from_slice(&u32::from(count(DESCRIPTOR_LIST_BYTES_MAX)).to_be_bytes());
    contents
}

/// One copy at a time is promised, in whole blocks.
fn general_copy_operations(disk: &Disk) -> Vec<u8> {
    let mut contents = vec![0; 32];
    contents[..4].copy_from_slice(&1u32.to_be_bytes());
    contents[4..8].copy_from_slice(&1u32.to_be_bytes());
    contents[8..12].copy_from_slice(&segment_bytes_max(disk).to_be_bytes());
    contents[12] = u8::try_from(disk.block.bytes().trailing_zeros()).unwrap_or(0);
    contents
}
