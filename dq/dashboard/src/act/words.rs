//! What each change is called.

/// What a change is called, does, and is undone by.
#[derive(Debug)]
pub(super) struct Word {
    pub(super) action: &'static str,
    pub(super) verb: &'static str,
    pub(super) what: &'static str,
    pub(super) done: &'static str,
    pub(super) undo: &'static str,
    /// The action that undoes it at once.
    pub(super) reverse: &'static str,
    pub(super) needs_reason: bool,
}

impl Word {
    pub(super) fn of(action: &str) -> Option<&'static Self> {
        WORDS.iter().find(|word| word.action == action)
    }
}

const fn word(
    action: &'static str,
    verb: &'static str,
    what: &'static str,
    done: &'static str,
    undo: &'static str,
) -> Word {
    Word { action, verb, what, done, undo, reverse: "", needs_reason: false }
}

const WORDS: [Word; 16] = [
    Word {
        reverse: "resume",
        needs_reason: true,
        ..word(
            "pause",
            "Pause the topic",
            "Nodes take no more jobs of it. Running jobs continue.",
            "The topic is paused.",
            "resume it",
        )
    },
    Word {
        reverse: "pause",
        ..word("resume", "Resume the topic", "Nodes take its jobs again.", "The topic is resumed.", "pause it again")
    },
    Word {
        reverse: "undrain",
        needs_reason: true,
        ..word(
            "drain",
            "Drain the topic",
            "It refuses new jobs, and nodes run only jobs that are due already.",
            "The topic drains.",
            "end the drain",
        )
    },
    Word {
        reverse: "drain",
        ..word("undrain", "End the drain", "The topic takes new jobs again.", "The drain has ended.", "drain it again")
    },
    Word {
        needs_reason: true,
        ..word(
            "limit",
            "Set the limit",
            "It applies on all nodes and to all producers, and overrides the code.",
            "The limit is set.",
            "set the previous limit again, or clear it",
        )
    },
    word(
        "clear_limit",
        "Clear the limit",
        "The limit in the code of nodes and producers applies again.",
        "The limit was cleared.",
        "set it again",
    ),
    word(
        "requeue",
        "Requeue",
        "It becomes due now, with all its attempts.",
        "The job was requeued.",
        "delete it before a node takes it",
    ),
    word("delete", "Delete", "The job is removed; a running one when its run ends.", "The job was deleted.", ""),
    word("ack", "Ack", "The job counts as done, and its handler does not see it again.", "The job was acked.", ""),
    Word {
        reverse: "reschedule",
        ..word(
            "run_now",
            "Run now",
            "It becomes due now, and the next free node takes it.",
            "The job is due now.",
            "move it back to its previous due time before a node takes it",
        )
    },
    Word {
        reverse: "reschedule",
        ..word(
            "reschedule",
            "Reschedule",
            "It gets another due time.",
            "The job has another due time.",
            "move it back to its previous due time",
        )
    },
    Word {
        reverse: "resume_schedule",
        needs_reason: true,
        ..word(
            "pause_schedule",
            "Pause the schedule",
            "It adds no jobs until you resume it.",
            "The schedule is paused.",
            "resume it",
        )
    },
    Word {
        reverse: "pause_schedule",
        ..word(
            "resume_schedule",
            "Resume the schedule",
            "It adds jobs again.",
            "The schedule is resumed.",
            "pause it again",
        )
    },
    word(
        "remove_schedule",
        "Remove the schedule",
        "It adds no more jobs. The jobs that it added stay.",
        "The schedule was removed.",
        "",
    ),
    Word {
        reverse: "resume_group",
        needs_reason: true,
        ..word(
            "pause_group",
            "Pause the group",
            "Nodes take no more jobs of it. Running jobs end as usual.",
            "The group is paused.",
            "resume it",
        )
    },
    word(
        "resume_group",
        "Resume the group",
        "Its pause ends. If it is not paused, it passes the jobs that stop it, which stay as they are.",
        "The group is resumed.",
        "",
    ),
];
