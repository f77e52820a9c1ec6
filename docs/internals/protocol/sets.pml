/* dq: job sets (rule 18 of README.md beside this file), for the model checker spin.
 *
 * A caller adds two members to a set and closes it.  It may die after any step, and then begins again.  The set registers each member
 * once and adds it to another topic, whose follow-ups come back in their order (outbox.pml has how).  The run of the first member adds a third
 * one before it ends.  The last job is added exactly once, after every member has ended.
 *
 * All parts of the rule are on by default; each -D below takes one away (model.md says what the checker then finds).
 *   EARLY         the set does not wait until it is closed
 *   NO_MEMORY     the set is forgotten when it has ended
 *   NO_ROWS       the set counts its members and does not know which they are
 *   ADD_APART     the caller registers a member in one step and adds the job in another
 *   END_APART     the end of a member is written in a step of its own
 *   END_FIRST     the end of a run is written before the members that it adds
 */
#ifndef FAULTS
#define FAULTS 2        /* how often callers and nodes die */
#endif
#define ADD 1
#define END 2

/* The set, at home. */
bool is_member[4], has_ended[4];
byte members, ended;
bool closed, done;
byte thens;
bool adds[4];           /* its outbox: members that have not arrived in their topic */

/* The topic of the members. */
bool waits[4], was_there[4];
bool owes[4];           /* END_APART: the end is not written yet */
chan outbox = [8] of { byte, byte };
byte faults = FAULTS;

inline complete() {
    if
#ifdef EARLY
    :: !done && members > 0 && ended == members ->
#else
    :: !done && closed && ended == members ->
#endif
        thens++;
        assert(thens == 1);
        assert(!waits[1] && !waits[2] && !waits[3] && !adds[1] && !adds[2] && !adds[3]);
        assert(was_there[1] && was_there[2] && was_there[3]);
#ifdef NO_MEMORY
        closed = false; members = 0; ended = 0;
        for (i : 1 .. 3) { is_member[i] = false; has_ended[i] = false }
        i = 0
#else
        done = true
#endif
    :: else
    fi
}

inline register(m, sends) {
    if
#ifdef NO_ROWS
    :: !done && !has_ended[m] ->
#else
    :: !done && !is_member[m] ->
#endif
        is_member[m] = true; members++;
        if
        :: sends -> adds[m] = true
        :: else
        fi
    :: else
    fi
}

#ifdef ADD_APART
#define SENDS false
#else
#define SENDS true
#endif

active proctype Caller() {
    byte i, m = 1;
    bool sent;
    do
    :: atomic { m <= 2 && !sent -> sent = is_member[m]; register(m, SENDS); sent = !sent && !SENDS; if :: !sent -> m++ :: else fi }
#ifdef ADD_APART
    :: atomic { m <= 2 && sent -> adds[m] = true; sent = false; m++ }
#endif
    :: atomic { m == 3 -> closed = true; complete(); m = 4 }
    :: atomic { faults > 0 -> faults--; m = 1; sent = false }
    :: atomic { m == 4 -> break }
    od
}

active proctype Members() {
    byte m;
end:
    do
    :: atomic { adds[1] -> adds[1] = false; waits[1] = true; was_there[1] = true }
    :: atomic { adds[2] -> adds[2] = false; waits[2] = true; was_there[2] = true }
    :: atomic { adds[3] -> adds[3] = false; waits[3] = true; was_there[3] = true }
    :: atomic { waits[1] -> waits[1] = false;
#ifdef END_FIRST
        outbox ! END, 1; outbox ! ADD, 3
#else
        outbox ! ADD, 3;
#ifdef END_APART
        owes[1] = true
#else
        outbox ! END, 1
#endif
#endif
       }
    :: atomic { waits[2] || waits[3] -> m = (waits[2] -> 2 : 3); waits[m] = false;
#ifdef END_APART
        owes[m] = true;
#else
        outbox ! END, m;
#endif
        m = 0
       }
#ifdef END_APART
    :: atomic { owes[1] || owes[2] || owes[3] -> m = (owes[1] -> 1 : (owes[2] -> 2 : 3)); owes[m] = false; outbox ! END, m; m = 0 }
    :: atomic { faults > 0 && (owes[1] || owes[2] || owes[3]) -> faults--; owes[1] = false; owes[2] = false; owes[3] = false }  /* the node dies */
#endif
    od
}

active proctype Home() {
    byte what, m, i;
end:
    do
    :: atomic { outbox ? what, m ->
        if
        :: what == ADD -> register(m, true)
        :: what == END && is_member[m] && !has_ended[m] -> has_ended[m] = true; ended++
        :: else
        fi;
        complete(); what = 0; m = 0
       }
    od
}

/* When nothing can move any more, the last job has been added. */
active proctype Watch() {
    atomic { timeout; assert(thens == 1) }
}
