/* dq: a pause of a topic (rule 29 of README.md beside this file), for the model checker spin.
 *
 * Two nodes and one job.  A caller pauses and resumes the topic, and ends with a resume.  Each change is signalled to both nodes, and
 * a signal may be lost.  A transfer is sent, executed and answered in three steps, so a pause may come between any two of them.  A
 * node sleeps until a signal wakes it, or until the fallback: that comes when nothing else can happen.
 *
 * All parts of the rule are on by default; each -D below takes one away (model.md says what the checker then finds).
 *   NO_GATE         a transfer claims while the topic is paused
 *   OLD_ANSWER      the answer to a transfer that left before the signal ends the pause for its node
 *   NO_GIVE_BACK    a node keeps what it has claimed and not started, and begins it
 *   NO_FALLBACK     nothing repairs a lost signal
 */
#ifndef FAULTS
#define FAULTS 2        /* signals lost */
#endif
#ifndef CHANGES
#define CHANGES 4       /* pauses and resumes */
#endif
#ifndef RETRIES
#define RETRIES 1       /* runs after which the job waits again */
#endif
#define NN 2

#define WAITS 0
#define HELD 1          /* claimed; the answer is on its way, or the node has not started */
#define RUNS 2
#define GONE 3

#define IDLE 0          /* of a transfer */
#define SENT 1
#define EXECUTED 2

bool paused;
byte place, holder;
byte transfer[NN];
bool old[NN];               /* the transfer left before the last signal of a pause */
bool brings[NN];            /* its answer brings the job */
bool tells[NN];             /* its answer tells of a pause */
bool holds[NN];             /* the node has the job, and has not started */
bool knows[NN];             /* the node knows of a pause */
bool wakes[NN] = true;
bool told_paused[NN], told_state[NN];   /* signals on their way */
bool aware[NN];             /* only for the assertion: the node knows of the pause that the topic has now */
byte faults = FAULTS, changes = CHANGES, retries = RETRIES, fallbacks = 3;

active proctype Caller() {
    do
    :: atomic { changes > 0 && !paused -> changes--; paused = true; told_paused[0] = true; told_paused[1] = true }
    :: atomic { paused ->
        if :: changes > 0 -> changes-- :: else fi;
        paused = false;
        aware[0] = false; aware[1] = false;
        told_state[0] = true; told_state[1] = true
       }
    :: !paused && (changes == 0 || place == GONE) -> break
    od
}

active [NN] proctype Node() {
    byte n = _pid - 1;      /* the caller is the first process */
    do
    :: atomic { told_paused[n] ->                                   /* a signal arrives, */
        told_paused[n] = false; knows[n] = true; aware[n] = paused; wakes[n] = true;
        old[n] = (transfer[n] != IDLE)
       }
    :: atomic { told_state[n] -> told_state[n] = false; wakes[n] = true }
    :: atomic { told_paused[n] && faults > 0 -> faults--; told_paused[n] = false }     /* or does not */
    :: atomic { told_state[n] && faults > 0 -> faults--; told_state[n] = false }
    :: atomic { wakes[n] && transfer[n] == IDLE -> wakes[n] = false; transfer[n] = SENT; old[n] = false }
    :: atomic { transfer[n] == SENT ->
        transfer[n] = EXECUTED; tells[n] = paused;
        if
#ifdef NO_GATE
        :: place == WAITS ->
#else
        :: place == WAITS && !paused ->
#endif
            assert(!paused);            /* nothing is claimed under a pause */
            place = HELD; holder = n; brings[n] = true
        :: else
        fi
       }
    :: atomic { transfer[n] == EXECUTED ->
        transfer[n] = IDLE;
        if
        :: tells[n] -> knows[n] = true; aware[n] = aware[n] || paused
#ifdef OLD_ANSWER
        :: !tells[n] -> knows[n] = false
#else
        :: !tells[n] && !old[n] -> knows[n] = false
        :: !tells[n] && old[n] && knows[n] -> wakes[n] = true       /* it asks again */
        :: !tells[n] && old[n] && !knows[n]
#endif
        fi;
        holds[n] = holds[n] || brings[n];
        brings[n] = false; tells[n] = false; old[n] = false
       }
#ifdef NO_GIVE_BACK
    :: atomic { holds[n] ->
#else
    :: atomic { holds[n] && !knows[n] ->
#endif
        assert(!(paused && aware[n]));  /* no handler begins under a pause that its node knows of */
        holds[n] = false; place = RUNS
       }
    :: atomic { holds[n] && knows[n] ->
        holds[n] = false; place = WAITS; wakes[n] = true
       }
    :: atomic { place == RUNS && holder == n ->
        if
        :: retries > 0 -> retries--; place = WAITS; wakes[n] = true
        :: place = GONE
        fi
       }
    :: place == GONE && !told_paused[n] && !told_state[n] && transfer[n] == IDLE && !wakes[n] -> break
    od
}

active proctype Fallback() {
    do
#ifndef NO_FALLBACK
    :: atomic { timeout && fallbacks > 0 && place != GONE -> fallbacks--; wakes[0] = true; wakes[1] = true }
    :: atomic { timeout && (fallbacks == 0 || place == GONE) -> assert(place == GONE); break }
#else
    :: atomic { timeout -> assert(place == GONE); break }
#endif
    od
}
