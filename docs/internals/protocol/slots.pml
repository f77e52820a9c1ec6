/* dq: how many jobs are RUNNING on all nodes together (rule 29 of README.md beside this file), and how ticks pass that limit (rule 30),
 * for the model checker spin.
 *
 * Two nodes, jobs that are due, and fewer slots than jobs.  A node transfers when it is woken and has a permit; a run ends with an ack or
 * with a retry that is due at once; nodes die, and the other one reclaims.  There is no fallback scan and no signal is lost, so whoever
 * must act has to be woken.  With TICKS a schedule has so many ticks, each of which adds a job, and no run ends before the last tick has
 * come: so a tick that waited for a slot would wait for ever.
 *
 * No more jobs are RUNNING than may be, and when nobody has anything to do, no job and no tick is left.
 * All parts of the rule are on by default; each -D below takes one away (model.md says what the checker then finds).
 *   OWN_ROWS        a transfer counts the rows of its node, and not those of others
 *   NO_WAKE         who ends a run does not wake the watcher
 *   RECLAIM_SILENT  a reclaim does not
 *   COUNTER         slots are counted apart, and a reclaim forgets to give one back
 *   NO_NOTE         a transfer notes nothing where it has taken the last slots
 *   TICKS_WAIT      with TICKS: a transfer claims a tick only where a slot is free
 *   NO_TICK_TIME    with TICKS: where a topic waits for a slot, nobody comes for the next tick
 *   NO_MORE         with TICKS: a transfer that has claimed a tick does not answer *more*
 */
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef JOBS
#define JOBS 3
#endif
#ifndef RETRIES
#define RETRIES 2
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef TICKS
#define TICKS 0
#endif
#define NN 2
#define PERMITS 2
#define NOBODY 7

bool dead[NN], woken[NN];
byte rows[NN];
byte due = JOBS, retries = RETRIES, kills = KILLS, watcher = NOBODY;
byte taken;                     /* COUNTER: slots that are not free */
bool shut;
byte ticks = TICKS, ticking = NOBODY;   /* to come; who has claimed the schedule */
bool tick_due;

#define RUNNING (rows[0] + rows[1])

/* The watcher comes at once, or all nodes do where it does not listen. */
inline wake() {
    if
    :: watcher != NOBODY && !dead[watcher] -> woken[watcher] = true
    :: else -> watcher = NOBODY; woken[0] = true; woken[1] = true
    fi
}

inline slot_free() {
    if
    :: shut -> shut = false; wake()
    :: else
    fi
}

/* A job is due that was not: if it is the head, the watcher is told. */
inline put() {
    due++;
    if
    :: due == 1 -> wake()
    :: else
    fi
}

#define TICKS_LEFT (ticks > 0 || tick_due || ticking != NOBODY)
#ifdef TICKS_WAIT
#define may_tick (RUNNING < SLOTS)
#else
#define may_tick true
#endif

/* A transfer that finds a tick claims that alone, and the others with the next one. */
inline transfer(n) {
    woken[n] = false;
    if
    :: watcher == NOBODY || dead[watcher] -> watcher = n
    :: else
    fi;
    if
    :: tick_due && may_tick ->
        tick_due = false; ticking = n;
#ifndef NO_MORE
        woken[n] = true
#endif
    :: else -> claim(n)
    fi
}

inline claim(n) {
#if defined(OWN_ROWS)
    left = SLOTS - rows[n];
#elif defined(COUNTER)
    left = SLOTS - taken;
#else
    left = SLOTS - RUNNING;
#endif
    take = PERMITS - rows[n];
    take = (left < take -> left : take);
    take = (due < take -> due : take);
    due = due - take; rows[n] = rows[n] + take; taken = taken + take;
    assert(RUNNING <= SLOTS);
    if
    :: due > 0 && left == take ->   /* nobody comes for the head */
#ifndef NO_NOTE
        shut = true
#else
        skip
#endif
    :: else ->
        shut = false;
        if
        :: due > 0 -> woken[n] = true   /* *more*: with the next permit, */
            if
            :: watcher == n -> watcher = NOBODY; woken[1 - n] = true    /* or another node takes it */
            :: else
            fi
        :: else
        fi
    fi
}

proctype node(byte n) {
    short left; short take;
end:
    do
    :: atomic { !dead[n] && woken[n] && rows[n] < PERMITS -> transfer(n) }
    :: atomic { !dead[n] && ticking == n -> ticking = NOBODY; put() }       /* the tick adds its job */
    :: atomic { !dead[n] && dead[1 - n] && ticking == 1 - n -> ticking = NOBODY; tick_due = true; wake() }
    :: atomic { !dead[n] && rows[n] > 0 && !TICKS_LEFT ->       /* settle */
        rows[n]--; taken--;
        if
        :: true -> skip
        :: retries > 0 -> retries--; put()
        fi;
#ifndef NO_WAKE
        slot_free()
#endif
       }
    :: atomic { !dead[n] && watcher == 1 - n && dead[watcher] -> watcher = NOBODY; woken[n] = true }     /* its role lapses (rule 23) */
    :: atomic { !dead[n] && kills > 0 && !dead[1 - n] -> kills--; dead[n] = true }
    :: atomic { !dead[n] && dead[1 - n] && rows[1 - n] > 0 ->       /* reclaim */
        rows[1 - n]--; put();
#ifndef COUNTER
        taken--;
#endif
#ifndef RECLAIM_SILENT
        slot_free()
#endif
       }
    od
}

/* The watcher sleeps until the next tick. */
active proctype time() {
end:
    do
    :: atomic { ticks > 0 && !tick_due && ticking == NOBODY ->
        ticks--; tick_due = true;
        if
#ifdef NO_TICK_TIME
        :: shut -> skip
#endif
        :: else -> wake()
        fi
       }
    od
}

active proctype quiet() {
end:
    do
    :: atomic { timeout -> assert(due == 0 && !TICKS_LEFT); break }
    od
}

init {
    atomic { woken[0] = true; woken[1] = true; run node(0); run node(1) }
}
