//! The identity of a logical unit: names and designators (SPC-4, VPD page 83h).

/// Bytes of an NAA IEEE Registered Extended designator (SPC-4).
const NAA_BYTES: usize = 16;
/// NAA 6h: IEEE Registered Extended.
const IEEE_REGISTERED_EXTENDED: u8 = 0x6;
/// The company id. Its "locally administered" bit (02h in the first octet) is set, so it can never equal a vendor's;
/// the rest spells "RW".
const COMPANY_ID: u32 = 0x02_52_57;

/// The designator of a logical unit, the same over every path: NAA 6h.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Naa(pub [u8; NAA_BYTES]);

impl Naa {
    /// A designator that depends only on `name`, and differs for other names with the odds of a 100-bit hash. `name`
    /// should name the storage itself, so that every path to it shows the same designator.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let mut bytes = fnv1a(name.as_bytes()).to_be_bytes();
        let [_, a, b, c] = COMPANY_ID.to_be_bytes();
        bytes[0] = IEEE_REGISTERED_EXTENDED << 4 | a >> 4;
        bytes[1] = a << 4 | b >> 4;
        bytes[2] = b << 4 | c >> 4;
        bytes[3] = c << 4 | bytes[3] & 0x0f;
        Self(bytes)
    }
}

impl core::fmt::Display for Naa {
    /// `naa.` and 32 hexadecimal digits (the form of RFC 3721 and of SCSI name strings).
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str("naa.")?;
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl core::fmt::Debug for Naa {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, formatter)
    }
}

/// FNV-1a, 128 bits. It keeps no secrets; it only distinguishes names.
fn fnv1a(bytes: &[u8]) -> u128 {
    const OFFSET_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET_BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

/// The unit's identity in INQUIRY. Strings are truncated, padded and reduced to printable ASCII when emitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// T10 VENDOR IDENTIFICATION, up to 8 characters.
    pub vendor: String,
    /// PRODUCT IDENTIFICATION, up to 16 characters.
    pub product: String,
    /// PRODUCT REVISION LEVEL, up to 4 characters.
    pub revision: String,
    /// PRODUCT SERIAL NUMBER.
    pub serial: String,
    /// The unit's designator.
    pub naa: Naa,
}

impl Identity {
    /// The identity of the storage called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let naa = Naa::from_name(name);
        let serial = naa.to_string().trim_start_matches("naa.").to_owned();
        let [vendor, product, revision] = ["ROPEWALK", "DISK", "1"].map(str::to_owned);
        Self { vendor, product, revision, serial, naa }
    }
}

/// The target port a command came through, as VPD page 83h names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetPort {
    /// The iSCSI target name: the SCSI device name.
    pub target_name: String,
    /// The target portal group tag; with the target name it is the SCSI port name (RFC 7143 §4.4.2).
    pub portal_group_tag: u16,
    /// RELATIVE TARGET PORT IDENTIFIER, from 1.
    pub relative_identifier: u16,
}
