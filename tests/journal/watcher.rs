//! Whoever looks at a journal again and again beside the program that writes it, as a view does.

use dq::store::file::journal::{Follower, Frame, Journal, OpenError, Position};
use dq_testing::disk::SimulatedDisk;

use crate::history::State;

/// What was read so far.
#[derive(Debug, Default)]
pub struct Watcher {
    seen: Option<(Follower, State)>,
    /// How often it read from the beginning.
    pub readings: usize,
}

fn into(state: &mut State) -> impl FnMut(Position, Frame<'_>) -> Result<(), std::io::Error> {
    |_, frame| {
        state.apply(&frame);
        Ok(())
    }
}

impl Watcher {
    /// The state that the files have now: it reads on if they continue what it has read, and otherwise from the beginning.
    fn look(&mut self, disk: &SimulatedDisk) -> Result<State, OpenError> {
        let mut followed = self.seen.take();
        if let Some((follower, state)) = &mut followed
            && !matches!(follower.read_on(disk, into(state)), Ok(true))
        {
            followed = None;
        }
        if followed.is_none() {
            let mut state = State::default();
            let follower = Journal::follow(disk, into(&mut state))?;
            self.readings += 1;
            followed = follower.map(|follower| (follower, state));
        }
        self.seen = followed;
        Ok(self.seen.as_ref().map(|(_, state)| state.clone()).unwrap_or_default())
    }

    /// Looks, and sees what someone sees who reads the files for the first time. Returns that.
    pub fn check(&mut self, disk: &SimulatedDisk, what: &str) -> State {
        let mut fresh = State::default();
        Journal::read(disk, into(&mut fresh)).unwrap_or_else(|error| panic!("{what}: {error}"));
        let seen = self.look(disk).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(seen, fresh, "{what}");
        fresh
    }
}
