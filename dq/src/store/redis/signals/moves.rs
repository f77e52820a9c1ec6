//! The moves in a message, as the part `recorder.lua` writes them: a line with the clock and how many moves had no room, then a line for
//! each move. The fields of a line are separated by tabs, which no id has.

use crate::job::JobId;
use crate::store::{JobMove, Moves};
use crate::time::Timestamp;

/// The moves in a message. A line that does not parse counts among those without room.
pub(super) fn moves_of(message: &[u8]) -> Option<Moves> {
    let mut lines = std::str::from_utf8(message).ok()?.split('\n');
    let (at, more) = lines.next()?.split_once('\t')?;
    let mut moves = Moves {
        at: Timestamp::from_millis(at.parse().ok()?),
        moves: Vec::new(),
        more: more.parse().ok().map(u32::into)?,
    };
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
    let known = JobMove::read(kind, time, name)?;
    Some((JobId::new(id).ok()?, known))
}
