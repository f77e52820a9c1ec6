//! How much memory this process may take.

use std::fs;
use std::path::Path;

/// What the machine has, or the container, if that may take less. `None` if the system does not tell, as on macOS.
pub(crate) fn most_memory() -> Option<u64> {
    let group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    in_machine("MemTotal:").into_iter().chain(limits_of(&group, |path| fs::read_to_string(path).ok())).min()
}

/// What may be taken now without taking it from another process. `None` if the system does not tell.
pub(crate) fn free_memory() -> Option<u64> {
    in_machine("MemAvailable:")
}

fn in_machine(what: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(what))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// The limits of the control groups of a process, from its own up to the first, which a container sees as its own.
fn limits_of(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Vec<u64> {
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (root, file) = match parts.next() {
            Some("") => ("/sys/fs/cgroup", "memory.max"),
            Some("memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        let folder = Path::new(root).join(parts.next().unwrap_or_default().trim_start_matches('/'));
        let folders = folder.ancestors().take_while(|folder| folder.starts_with(root));
        limits.extend(folders.filter_map(|folder| read(&folder.join(file))?.trim().parse::<u64>().ok()));
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_of_a_container_or_of_one_around_it_counts() {
        let read = |path: &Path| {
            let text = match path.to_str()? {
                "/sys/fs/cgroup/pod/app/memory.max" => "max\n",
                "/sys/fs/cgroup/pod/memory.max" => "4096\n",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes" => "512\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        assert_eq!(limits_of("0::/pod/app\n", read), [4_096], "`max` is no limit");
        assert_eq!(limits_of("3:cpu:/a\n2:memory:/a\n", read), [512]);
        assert_eq!(limits_of("", read), [0; 0]);
    }
}
