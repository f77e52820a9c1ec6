//! Which file systems are on another machine.

use std::fs::File;
use std::io;

/// The name of the network file system that a file is on, if it is on one.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn network(file: &File) -> io::Result<Option<&'static str>> {
    Ok(name_of(rustix::fs::fstatfs(file)?.f_type as u32))
}

/// The name of a network file system by its magic number in `statfs(2)`. FUSE may be local or not: sshfs and s3fs are not.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn name_of(kind: u32) -> Option<&'static str> {
    Some(match kind {
        0x6969 => "nfs",
        0x517B => "smb",
        0xFF53_4D42 => "cifs",
        0xFE53_4D42 => "smb2",
        0x0102_1997 => "9p",
        0x5346_414F => "afs",
        0x00C3_6400 => "ceph",
        0x6573_5546 => "fuse",
        _ => return None,
    })
}

/// Other systems do not tell by number.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn network(_: &File) -> io::Result<Option<&'static str>> {
    Ok(None)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::name_of;

    #[test]
    fn a_network_file_system_has_a_name_and_a_local_one_has_none() {
        let remote = [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x0102_1997, 0x5346_414F, 0x00C3_6400, 0x6573_5546];
        let names = remote.map(|kind| name_of(kind).unwrap_or("none"));
        assert_eq!(names, ["nfs", "smb", "cifs", "smb2", "9p", "afs", "ceph", "fuse"]);
        let (ext4, tmpfs, overlay) = (0xEF53, 0x0102_1994, 0x794C_7630);
        assert_eq!([ext4, tmpfs, overlay].map(name_of), [None; 3]);
    }
}
