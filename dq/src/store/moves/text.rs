//! Moves as text: in messages of the events of a topic, and in the histories of jobs. A move is three fields with tabs between
//! them: a letter and what belongs to it (a cause, a state or a command), a time or nothing, and a name or nothing.
//!
//! The part `recorder.lua` writes the same.

use std::borrow::Cow;

use super::Transition;
use crate::job::{Cause, Progress, State};
use crate::store::CommandKind;
use crate::time::Timestamp;

impl Transition {
    /// The three fields, with tabs between them.
    pub(crate) fn written(&self) -> String {
        let said;
        let (kind, at, name) = match self {
            Self::Added { due } => ("a".to_owned(), Some(*due), ""),
            Self::Imported { state } => (format!("i{}", state.letter()), None, ""),
            Self::ReplacementWaits => ("v".to_owned(), None, ""),
            Self::Changed { due, by } => ("s".to_owned(), *due, &**by),
            Self::Claimed { due, node } => ("c".to_owned(), Some(*due), &**node),
            Self::Done { by } => ("k".to_owned(), None, &**by),
            Self::Retried { cause, due, node } => (format!("r{}", number_of(*cause)), Some(*due), &**node),
            Self::Rejoined { due, node } => ("j".to_owned(), Some(*due), &**node),
            Self::Progressed { progress } => {
                said = progress.written();
                ("m".to_owned(), None, &*said)
            }
            Self::GivenBack { node } => ("b".to_owned(), None, &**node),
            Self::Parked { node } => ("p".to_owned(), None, &**node),
            Self::Dead { cause, node } => (format!("x{}", number_of(*cause)), None, &**node),
            Self::Reclaimed { node } => ("l".to_owned(), None, &**node),
            Self::CommandWaits { command, by } => (format!("w{}", command.letter()), None, &**by),
            Self::Deleted { by } => ("d".to_owned(), None, &**by),
            Self::Requeued { by } => ("q".to_owned(), None, &**by),
            Self::Published => ("o".to_owned(), None, ""),
            Self::Removed => ("g".to_owned(), None, ""),
            Self::Dropped => ("z".to_owned(), None, ""),
        };
        let at = at.map(|at| at.as_millis().to_string()).unwrap_or_default();
        format!("{kind}\t{at}\t{}", escaped(name))
    }

    /// Reads the fields; `None` if another version wrote them.
    pub(crate) fn read(kind: &str, at: &str, name: &str) -> Option<Self> {
        let due = at.parse().ok().map(Timestamp::from_millis);
        let (letter, detail) = kind.split_at_checked(1)?;
        let cause = || detail.parse::<usize>().ok().and_then(|number| Cause::ALL.get(number.checked_sub(1)?)).copied();
        let text = name;
        let name = || plain(text).into_owned();
        Some(match letter {
            "a" => Self::Added { due: due? },
            "i" => Self::Imported { state: State::of_letter(detail.parse().ok()?)? },
            "v" => Self::ReplacementWaits,
            "s" => Self::Changed { due, by: name() },
            "c" => Self::Claimed { due: due?, node: name() },
            "k" => Self::Done { by: name() },
            "r" => Self::Retried { cause: cause(), due: due?, node: name() },
            "j" => Self::Rejoined { due: due?, node: name() },
            "m" => Self::Progressed { progress: Progress::read(&plain(text))? },
            "b" => Self::GivenBack { node: name() },
            "p" => Self::Parked { node: name() },
            "x" => Self::Dead { cause: cause(), node: name() },
            "l" => Self::Reclaimed { node: name() },
            "w" => Self::CommandWaits { command: command_of(detail)?, by: name() },
            "d" => Self::Deleted { by: name() },
            "q" => Self::Requeued { by: name() },
            "o" => Self::Published,
            "g" => Self::Removed,
            "z" => Self::Dropped,
            _ => return None,
        })
    }
}

/// A name without what separates fields and lines.
pub(crate) fn escaped(name: &str) -> Cow<'_, str> {
    match name.contains(['\\', '\t', '\n']) {
        true => name.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").into(),
        false => name.into(),
    }
}

/// The name that was [`escaped`].
pub(crate) fn plain(name: &str) -> Cow<'_, str> {
    if !name.contains('\\') {
        return name.into();
    }
    let (mut plain, mut letters) = (String::with_capacity(name.len()), name.chars());
    while let Some(letter) = letters.next() {
        plain.push(match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some(other) => other,
                None => '\\',
            },
            (letter, false) => letter,
        });
    }
    plain.into()
}

fn number_of(cause: Option<Cause>) -> usize {
    cause.and_then(|cause| Cause::ALL.iter().position(|known| *known == cause)).map_or(0, |place| place + 1)
}

fn command_of(letter: &str) -> Option<CommandKind> {
    CommandKind::ALL.into_iter().find(|command| command.letter() == letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_move_is_read_as_it_was_written() {
        let (at, name) = (Timestamp::from_millis(1_700_000_000_123), || "a\\b\tc\nd\\t \u{e9}".to_owned());
        let moves = [
            Transition::Added { due: at },
            Transition::ReplacementWaits,
            Transition::Changed { due: Some(at), by: name() },
            Transition::Changed { due: None, by: String::new() },
            Transition::Claimed { due: at, node: name() },
            Transition::Done { by: name() },
            Transition::Rejoined { due: at, node: name() },
            Transition::Progressed { progress: Progress::new(3, 9, "a\\b c") },
            Transition::GivenBack { node: name() },
            Transition::Parked { node: name() },
            Transition::Reclaimed { node: name() },
            Transition::Deleted { by: name() },
            Transition::Requeued { by: name() },
            Transition::Published,
            Transition::Removed,
            Transition::Dropped,
        ];
        let imported = State::TIMED.map(|state| Transition::Imported { state });
        let commands = ["d", "c", "a", "q"].map(command_of).map(Option::unwrap);
        let waits = commands.map(|command| Transition::CommandWaits { command, by: name() });
        let causes = Cause::ALL.iter().copied().map(Some).chain([None]);
        let failed = causes.flat_map(|cause| {
            [Transition::Retried { cause, due: at, node: name() }, Transition::Dead { cause, node: name() }]
        });
        for made in moves.into_iter().chain(imported).chain(waits).chain(failed) {
            let text = made.written();
            assert!(!text.contains('\n'), "{text:?}");
            let fields: Vec<_> = text.split('\t').collect();
            assert_eq!(Transition::read(fields[0], fields[1], fields[2]), Some(made), "{text:?}");
            assert_eq!(fields.len(), 3, "{text:?}");
        }
        assert_eq!(Transition::read("", "", ""), None);
        assert_eq!(Transition::read("\u{e9}", "", ""), None);
    }
}
