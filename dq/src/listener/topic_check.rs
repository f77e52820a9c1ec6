//! Checks at compile time that a listener names the topic of its payload.

use super::delay_listener::Declared;
use crate::job::DelayJob;

/// Panics if the topics differ. In a constant, that is a compile error.
///
/// A payload whose `#[job(..)]` has a mistake has an empty topic; the compiler reports the mistake there.
#[track_caller]
pub(super) const fn assert_same_topic<L: Declared, J: DelayJob>() {
    let Some(listens) = L::TOPIC else { return };
    let declared = J::TOPIC;
    if declared.is_empty() || same(listens, declared) {
        return;
    }
    let text = Text::new()
        .and("`")
        .and(L::NAME)
        .and("` listens to topic `")
        .and(listens)
        .and("`, but its job is declared with `#[job(topic = \"")
        .and(declared)
        .and("\")]`: make them the same, or leave `topic` out here");
    panic!("{}", text.as_str())
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// A text that the compiler puts together. It leaves out a part that does not fit.
struct Text {
    bytes: [u8; 1024],
    length: usize,
}

impl Text {
    const fn new() -> Self {
        Self { bytes: [0; 1024], length: 0 }
    }

    const fn and(mut self, part: &str) -> Self {
        let part = part.as_bytes();
        if self.length + part.len() <= self.bytes.len() {
            let mut i = 0;
            while i < part.len() {
                self.bytes[self.length + i] = part[i];
                i += 1;
            }
            self.length += part.len();
        }
        self
    }

    const fn as_str(&self) -> &str {
        match std::str::from_utf8(self.bytes.split_at(self.length).0) {
            Ok(text) => text,
            Err(_) => "the topics are not the same",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_its_parts_without_those_that_do_not_fit() {
        let long = "x".repeat(1024);
        assert_eq!(Text::new().and("`é").and(&long).and("`").as_str(), "`é`");
    }

    #[test]
    fn topics_are_the_same_byte_by_byte() {
        assert!(same("order", "order"));
        assert!(!same("order", "orders") && !same("orders", "order") && !same("order", "ordex"));
    }
}
