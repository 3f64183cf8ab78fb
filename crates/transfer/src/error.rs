//! Why a copy did not happen, or not to its end.

use crate::Identity;
use block::BlockError;

/// A copy that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It would be wrong or dangerous. Nothing was written.
    #[error("refused: {0}")]
    Refused(#[from] Refusal),
    /// The source, or the destination when it was read back, could not be read.
    #[error("cannot read {bytes} bytes at {offset} of {name}")]
    Read {
        /// Which.
        name: String,
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u64,
        /// Why.
        source: BlockError,
    },
    /// The input stream could not be read.
    #[error("cannot read the input after {offset} bytes")]
    Input {
        /// Bytes read before.
        offset: u64,
        /// Why.
        source: BlockError,
    },
    /// The input stream ended before it began.
    #[error("the input is empty: whatever should have written to it has failed, or was not started")]
    NoInput,
    /// The input stream is longer than it should be.
    #[error("the input has more than the {expected_bytes} bytes that it should have")]
    InputTooLong {
        /// How long it should be.
        expected_bytes: u64,
    },
    /// The input stream ended too early.
    #[error("the input ended after {found_bytes} bytes, and should have {expected_bytes}")]
    InputTooShort {
        /// How long it should be.
        expected_bytes: u64,
        /// How long it is.
        found_bytes: u64,
    },
    /// The destination could not be written or flushed.
    #[error("cannot {what} {name}")]
    Write {
        /// Which.
        name: String,
        /// What was tried, and where.
        what: String,
        /// Why.
        source: BlockError,
    },
    /// A file or device could not be opened as a disk.
    #[error("cannot open {name}")]
    Open {
        /// Which.
        name: String,
        /// Why.
        source: BlockError,
    },
    /// There is no such file, or the system does not let this user have it.
    #[error("cannot open {name}")]
    File {
        /// Which.
        name: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A copy that is complete, and did not get its name.
    #[error("cannot give {partial} the name {name}")]
    Rename {
        /// The name that it has.
        partial: String,
        /// The name that it should have.
        name: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A stream turned out to be longer than the destination.
    #[error("the input has more than the {capacity_bytes} bytes that {name} can hold")]
    TooLong {
        /// The destination.
        name: String,
        /// Its capacity.
        capacity_bytes: u64,
    },
    /// Flush after flush reported lost writes.
    #[error(
        "{name} lost acknowledged writes {times} times in a row: its connection or the target itself keeps failing; \
         see the target's log"
    )]
    NeverDurable {
        /// The destination.
        name: String,
        /// Flushes that failed one after another.
        times: u32,
    },
    /// A file was written to while it was read: the copy may mix old and new.
    #[error("{name} changed while it was copied: stop whoever writes to it, or copy a snapshot")]
    SourceChanged {
        /// The source.
        name: String,
    },
    /// Source and destination differ.
    #[error(
        "the copy differs from its source in the {bytes} bytes from {offset} on: either the source changed during \
         the copy, or something between here and the destination's medium is broken"
    )]
    Mismatch {
        /// First byte of the range that was compared.
        offset: u64,
        /// Its length.
        bytes: u64,
    },
    /// No memory for buffers.
    #[error("no memory for buffers of {bytes} bytes: ask for fewer or smaller requests")]
    Memory {
        /// How much was wanted.
        bytes: usize,
    },
    /// The person at the keyboard has had enough.
    #[error("interrupted")]
    Interrupted,
}

/// Why a copy was refused before anything was written.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It holds something.
    #[error(
        "{destination} holds {found}: copying would destroy it; if that is what you want, say --overwrite"
    )]
    Occupied {
        /// The destination.
        destination: Identity,
        /// What is there.
        found: &'static str,
    },
    /// A file that holds something.
    #[error(
        "{name} is not empty: copying would destroy what it holds; if that is what you want, say --overwrite"
    )]
    NotEmpty {
        /// The destination.
        name: String,
    },
    /// The name under which a new file is written is taken.
    #[error(
        "{name} exists: another copy is writing it, or left it when it failed; wait for that copy, or remove the file, \
         or say --overwrite"
    )]
    PartialExists {
        /// The file's path.
        name: String,
    },
    /// In use by this machine.
    #[error("{name} is {used}: its contents change while they are copied; unmount it, or copy a snapshot")]
    SourceInUse {
        /// The source.
        name: String,
        /// How.
        used: String,
    },
    /// In use by this machine.
    #[error("{name} is {used}: writing to it would destroy data in use; release it first, or check the name")]
    DestinationInUse {
        /// The destination.
        name: String,
        /// How.
        used: String,
    },
    /// It does not fit.
    #[error("{destination} holds {capacity_bytes} bytes, but {needed_bytes} are needed: choose a larger one")]
    TooSmall {
        /// The destination.
        destination: Identity,
        /// What it holds.
        capacity_bytes: u64,
        /// What the source has, in whole blocks.
        needed_bytes: u64,
    },
    /// Not as long as the user said.
    #[error(
        "{source_name} has {bytes} bytes, and should have {expected_bytes}: check the name, or --source-size"
    )]
    OtherLength {
        /// The source.
        source_name: Identity,
        /// How long it is.
        bytes: u64,
        /// How long it should be.
        expected_bytes: u64,
    },
    /// The destination takes no writes.
    #[error("{0} is read-only: choose another, or ask its owner for write access")]
    ReadOnly(Identity),
    /// A copy onto itself.
    #[error("source and destination are the same, {0}")]
    Same(Identity),
    /// Standard input or output cannot serve.
    #[error("{name} is {why}: name a file, or connect a pipe to it")]
    Descriptor {
        /// Which.
        name: &'static str,
        /// How it is.
        why: String,
    },
    /// Not the device the script was written for.
    #[error("{found} is not {expected}: check that name and LUN still mean the same device")]
    OtherIdentity {
        /// What `--expect-id` said.
        expected: String,
        /// Who answered.
        found: Identity,
    },
}
