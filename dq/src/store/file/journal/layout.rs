//! Numbers and sectors in files.

/// Everything in a file starts at a multiple of this, so that a sector that was synced is never written again.
pub const SECTOR: usize = 512;

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// The next multiple of a sector.
pub(super) const fn padded(bytes: u64) -> u64 {
    bytes.div_ceil(SECTOR as u64) * SECTOR as u64
}
