//! EXTENDED COPY between units of the world.

use scsi::Identity;

/// The CDB and the parameter list of a copy of so many blocks, from the start of one unit to `destination_lba` of another.
/// Its status is held if it has a list identifier.
pub fn extended_copy(
    list_id: Option<u8>,
    [source, destination]: [&str; 2],
    blocks: u16,
    destination_lba: u64,
) -> ([u8; 16], Vec<u8>) {
    let (id, usage) = list_id.map_or((0, 0x10), |id| (id, 0));
    let mut list = vec![id, usage, 0, 64, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 0];
    for name in [source, destination] {
        list.extend([0xe4, 0, 0, 0, 1, 3, 0, 16]);
        list.extend(Identity::from_name(name).naa.0);
        list.extend([0, 0, 0, 0, 0, 0, 2, 0]);
    }
    list.extend([2, 0, 0, 24, 0, 0, 0, 1, 0, 0]);
    list.extend(blocks.to_be_bytes());
    list.extend([0; 8]);
    list.extend(destination_lba.to_be_bytes());
    let mut cdb = [0; 16];
    (cdb[0], cdb[13]) = (0x83, u8::try_from(list.len()).unwrap());
    (cdb, list)
}
