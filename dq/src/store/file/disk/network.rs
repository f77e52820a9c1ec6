//! Which file systems are on another machine.

use std::fs::File;
use std::io;

/// The name of the network file system that a file is on, if it is on one.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn network(file: &File) -> io::Result<Option<&'static str>> {
    // The magic numbers of `statfs(2)`. FUSE may be local or not: sshfs and s3fs are not.
    let kind = rustix::fs::fstatfs(file)?.f_type as u32;
    Ok(match kind {
        0x6969 => Some("nfs"),
        0x517B => Some("smb"),
        0xFF53_4D42 => Some("cifs"),
        0xFE53_4D42 => Some("smb2"),
        0x0102_1997 => Some("9p"),
        0x5346_414F => Some("afs"),
        0x00C3_6400 => Some("ceph"),
        0x6573_5546 => Some("fuse"),
        _ => None,
    })
}

/// Other systems do not tell by number.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn network(_: &File) -> io::Result<Option<&'static str>> {
    Ok(None)
}
