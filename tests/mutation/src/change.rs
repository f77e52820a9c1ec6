//! One change of one place, and the text that makes a copy of the source able to make it.

use std::ops::Range;

/// A change that a run may make: at one place, of one kind.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// The file, from the top of the repository.
    pub(crate) path: String,
    /// The function around it, or the name of a script.
    pub(crate) function: String,
    /// Which of the same changes of this function it is, from 0.
    pub(crate) nth: usize,
    /// What of the file is changed, in bytes.
    pub(crate) range: Range<usize>,
    /// The line of its first byte, from 1.
    pub(crate) line: usize,
    /// What the change is called.
    pub(crate) kind: &'static str,
    /// What stands there.
    pub(crate) before: String,
    /// What the change makes of it, as a reader sees it.
    pub(crate) after: String,
    /// How the copy makes it.
    pub(crate) edit: Edit,
}

/// What is written around a place, so that a number chosen at run time makes the change.
#[derive(Debug, Clone)]
pub(crate) enum Edit {
    /// This expression in its place.
    Instead(String),
    /// Nothing in place of a statement.
    LeftOut,
    /// A condition that always holds, never holds, or is negated.
    Always,
    Never,
    Negated,
    /// A value beside that of a constant.
    Beside,
    /// This statement before the first of a function.
    First(String),
    /// An arm of a match that is never taken.
    NeverTaken,
    /// This text of a script in its place.
    Script(String),
}

impl Edit {
    /// What stands before the place.
    pub(crate) fn open(&self, number: usize) -> String {
        let is = format!("crate::mutation::is({number})");
        match self {
            Self::Instead(other) => format!("(if {is} {{ ({other}) }} else {{ ("),
            Self::LeftOut => format!("if !{is} {{ "),
            Self::Always => format!("({is} || ("),
            Self::Never => format!("(!{is} && ("),
            Self::Negated => format!("({is} != ("),
            Self::Beside => format!("crate::mutation::beside({number}, "),
            Self::First(statement) => format!(" if {is} {{ {statement} }} "),
            Self::NeverTaken => format!(" if !{is}"),
            Self::Script(_) => format!(" --[[change {number}]] "),
        }
    }

    /// What stands behind it.
    pub(crate) fn close(&self, number: usize) -> String {
        match self {
            Self::Instead(_) => ") })".to_owned(),
            Self::LeftOut => " }".to_owned(),
            Self::Always | Self::Never | Self::Negated => "))".to_owned(),
            Self::Beside => ")".to_owned(),
            Self::First(_) | Self::NeverTaken => String::new(),
            Self::Script(_) => format!(" --[[end {number}]] "),
        }
    }
}

impl Change {
    /// Names the change, also after edits elsewhere in the file.
    pub(crate) fn key(&self) -> String {
        let text = [&self.path, &self.function, self.kind, &self.before, &self.after].join("\t");
        format!("{}\t{}", text.replace('\n', " "), self.nth)
    }

    /// The change in one line, for people.
    pub(crate) fn line(&self) -> String {
        let (path, line, function) = (&self.path, self.line, &self.function);
        let (before, after) = (shortened(&self.before), shortened(&self.after));
        match before.is_empty() {
            true => format!("{path}:{line} in {function}: {}: `{after}`", self.kind),
            false => format!("{path}:{line} in {function}: {}: `{before}` -> `{after}`", self.kind),
        }
    }
}

fn shortened(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(90) {
        Some((at, _)) => format!("{}..", &text[..at]),
        None => text,
    }
}

/// What the finder left out, by kind.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LeftOut {
    /// Functions that run at compile time.
    pub(crate) const_functions: usize,
    /// Constants and statics; their uses are places.
    pub(crate) constants: usize,
    /// Calls of macros.
    pub(crate) macros: usize,
}

/// All changes of a file or of all files.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) changes: Vec<Change>,
    pub(crate) left_out: LeftOut,
}
