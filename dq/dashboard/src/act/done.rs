//! What a page says about a change that was just made.

use dq::time::Timestamp;
use maud::{Markup, html};

use super::words::Word;
use crate::frame::Frame;

/// A change that led to a page, as the link to the page says it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Done<'a> {
    pub(crate) action: &'a str,
    /// The action that undoes it.
    pub(crate) undo: &'a str,
    pub(crate) topic: &'a str,
    /// The job or the schedule.
    pub(crate) id: &'a str,
    /// When the job was due before, ms.
    pub(crate) former: &'a str,
}

impl Done<'_> {
    /// What was done, above the page that shows its result, with what undoes it.
    pub(crate) fn show(&self, frame: &Frame) -> Markup {
        let said = Word::of(self.action).map(|word| word.done);
        let nothing = (self.action == "nothing")
            .then_some("Nothing changed: it has ended or moved meanwhile, or was in this state already.");
        html! {
            @if let Some(said) = said.or(nothing) {
                p.notice.good role="status" { (said) @if let Some((link, text)) = self.way_back(frame) { " " a href=(link) { "Undo: " (text) "…" } } }
            }
        }
    }

    /// The page that asks whether to undo it, and the text of its link.
    fn way_back(&self, frame: &Frame) -> Option<(String, String)> {
        let undo = Word::of(self.undo).filter(|_| !frame.read_only)?;
        let due = match undo.action {
            "reschedule" => Timestamp::from_millis(self.former.parse().ok()?).to_string(),
            _ => String::new(),
        };
        let text = if due.is_empty() { undo.verb.to_owned() } else { format!("due at {due} again") };
        let query = [("action", undo.action), ("topic", self.topic), ("id", self.id), ("due", due.as_str())];
        Some((frame.to("confirm", &query), text))
    }
}
