/* dq: changes of a job that waits (rule 28 of README.md beside this file), for the model checker spin.
 *
 * One job, which nodes claim, ack, retry or lose in a crash.  One caller makes two numbered changes, in order, and may give the
 * first one up.  A second caller reads the version and changes the job under it.  A request may be answered; executed with its
 * answer lost; lost; or, once it was given up, executed at any later time ("late").  A payload is the number of the change that
 * brought it, and 0 is that of the add.
 *
 * All parts of the rule are on by default; each -D below takes one away (model.md says what the checker then finds).
 *   CHANGE_RUNNING  a change takes effect while the job runs
 *   NO_VERSION      a change that names another version takes effect
 *   NO_NUMBER       a repeated change takes effect again
 *   NO_LATE_NUMBER  a change below the highest executed number takes effect
 *   VERSION_STAYS   a change does not raise the version
 */
#ifndef FAULTS
#define FAULTS 3        /* requests lost, answers lost, requests late */
#endif
#ifndef RETRIES
#define RETRIES 2       /* runs that end in retry, or with their node */
#endif

#define WAITS 0
#define RUNS 1
#define GONE 2
#define FIRST 1         /* the two calls of the first caller, */
#define SECOND 2
#define RIVAL 3         /* and the one of the second */

byte place, version, payload;
byte seen;                      /* the payload that the run has */
byte top;                       /* the highest executed number of the first caller */
bool executed[4], changed[4];   /* the kept answers */
byte answered[4];               /* 1: refused, 2: changed, 3: late */
byte effects[4];
byte known;                     /* the version that the second caller has read */
byte since;                     /* how many changes took effect since then: only for the assertion */
bool given_up, late;
byte faults = FAULTS, retries = RETRIES;

inline effect(call) {
    effects[call]++;
    assert(effects[call] == 1);                         /* a call takes effect once */
    assert(call != FIRST || effects[SECOND] == 0);      /* and not behind a later one */
    assert(call != RIVAL || since == 0);                /* nobody changed the job since its version was read */
    payload = call;
    since++;
#ifndef VERSION_STAYS
    version++;
#endif
    changed[call] = true
}

#ifdef CHANGE_RUNNING
#define may_change (place != GONE)
#else
#define may_change (place == WAITS)
#endif
#ifdef NO_VERSION
#define is_wanted(call) true
#else
#define is_wanted(call) (call != RIVAL || known == version)
#endif
#ifdef NO_NUMBER
#define is_repeated(call) false
#else
#define is_repeated(call) executed[call]
#endif
#ifdef NO_LATE_NUMBER
#define is_late(call) false
#else
#define is_late(call) (call != RIVAL && !executed[call] && call < top)
#endif

inline execute(call) {
    if
    :: is_repeated(call) || is_late(call)
    :: else ->
        if :: may_change && is_wanted(call) -> effect(call) :: else fi;
        executed[call] = true;
        if :: call != RIVAL && call > top -> top = call :: else fi
    fi
}

inline answer(call) {
    answered[call] = (is_late(call) -> 3 : (changed[call] -> 2 : 1))
}

inline request(call) { /* the caller sends, or repeats, a call */
    if
    :: execute(call); answer(call)
    :: faults > 0 -> faults--; execute(call)
    :: faults > 0 -> faults--
    fi
}

active proctype Caller() {
    do
    :: atomic { !answered[FIRST] && !given_up -> request(FIRST) }
    :: atomic { !answered[FIRST] && !given_up && faults > 0 -> faults--; given_up = true; late = true }
    :: atomic { (answered[FIRST] || given_up) && !answered[SECOND] -> request(SECOND) }
    :: atomic { late -> late = false; execute(FIRST) }
    :: (answered[FIRST] || given_up) && answered[SECOND] && !late -> break
    od
}

active proctype Rival() {
    atomic { known = version; since = 0 };
    do
    :: atomic { !answered[RIVAL] -> request(RIVAL) }
    :: answered[RIVAL] -> break
    od
}

active proctype Nodes() {
    do
    :: atomic { place == WAITS -> place = RUNS; seen = payload }
    :: atomic { place == RUNS -> assert(seen == payload); place = GONE }        /* the acked run has seen every change */
    :: atomic { place == RUNS && retries > 0 -> retries--; place = WAITS }      /* retry, rollback, reclaim */
    :: place == GONE -> break
    od
}
