//! What the id of a node says about its program.

use super::NodeId;
use crate::time::Timestamp;

/// The version of dq in this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How many hexadecimal digits the time has.
const TIME: usize = 8;

/// How many hexadecimal digits are drawn.
const DRAWN: usize = 16;

impl NodeId {
    /// The id of a node of this program, as `web-1-4711-v1.2.0-6923d0f1-012ec2040ea64cf6`: host and process, the version of dq, the
    /// second in which it was drawn, and what was drawn.
    pub(crate) fn of_program(host: &str, started: Timestamp, drawn: &str) -> Self {
        let seconds = started.as_millis() / 1_000;
        Self::new(format!("{host}-v{VERSION}-{seconds:0TIME$x}-{drawn}"))
    }

    /// The version of dq that the node runs; `None` if its id does not say so.
    pub fn version(&self) -> Option<&str> {
        self.parts().map(|(version, _)| version)
    }

    /// When the node started, by its own clock, to the second; `None` if its id does not say so.
    pub fn started(&self) -> Option<Timestamp> {
        self.parts().map(|(_, started)| started)
    }

    fn parts(&self) -> Option<(&str, Timestamp)> {
        let is_hex = |text: &str, length: usize| text.len() == length && text.bytes().all(|c| c.is_ascii_hexdigit());
        let (rest, drawn) = self.as_str().rsplit_once('-')?;
        let (rest, started) = rest.rsplit_once('-')?;
        let (_, version) = rest.rsplit_once("-v")?;
        let is_version = version.starts_with(|first: char| first.is_ascii_digit());
        if !is_hex(drawn, DRAWN) || !is_hex(started, TIME) || !is_version {
            return None;
        }
        let seconds = u64::from_str_radix(started, 16).ok()?;
        Some((version, Timestamp::from_millis(seconds.saturating_mul(1_000))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_node_says_its_version_and_when_it_started() {
        let started = Timestamp::from_millis(1_763_872_999_123);
        let node = NodeId::of_program("web-v2-4711", started, "012ec2040ea64cf6");
        assert_eq!(node.as_str(), format!("web-v2-4711-v{VERSION}-692290e7-012ec2040ea64cf6"), "{node}");
        assert_eq!(node.version(), Some(VERSION));
        assert_eq!(node.started(), Some(Timestamp::from_millis(1_763_872_999_000)));
        let said = |text: &str| NodeId::new(text).version().map(str::to_owned);
        assert_eq!(said("web-1-4711-v2.0.0-rc.1-692290e7-012ec2040ea64cf6").as_deref(), Some("2.0.0-rc.1"));
        for other in
            ["n", "012ec2040ea64cf6", "web-1-4711-012ec2040ea64cf6", "web-v2-4711-012ec2040ea64cf6", "-v1-\u{e9}-"]
        {
            assert_eq!(said(other), None, "{other}");
        }
    }
}
