//! The name of this host and process, by which people find a node.

use std::sync::Arc;

/// The most characters of a host's name: it is part of keys and of every request.
const LONGEST: usize = 40;

/// The host up to its first dot, and the id of the process, as `web-1-4711`.
pub(super) fn name() -> Arc<str> {
    format!("{}-{}", host_name(), std::process::id()).into()
}

/// The host up to its first dot.
pub(crate) fn host_name() -> String {
    plain(&of_system())
}

#[cfg(unix)]
fn of_system() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn of_system() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// A name without what could be taken for a separator. A server inside a container may have any text as its name.
fn plain(host: &str) -> String {
    let first = host.split('.').next().unwrap_or_default();
    let kept: String = first.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(LONGEST).collect();
    if kept.is_empty() { "host".into() } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_host_is_short_and_has_no_separator() {
        assert_eq!(plain("web-1.eu.example.org"), "web-1");
        assert_eq!(plain("a b/c:d{e}"), "abcde");
        assert_eq!(plain(&"x".repeat(300)).len(), LONGEST);
        assert_eq!([plain(""), plain(".local"), plain("\u{e9}")], ["host", "host", "host"]);
        assert!(name().ends_with(&format!("-{}", std::process::id())));
    }
}
