//! The moves in a message, as the part `moves.lua` writes them: a line with the clock and how many moves had no room, then a line for
//! each move. The fields of a line are separated by tabs, which no id has.

use crate::job::{Cause, JobId};
use crate::store::{CommandKind, CopyPlace, JobMove, Moves};
use crate::time::Timestamp;

/// The moves in a message. A line that does not parse counts among those without room.
pub(super) fn moves_of(message: &[u8]) -> Option<Moves> {
    let mut lines = std::str::from_utf8(message).ok()?.split('\n');
    let (at, more) = lines.next()?.split_once('\t')?;
    let mut moves = Moves { at: Timestamp::from_millis(at.parse().ok()?), moves: Vec::new(), more: more.parse().ok()? };
    for line in lines {
        match move_of(line) {
            Some(known) => moves.moves.push(known),
            None => moves.more += 1,
        }
    }
    Some(moves)
}

fn move_of(line: &str) -> Option<(JobId, JobMove)> {
    let mut fields = line.splitn(4, '\t');
    let (kind, time, name, id) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let due = time.parse().ok().map(Timestamp::from_millis);
    let (letter, detail) = kind.split_at_checked(1)?;
    let cause = || detail.parse::<usize>().ok().and_then(|number| Cause::ALL.get(number.checked_sub(1)?)).copied();
    let (by, node) = (name.to_owned(), name.to_owned());
    let known = match letter {
        "a" => JobMove::Added { due: due? },
        "i" => JobMove::Imported { place: place_of(detail)? },
        "v" => JobMove::ReplacementWaits,
        "s" => JobMove::Changed { due, by },
        "c" => JobMove::Claimed { due: due?, node },
        "k" => JobMove::Done { by },
        "r" => JobMove::Retried { cause: cause(), due: due?, node },
        "j" => JobMove::Rejoined { due: due?, node },
        "b" => JobMove::GivenBack { node },
        "p" => JobMove::Parked { node },
        "x" => JobMove::Dead { cause: cause(), node },
        "l" => JobMove::Reclaimed { node },
        "w" => JobMove::CommandWaits { command: command_of(detail)?, by },
        "d" => JobMove::Deleted { by },
        "q" => JobMove::Requeued { by },
        "o" => JobMove::Published,
        "g" => JobMove::Removed,
        "z" => JobMove::Dropped,
        _ => return None,
    };
    Some((JobId::new(id).ok()?, known))
}

fn place_of(letter: &str) -> Option<CopyPlace> {
    Some(match letter {
        "d" => CopyPlace::Delayed,
        "u" => CopyPlace::Unacked,
        "x" => CopyPlace::Dead,
        "f" => CopyPlace::Done,
        "b" => CopyPlace::Broadcast,
        _ => return None,
    })
}

fn command_of(letter: &str) -> Option<CommandKind> {
    Some(match letter {
        "d" => CommandKind::Delete,
        "c" => CommandKind::Cancel,
        "a" => CommandKind::Ack,
        "q" => CommandKind::Requeue,
        _ => return None,
    })
}
