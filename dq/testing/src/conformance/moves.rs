//! Every move in the table of `job/state.rs`: a store ends up where [`State::apply`] says (rule 2).

use super::events::{NODE, cause, prepare};
use super::topic::Topic;
use dq::job::State;
use dq::job::state::Event;
use dq::store::CommandKind;

/// Every event that a producer or a node can cause.
pub(crate) const EVENTS: [Event; 27] = [
    Event::Transferred,
    Event::Swept,
    Event::Acked { retain: false },
    Event::Acked { retain: true },
    Event::Rejoined,
    Event::Retried,
    Event::RolledBack { parked: false },
    Event::RolledBack { parked: true },
    Event::Reclaimed { parked: false, final_isolated: false },
    Event::Reclaimed { parked: true, final_isolated: false },
    Event::Reclaimed { parked: false, final_isolated: true },
    Event::Parked,
    Event::Died,
    Event::Dropped,
    Event::Ticked { ended: false },
    Event::Ticked { ended: true },
    Event::EndedByCommand { retain: false },
    Event::EndedByCommand { retain: true },
    Event::Replaced,
    Event::Requeued,
    Event::Rescheduled,
    Event::Updated,
    Event::Deleted,
    Event::AckedFromOutside { retain: false },
    Event::AckedFromOutside { retain: true },
    Event::Pruned,
    Event::GivenUp,
];

/// Every legal event in every state leads to the state in the table (rule 2).
pub async fn every_legal_move_ends_where_the_table_says(t: &Topic) {
    for state in State::ALL {
        for event in EVENTS {
            let Ok(after) = state.apply(event) else { continue };
            if (state, event) == (State::Done, Event::Replaced) {
                continue; // an add over a DONE job is an add, see `duplicates`
            }
            let claim = prepare(t, "a", state, event).await;
            assert_eq!(t.state("a").await, Some(state), "before {event:?}");
            cause(t, "a", claim.as_ref(), event).await;
            assert_eq!(t.state("a").await, after, "{state} {event:?}");
            clear(t).await;
        }
    }
}

/// A command that the table does not allow changes nothing, and its answer shows that (rule 2).
pub async fn command_that_is_no_legal_move_changes_nothing(t: &Topic) {
    let verbs = [
        (CommandKind::Requeue, Event::Requeued),
        (CommandKind::Delete, Event::Deleted),
        (CommandKind::Cancel, Event::Deleted),
        (CommandKind::Ack, Event::AckedFromOutside { retain: false }),
    ];
    for state in State::ALL {
        for (verb, event) in verbs {
            let pending = state == State::Running && verb != CommandKind::Requeue;
            if state.apply(event).is_ok() || pending {
                continue;
            }
            prepare(t, "a", state, event).await;
            let before = t.stored("a").await;
            let outcome = t.command(verb, "a", None).await;
            assert_eq!((outcome.found, outcome.changed), (Some(state), false), "{verb:?} of a {state} job");
            assert_eq!(outcome.removed, None);
            assert_eq!(t.stored("a").await, before);
            clear(t).await;
        }
    }
}

/// Removes the job of a case, whatever its state.
async fn clear(t: &Topic) {
    if t.state("a").await == Some(State::Running) {
        t.delete("a").await;
        t.crash(NODE).await;
    } else {
        t.delete("a").await;
    }
    assert_eq!(t.find("a").await, None);
}
