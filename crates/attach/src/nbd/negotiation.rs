//! Option haggling: what a client asks before it uses the disk. A state machine without a socket.

use crate::Disk;
use block::Properties;

/// `NBDMAGIC`, the first word of a server.
const MAGIC: [u8; 8] = *b"NBDMAGIC";
/// `IHAVEOPT`, before the server's flags and every option of the client.
const OPTION_MAGIC: [u8; 8] = *b"IHAVEOPT";
const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

/// The only context that this server knows, and its number.
const ALLOCATION: &[u8] = b"base:allocation";
pub(crate) const ALLOCATION_ID: u32 = 1;

/// The longest operation. Clients that do not ask expect 32 MiB, too.
pub(crate) const OPERATION_BYTES_MAX: u32 = 32 << 20;

/// The length of most clients' pages and filesystem blocks.
const PREFERRED_BYTES: u32 = 4096;

/// The longest option that anybody needs: two names of 4096 bytes and some numbers.
pub(crate) const OPTION_BYTES_MAX: u32 = 16 << 10;

pub(crate) const OPTION_HEADER_BYTES: usize = 16;
pub(crate) const CLIENT_FLAGS_BYTES: usize = 4;

/// Flags of the handshake, of both sides.
const FIXED_NEWSTYLE: u16 = 1;
const NO_ZEROES: u16 = 2;

/// Transmission flags.
mod offer {
    pub(super) const HAS_FLAGS: u16 = 1;
    pub(super) const READ_ONLY: u16 = 1 << 1;
    pub(super) const FLUSH: u16 = 1 << 2;
    pub(super) const FUA: u16 = 1 << 3;
    pub(super) const TRIM: u16 = 1 << 5;
    pub(super) const WRITE_ZEROES: u16 = 1 << 6;
    pub(super) const DONT_FRAGMENT: u16 = 1 << 7;
    pub(super) const MULTI_CONN: u16 = 1 << 8;
    pub(super) const CACHE: u16 = 1 << 10;
}

/// Options.
mod option {
    pub(super) const EXPORT_NAME: u32 = 1;
    pub(super) const ABORT: u32 = 2;
    pub(super) const LIST: u32 = 3;
    pub(super) const INFO: u32 = 6;
    pub(super) const GO: u32 = 7;
    pub(super) const STRUCTURED_REPLY: u32 = 8;
    pub(super) const LIST_META_CONTEXT: u32 = 9;
    pub(super) const SET_META_CONTEXT: u32 = 10;
}

/// Types of the replies to options.
mod answer {
    pub(super) const ACK: u32 = 1;
    pub(super) const SERVER: u32 = 2;
    pub(super) const INFO: u32 = 3;
    pub(super) const META_CONTEXT: u32 = 4;
    pub(super) const UNSUPPORTED: u32 = 1 << 31 | 1;
    pub(super) const INVALID: u32 = 1 << 31 | 3;
    pub(super) const UNKNOWN_EXPORT: u32 = 1 << 31 | 6;
}

/// Types of what INFO and GO tell.
mod info {
    pub(super) const EXPORT: u16 = 0;
    pub(super) const NAME: u16 = 1;
    pub(super) const BLOCK_SIZE: u16 = 3;
}

/// What was agreed on for the transmission phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// Replies are structured.
    pub(crate) structured: bool,
    /// The client may ask for the allocation of blocks.
    pub(crate) allocation: bool,
}

/// What follows an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another option.
    Option,
    /// The transmission phase.
    Transmission(Agreed),
    /// The end of the connection.
    Close,
}

/// The header of an option, from the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OptionHeader {
    pub(crate) option: u32,
    pub(crate) bytes: u32,
}

impl OptionHeader {
    /// `None` if this is no option.
    pub(crate) fn parse(bytes: &[u8; OPTION_HEADER_BYTES]) -> Option<Self> {
        let mut reader = Reader(bytes);
        (reader.array::<8>()? == OPTION_MAGIC).then_some(())?;
        Some(Self { option: reader.u32()?, bytes: reader.u32()? })
    }
}

/// One client's negotiation.
pub(crate) struct Negotiation<'a> {
    properties: &'a Properties,
    /// The client does not want the zeroes after the answer to `EXPORT_NAME`.
    no_zeroes: bool,
    agreed: Agreed,
}

impl<'a> Negotiation<'a> {
    /// The server's first words.
    pub(crate) fn greeting() -> Vec<u8> {
        [&MAGIC[..], &OPTION_MAGIC, &(FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes()].concat()
    }

    /// A negotiation with a client that answered the greeting with these flags; `None` if it wants what nobody offered.
    pub(crate) fn begin(disk: &'a Disk, flags: [u8; CLIENT_FLAGS_BYTES]) -> Option<Self> {
        let flags = u32::from_be_bytes(flags);
        let known = u32::from(FIXED_NEWSTYLE | NO_ZEROES);
        (flags & !known == 0).then(|| Self {
            properties: disk.properties(),
            no_zeroes: flags & u32::from(NO_ZEROES) != 0,
            agreed: Agreed::default(),
        })
    }

    /// Handles one option; its answer is appended to `reply`.
    pub(crate) fn handle(&mut self, option: u32, data: &[u8], reply: &mut Vec<u8>) -> Next {
        let mut answers = Answers { option, reply };
        match option {
            option::EXPORT_NAME => return self.export_name(data, reply),
            option::ABORT => {
                answers.give(answer::ACK, &[]);
                return Next::Close;
            }
            option::LIST if !data.is_empty() => answers.invalid("LIST has no data"),
            option::LIST => {
                answers.give(answer::SERVER, &0_u32.to_be_bytes());
                answers.give(answer::ACK, &[]);
            }
            option::INFO | option::GO => {
                if self.info(data, &mut answers) && option == option::GO {
                    return Next::Transmission(self.agreed);
                }
            }
            option::STRUCTURED_REPLY if !data.is_empty() => answers.invalid("STRUCTURED_REPLY has no data"),
            option::STRUCTURED_REPLY => {
                self.agreed.structured = true;
                answers.give(answer::ACK, &[]);
            }
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.meta_context(data, &mut answers),
            _ => answers.give(answer::UNSUPPORTED, b"unknown option"),
        }
        Next::Option
    }

    /// `EXPORT_NAME` of old clients; it knows no errors but the end of the connection.
    fn export_name(&self, name: &[u8], reply: &mut Vec<u8>) -> Next {
        if !name.is_empty() {
            return Next::Close;
        }
        reply.extend(self.properties.bytes().to_be_bytes());
        reply.extend(self.transmission_flags().to_be_bytes());
        if !self.no_zeroes {
            reply.extend([0; 124]);
        }
        Next::Transmission(self.agreed)
    }

    /// INFO and GO; whether the export is there.
    fn info(&self, data: &[u8], answers: &mut Answers<'_>) -> bool {
        let Some((name, wanted)) = info_request(data) else {
            answers.invalid("a name, and a list of 16-bit numbers, are needed");
            return false;
        };
        if !name.is_empty() {
            answers.unknown_export();
            return false;
        }
        let number = info::EXPORT.to_be_bytes();
        let size = self.properties.bytes().to_be_bytes();
        let flags = self.transmission_flags().to_be_bytes();
        answers.give(answer::INFO, &[&number[..], &size, &flags].concat());
        if wanted.contains(&info::NAME) {
            answers.give(answer::INFO, &info::NAME.to_be_bytes());
        }
        // Told unasked: with blocks of more than 512 bytes, a client that does not know would fail.
        let shortest = self.properties.block_bytes;
        let sizes = [shortest, PREFERRED_BYTES.max(shortest), OPERATION_BYTES_MAX].map(u32::to_be_bytes);
        answers.give(answer::INFO, &[&info::BLOCK_SIZE.to_be_bytes()[..], &sizes.concat()].concat());
        answers.give(answer::ACK, &[]);
        true
    }

    fn meta_context(&mut self, data: &[u8], answers: &mut Answers<'_>) {
        let chooses = answers.option == option::SET_META_CONTEXT;
        if chooses {
            self.agreed.allocation = false;
        }
        if !self.agreed.structured {
            return answers.invalid("STRUCTURED_REPLY comes first");
        }
        let Some((name, queries)) = context_request(data) else {
            return answers.invalid("a name, and a list of contexts, are needed");
        };
        if !name.is_empty() {
            return answers.unknown_export();
        }
        // To list, no query asks for everything, and a namespace with its colon for all in it.
        let all = !chooses && (queries.is_empty() || queries.contains(&&b"base:"[..]));
        if all || queries.contains(&ALLOCATION) {
            self.agreed.allocation |= chooses;
            let id = if chooses { ALLOCATION_ID } else { 0 };
            answers.give(answer::META_CONTEXT, &[&id.to_be_bytes()[..], ALLOCATION].concat());
        }
        answers.give(answer::ACK, &[]);
    }

    fn transmission_flags(&self) -> u16 {
        let always = offer::HAS_FLAGS | offer::FLUSH | offer::FUA | offer::MULTI_CONN | offer::CACHE;
        let changes = match (self.properties.read_only, self.properties.thin) {
            (true, _) => offer::READ_ONLY,
            (false, None) => offer::WRITE_ZEROES,
            (false, Some(_)) => offer::WRITE_ZEROES | offer::TRIM,
        };
        let structured = if self.agreed.structured { offer::DONT_FRAGMENT } else { 0 };
        always | changes | structured
    }
}

/// The name, and what is asked for, of INFO or GO.
fn info_request(data: &[u8]) -> Option<(&[u8], Vec<u16>)> {
    let mut reader = Reader(data);
    let name = reader.string()?;
    let wanted = reader.u16()?;
    let wanted = (0..wanted).map(|_| reader.u16()).collect::<Option<_>>()?;
    reader.0.is_empty().then_some((name, wanted))
}

/// The name and the queries of `LIST_META_CONTEXT` or `SET_META_CONTEXT`.
fn context_request(data: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let mut reader = Reader(data);
    let name = reader.string()?;
    let queries = reader.u32()?;
    let queries = (0..queries).map(|_| reader.string()).collect::<Option<_>>()?;
    reader.0.is_empty().then_some((name, queries))
}

/// Replies to one option.
struct Answers<'a> {
    option: u32,
    reply: &'a mut Vec<u8>,
}

impl Answers<'_> {
    fn give(&mut self, kind: u32, data: &[u8]) {
        // All are made here, and short.
        let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
        self.reply.extend(REPLY_MAGIC.to_be_bytes());
        self.reply.extend([self.option, kind, bytes].map(u32::to_be_bytes).concat());
        self.reply.extend(data);
    }

    /// An error with words for people.
    fn invalid(&mut self, why: &str) {
        self.give(answer::INVALID, why.as_bytes());
    }

    fn unknown_export(&mut self) {
        self.give(answer::UNKNOWN_EXPORT, b"the only export has the empty name");
    }
}

/// Takes fields from the front of a message.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// A length of 32 bits, and as many bytes.
    fn string(&mut self) -> Option<&'a [u8]> {
        let bytes = self.u32()?;
        self.take(usize::try_from(bytes).ok()?)
    }
}
