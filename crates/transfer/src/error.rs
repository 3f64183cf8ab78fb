//! Why a copy was refused or failed.

use crate::Identity;
use block::BlockError;

/// A copy that did not succeed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages and the names say what the fields are")]
pub enum Error {
    /// The copy would be wrong or dangerous. Nothing was written.
    #[error("refused: {0}")]
    Refused(#[from] Refusal),
    /// The source, or the destination when it was read back, could not be read.
    #[error("cannot read {bytes} bytes at {offset} of {name}")]
    Read { name: String, offset: u64, bytes: u64, source: BlockError },
    /// The input stream could not be read.
    #[error("cannot read the input after {offset} bytes")]
    Input {
        /// Bytes that were read before.
        offset: u64,
        source: BlockError,
    },
    /// The input stream was empty.
    #[error("the input is empty: the program that should write to it failed, or was not started")]
    NoInput,
    /// The input stream is longer than expected.
    #[error("the input has more than the expected {expected_bytes} bytes")]
    InputTooLong { expected_bytes: u64 },
    /// The input stream ended too early.
    #[error("the input ended after {found_bytes} bytes, but {expected_bytes} were expected")]
    InputTooShort { expected_bytes: u64, found_bytes: u64 },
    /// The destination could not be written or flushed.
    #[error("cannot {what} {name}")]
    Write {
        name: String,
        /// The failed operation and its range.
        what: String,
        source: BlockError,
    },
    /// A file or device could not be opened as a disk.
    #[error("cannot open {name}")]
    Open { name: String, source: BlockError },
    /// The file does not exist, or this user has no access to it.
    #[error("cannot open {name}")]
    File { name: String, source: std::io::Error },
    /// The copy is complete, but its file could not be renamed.
    #[error("cannot give {partial} the name {name}")]
    Rename { partial: String, name: String, source: std::io::Error },
    /// The copy is complete and has its name, but the directory could not be synced: the name may be lost with power.
    #[error("cannot make the name {name} durable")]
    FolderSync { name: String, source: std::io::Error },
    /// A stream turned out to be longer than the destination.
    #[error("the input has more than the {capacity_bytes} bytes that {name} can hold")]
    TooLong { name: String, capacity_bytes: u64 },
    /// Several flushes in a row reported lost writes.
    #[error(
        "{name} lost acknowledged writes {times} times in a row: its connection or the target itself keeps failing; \
         see the target's log"
    )]
    NeverDurable { name: String, times: u32 },
    /// A file was written to while it was read: the copy may mix old and new data.
    #[error("{name} changed while it was copied: stop the program that writes to it, or copy a snapshot")]
    SourceChanged { name: String },
    /// Source and destination differ.
    #[error(
        "the copy differs from its source in the {bytes} bytes from {offset} on: either the source changed during \
         the copy, or something between here and the destination's medium is broken"
    )]
    Mismatch {
        /// First byte of the range that was compared.
        offset: u64,
        /// The length of that range.
        bytes: u64,
    },
    /// No memory for buffers.
    #[error("no memory for buffers of {bytes} bytes: ask for fewer or smaller requests")]
    Memory { bytes: usize },
    /// The user interrupted the copy.
    #[error("interrupted")]
    Interrupted,
}

/// Why a copy was refused before anything was written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages and the names say what the fields are")]
pub enum Refusal {
    /// The destination holds a known format.
    #[error(
        "{destination} holds {found}: copying would destroy it; if that is what you want, say --overwrite"
    )]
    Occupied { destination: Identity, found: &'static str },
    /// The destination is a file that is not empty.
    #[error(
        "{name} is not empty: copying would destroy what it holds; if that is what you want, say --overwrite"
    )]
    NotEmpty { name: String },
    /// The name under which a new file is written exists already.
    #[error(
        "{name} exists: another copy is writing it, or left it when it failed; wait for that copy, or remove the file, \
         or say --overwrite"
    )]
    PartialExists { name: String },
    /// The source is in use by this machine.
    #[error("{name} is {used}: its contents change while they are copied; unmount it, or copy a snapshot")]
    SourceInUse { name: String, used: String },
    /// The destination is in use by this machine.
    #[error("{name} is {used}: writing to it would destroy data in use; release it first, or check the name")]
    DestinationInUse { name: String, used: String },
    /// The source does not fit the destination.
    #[error("{destination} holds {capacity_bytes} bytes, but {needed_bytes} are needed: choose a larger one")]
    TooSmall {
        destination: Identity,
        capacity_bytes: u64,
        /// The source's length in whole blocks of the destination.
        needed_bytes: u64,
    },
    /// The source does not have the length that the user gave.
    #[error(
        "{source_name} has {bytes} bytes, but {expected_bytes} were expected: check the name, or --source-size"
    )]
    OtherLength { source_name: Identity, bytes: u64, expected_bytes: u64 },
    /// The destination is read-only.
    #[error("{0} is read-only: choose another, or ask its owner for write access")]
    ReadOnly(Identity),
    /// Source and destination are the same.
    #[error("source and destination are the same, {0}")]
    Same(Identity),
    /// Standard input or output is unusable.
    #[error("{name} is {why}: name a file, or connect a pipe to it")]
    Descriptor { name: &'static str, why: String },
    /// The device is not the one that `--expect-id` names.
    #[error("{found} is not {expected}: check that name and LUN still mean the same device")]
    OtherIdentity {
        /// The expected designator.
        expected: String,
        found: Identity,
    },
}
