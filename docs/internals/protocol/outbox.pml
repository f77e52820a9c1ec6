/* dq: follow-ups (rule 18 of README.md beside this file), for the model checker spin.
 *
 * Runs of a source topic settle with a follow-up each, which goes into the outbox of the source.  Two relays read the first entry, send it
 * to the target, and remove what has arrived.  A sent entry is executed and answered; executed with its answer lost; lost; or executed at
 * any later time ("late").  A relay may die at any time, and begin again.  The store falls back to an earlier state: source and target to
 * one moment of both, with ALONE the source without the target, or with APART, where each has a master of its own, either of the two.
 * Runs whose outcome was lost then settle again.  With WAIT the replicas of the target have what it has answered.  With FALLS the clock of
 * the source falls back with it, with PIPES a relay sends two entries without waiting in between, and with IMPORTS an import leaves the target a position that is above all others, at any moment.
 * With UNREADABLE=n no relay can read the entry of outcome n: it stays in the outbox, and does not arrive.
 *
 * An entry goes in two requests: one looks at the position of the target, and one removes the entry.  On one server both go over one
 * connection, which a failover breaks.
 *
 * Each follow-up of an outcome that stands arrives exactly once, and that of a lost outcome at most once; with LOSES each at most once.
 * Each time that a relay sets the target back, a follow-up may arrive once more.  No entry waits for one that is lost.
 * All parts of the rule are on by default; each -D below takes one away (model.md says what the checker then finds).
 *   NO_POSITION     the target keeps no position
 *   POSITION_LATER  the target keeps it in a step of its own, after it has added the job
 *   REMOVE_FIRST    the relay removes the entry before the target has it
 *   BLIND           the store removes what the relay says has arrived, and does not look at the position of the target
 *   TWO_LINES       looking and removing may go over two connections
 *   UNCONFIRMED     (APART WAIT) what an entry is removed by is its position in the target alone, and not the answer to the relay
 *   NO_SKIP         (APART LOSES) an entry that its target refuses again, because one before it is missing there and in the outbox, waits
 *   SILENT          (APART WAIT) an entry that comes again writes nothing, so its answer is not waited for
 *   OUTCOME_FIRST   the outcome is settled in a step of its own, before the follow-up is written
 *   COUNTER         the next position is the last one and one more, whatever the clock says
 *   NO_AFTER        an entry does not name the one before it
 *   NO_AHEAD        (ALONE FALLS, IMPORTS) a target with a position that the source does not know is not set back: what it answers as late goes
 *   LOOSE           (ALONE FALLS PIPES) an entry is executed also where the target has a later position than the one before it
 *   NO_WRITTEN      (ALONE FALLS) a position alone tells an entry, and not when it was written
 *   LAST_ONLY       (ALONE FALLS) it is set back only if its position is above the last one of the source
 *   NO_PASS         (UNREADABLE) an entry that cannot be read is not passed over
 *   NAMES_IT        (UNREADABLE NO_SKIP) the entry behind it names it, as it was written
 */
#ifndef RUNS
#define RUNS 2
#endif
#ifndef FAULTS
#define FAULTS 2        /* answers lost, requests lost or late, relays that die */
#endif
#ifndef FAILOVERS
#define FAILOVERS 1
#endif
#define MOST (RUNS * (FAILOVERS + 1))
#define NR 2
#define E(n) (LAST >= n -> n : 1)
#define LAST (MOST + 1)
/* When an entry was written is the number of its outcome: no two have the same. */
#ifdef NO_WRITTEN
#define WRITTEN(o) 0
#else
#define WRITTEN(o) o
#endif
#ifndef UNREADABLE
#define UNREADABLE 255
#endif
#define IS_KNOWN (seen <= LAST && source.entry[(seen <= LAST -> seen : 0)] != 0 && WRITTEN(source.entry[(seen <= LAST -> seen : 0)]) == seen_written)
#define READABLE(n) (source.entry[n] != 0 && source.entry[n] != UNREADABLE)
#define IS_UNREADABLE(n) (source.entry[n] == UNREADABLE)
#define ANY(is) (is(1) || is(2) || is(E(3)) || is(E(4)) || is(E(5)) || is(E(6)) || is(E(7)) || is(E(8)) || is(E(9)))
#ifdef NO_PASS
#define WAITS (ANY(READABLE) && !ANY(IS_UNREADABLE))
#else
#define WAITS ANY(READABLE)
#endif

/* The source.  An entry has the number of its outcome; position 0 is before all.  A position and when its entry was written are read, kept and
 * compared together. */
typedef Source { byte entry[LAST + 1]; byte after[LAST + 1]; byte after_written[LAST + 1]; byte last; byte last_written; byte settled }
typedef Target { byte position; byte written; byte got[MOST + 1] }
Source source, old_source;
Target target, old_target;
byte outcomes, old_outcomes;    /* how many there have ever been */
byte clock, old_clock;          /* positions that it has passed */
byte set_backs;                 /* how often a target was set back */
bool stands[MOST + 1];
bool has_old;
byte faults = FAULTS, failovers = FAILOVERS;

#ifdef LOOSE
#define REFUSED (a > target.position)
#else
#define REFUSED (a != 0 && (a != target.position || w != target.written))
#endif

#ifdef SILENT
#define CONFIRMS is_new
#else
#define CONFIRMS true
#endif

byte late_at, late_outcome, late_after, late_after_written;
byte owed;                      /* OUTCOME_FIRST: an outcome whose follow-up is not written yet */
bool is_new;                    /* WAIT: an execution has written */
bool moves;                     /* POSITION_LATER: a position that is not kept yet */
byte moves_to, moves_written;

inline write_entry(o) {
    clock++;
#ifdef COUNTER
    at = source.last + 1;
#else
    at = (clock > source.last + 1 -> clock : source.last + 1);
#endif
    source.entry[at] = o; source.after[at] = source.last; source.after_written[at] = source.last_written;
    source.last = at; source.last_written = WRITTEN(o); at = 0
}

inline copy_source(to, from) {
    for (i : 0 .. LAST) { to.entry[i] = from.entry[i]; to.after[i] = from.after[i]; to.after_written[i] = from.after_written[i] }
    to.last = from.last; to.last_written = from.last_written; to.settled = from.settled; i = 0
}
inline copy_target(to, from) {
    for (i : 0 .. MOST) { to.got[i] = from.got[i] }
    to.position = from.position; to.written = from.written; i = 0
}

/* The replicas of the target have what it has. */
inline confirm() {
#ifdef WAIT
    if
    :: has_old && CONFIRMS -> copy_target(old_target, target)
    :: else
    fi;
#endif
    is_new = false
}

/* The entry before one that can be read. */
inline pass_over(before, before_written) {
#ifdef NAMES_IT
    skip
#else
    do
    :: before != 0 && source.entry[before] == UNREADABLE -> before_written = source.after_written[before]; before = source.after[before]
    :: else -> break
    od
#endif
}

/* The target executes an entry.  `arrived`: it has it now, or had it before. */
inline execute(p, o, a, w, arrived) {
    if
#ifndef NO_POSITION
    :: p <= target.position -> arrived = true
#ifndef NO_AFTER
    :: p > target.position && REFUSED -> arrived = false    /* it does not follow the one before it: read the outbox again */
    :: p > target.position && !(REFUSED) ->
#else
    :: p > target.position ->
#endif
#else
    :: true ->
#endif
        target.got[o]++; arrived = true; is_new = true;
#ifdef POSITION_LATER
        moves = true; moves_to = p; moves_written = WRITTEN(o)
#else
        target.position = p; target.written = WRITTEN(o)
#endif
    fi
}

active [RUNS] proctype Run() {
    byte at;
end:
    do
    :: atomic { source.settled < RUNS && owed == 0 && clock < MOST ->
        source.settled++; outcomes++; stands[outcomes] = true;
#ifdef OUTCOME_FIRST
        owed = outcomes
#else
        write_entry(outcomes)
#endif
       }
#ifdef OUTCOME_FIRST
    :: atomic { owed != 0 -> write_entry(owed); owed = 0 }
    :: atomic { owed != 0 && faults > 0 -> faults--; owed = 0 }     /* the node dies */
#endif
    od
}

#if defined(BLIND)
#define MAY_REMOVE true
#elif defined(APART) || defined(TWO_LINES)
#define MAY_REMOVE (looked != 0)
#else
#define MAY_REMOVE (looked == 1 + failovers)
#endif

active [NR] proctype Relay() {
    byte p, o, a, w, i;
    byte early;         /* the target has refused this first entry */
    byte seen, back;    /* the position of the target when it looked, and the one to which it sets that back */
    byte seen_written, back_written;
    byte looked;        /* 1 + the failovers to come when the target had it by its own position */
    bool arrived;
#ifdef PIPES
    byte second, second_o, second_a, second_w;    /* the entry behind the first one, which it has sent */
    bool ignored;
#endif
end:
    do
    :: atomic { p == 0 && WAITS ->      /* read the first entry */
        for (i : 1 .. LAST) {
            if
            :: READABLE(i) && p == 0 -> p = i; o = source.entry[i]; a = source.after[i]; w = source.after_written[i]
            :: else
            fi
        }
        i = 0;
        pass_over(a, w);
#ifndef NO_SKIP
        if
        :: early == p -> a = 0; w = 0      /* the outbox does not have the one before it any more */
        :: else
        fi;
#endif
#ifdef REMOVE_FIRST
        source.entry[p] = 0
#endif
       }
    :: atomic { p != 0 && !arrived -> execute(p, o, a, w, arrived);
        if
        :: !arrived -> assert(early != p); early = p; p = 0; o = 0; a = 0; w = 0
        :: else -> confirm(); early = 0
        fi
       }
#ifdef PIPES
    :: atomic { p != 0 && second == 0 ->          /* it sends the entry behind the first one, too, and does not wait in between */
        for (i : p + 1 .. LAST) {
            if
            :: READABLE(i) && second == 0 -> second = i
            :: else
            fi
        }
        i = 0;
        if
        :: second != 0 -> second_o = source.entry[second]; second_a = source.after[second]; second_w = source.after_written[second]; pass_over(second_a, second_w);
            execute(second, second_o, second_a, second_w, ignored); is_new = false; ignored = false; second_o = 0; second_a = 0; second_w = 0
        :: else -> second = LAST
        fi
       }
    :: atomic { p == 0 && second != 0 -> second = 0 }
#endif
#ifndef BLIND
    :: atomic { p != 0 && arrived && looked == 0 ->
        if
        :: p <= target.position -> looked = 1 + failovers; seen = target.position; seen_written = target.written
        :: else -> p = 0; o = 0; a = 0; w = 0; arrived = false
        fi
       }
#if !defined(APART) && !defined(TWO_LINES)
    :: atomic { looked > 1 + failovers && back == 0 -> looked = 0; seen = 0; seen_written = 0 }  /* the connection broke */
#endif
#endif
    :: atomic { p != 0 && arrived && MAY_REMOVE && back == 0 ->
#ifndef NO_AHEAD
        for (i : 1 .. LAST) {
            if
            :: READABLE(i) && back == 0 -> back = 1 + source.after[i]; back_written = source.after_written[i]
            :: else
            fi
        }
        i = 0;
        if
#ifdef LAST_ONLY
        :: seen <= source.last -> back = 0; back_written = 0
#endif
        :: back == 0 || seen < back || IS_KNOWN -> back = 0; back_written = 0
        :: else         /* the target has a position that the source does not know: the next step sets it back */
        fi;
#endif
        if
        :: back != 0
        :: else ->
            if
            :: source.entry[p] == o -> source.entry[p] = 0
            :: else
            fi;
            p = 0; o = 0; a = 0; w = 0; looked = 0; seen = 0; seen_written = 0; arrived = false
        fi
       }
#ifndef NO_AHEAD
    :: atomic { back != 0 ->
        if
        :: target.position == seen && target.written == seen_written -> target.position = back - 1; target.written = back_written; set_backs++
        :: else
        fi;
        back = 0; back_written = 0; p = 0; o = 0; a = 0; w = 0; looked = 0; seen = 0; seen_written = 0; arrived = false
       }
#endif
    :: atomic { p != 0 && !arrived && faults > 0 -> faults--; execute(p, o, a, w, arrived); is_new = false;    /* the answer is lost */
#ifndef UNCONFIRMED
        arrived = false
#endif
       }
    :: atomic { p != 0 && !arrived && faults > 0 && late_at == 0 -> faults--; late_at = p; late_outcome = o; late_after = a; late_after_written = w }
    :: atomic { p != 0 && faults > 0 -> faults--; p = 0; o = 0; a = 0; w = 0; looked = 0; seen = 0; seen_written = 0; back = 0; back_written = 0; arrived = false }       /* it dies */
    od
}

active proctype Late() {
    bool arrived;
end:
    do
    :: atomic { late_at != 0 -> execute(late_at, late_outcome, late_after, late_after_written, arrived); is_new = false; late_at = 0; late_outcome = 0; late_after = 0; late_after_written = 0; arrived = false }
    :: atomic { moves -> target.position = moves_to; target.written = moves_written; moves = false; moves_to = 0; moves_written = 0 }
    od
}

/* A replica falls behind at some moment, and takes over at a later one. */
active proctype Failover() {
    byte i;
end:
    do
    :: atomic { failovers > 0 && !has_old -> has_old = true; copy_source(old_source, source); copy_target(old_target, target); old_outcomes = outcomes; old_clock = clock }
    :: atomic { has_old && failovers > 0 -> failovers--;
        has_old = false;
        if
        :: true -> owed = 0;
            copy_source(source, old_source);
#ifdef FALLS
            clock = old_clock;
#endif
#if !defined(ALONE) && !defined(APART)
            copy_target(target, old_target);
#endif
            for (i : old_outcomes + 1 .. outcomes) { stands[i] = false }
            i = 0
#ifdef APART
        :: true -> copy_target(target, old_target)
#endif
        fi
       }
    od
}

#ifdef IMPORTS
active proctype Import() {
    atomic { target.position = LAST + 1; target.written = 0 }
}
#endif

/* When nothing can move any more, each follow-up has arrived. */
active proctype Watch() {
    byte i;
    atomic {
        timeout;
        for (i : 1 .. outcomes) {
            assert(target.got[i] <= 1 + set_backs)
#ifndef LOSES
            assert(!stands[i] || target.got[i] >= 1 || i == UNREADABLE)
#endif
        }
    }
}
