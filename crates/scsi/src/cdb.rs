//! The command descriptor block (SPC-4).

/// The longest CDB of the commands here. Variable-length and extended CDBs are not among them.
pub const CDB_BYTES_MAX: usize = 16;

/// The bytes of a validated CDB, padded with zeroes, so that every field of every command can be read.
#[derive(Clone, Copy, Debug)]
pub struct Cdb([u8; CDB_BYTES_MAX]);

impl Cdb {
    /// The first bytes of `bytes`.
    pub fn new(bytes: &[u8]) -> Self {
        let mut padded = [0; CDB_BYTES_MAX];
        padded.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Self(padded)
    }

    /// The byte at `AT`.
    pub const fn u8<const AT: usize>(&self) -> u8 {
        const { assert!(AT < CDB_BYTES_MAX) };
        self.0[AT]
    }

    /// Whether bit `bit` of the byte at `AT` is set.
    pub const fn bit<const AT: usize>(&self, bit: u8) -> bool {
        self.u8::<AT>() & (1 << bit) != 0
    }

    /// The two bytes from `AT` on.
    pub const fn u16<const AT: usize>(&self) -> u16 {
        const { assert!(AT + 2 <= CDB_BYTES_MAX) };
        u16::from_be_bytes([self.0[AT], self.0[AT + 1]])
    }

    /// The three bytes from `AT` on.
    pub const fn u24<const AT: usize>(&self) -> u32 {
        const { assert!(AT + 3 <= CDB_BYTES_MAX) };
        u32::from_be_bytes([0, self.0[AT], self.0[AT + 1], self.0[AT + 2]])
    }

    /// The four bytes from `AT` on.
    pub const fn u32<const AT: usize>(&self) -> u32 {
        const { assert!(AT + 4 <= CDB_BYTES_MAX) };
        u32::from_be_bytes([self.0[AT], self.0[AT + 1], self.0[AT + 2], self.0[AT + 3]])
    }

    /// The eight bytes from `AT` on.
    pub const fn u64<const AT: usize>(&self) -> u64 {
        const { assert!(AT + 8 <= CDB_BYTES_MAX) };
        let b = &self.0;
        u64::from_be_bytes([
            b[AT],
            b[AT + 1],
            b[AT + 2],
            b[AT + 3],
            b[AT + 4],
            b[AT + 5],
            b[AT + 6],
            b[AT + 7],
        ])
    }
}
