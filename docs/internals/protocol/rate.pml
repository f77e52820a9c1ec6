/* dq: how many jobs all nodes claim within a period (rule 29 of README.md beside this file), for the model checker spin.
 *
 * Two nodes, jobs that are due, and a clock that ticks. The topic keeps the tick `opens` from which on the next job may be claimed. A node
 * transfers when it is woken or when its sleep ends; a run ends with an ack or with a retry that is due at once; nodes die. The clock ticks when no
 * node has anything to do at the present tick, so a node comes when it wants to. There is no fallback scan.
 *
 * No window of a period has more claims than the rate and its burst, and in the end no job is left.
 * All parts of the rule are on by default; each -D below takes one away (model.md says what the checker then finds).
 *   OWN_OPENS   each node keeps its own opening
 *   RETRY_FREE  a job that was claimed before spends nothing
 *   PILES_UP    a quiet time adds more than the burst
 *   NO_TIME     a node whose transfer finds the rate spent sleeps as if nothing were due
 *   NO_STANDBY  only the watcher comes when the rate opens
 */
#ifndef JOBS
#define JOBS 3
#endif
#ifndef RETRIES
#define RETRIES 2
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef BURST
#define BURST 1
#endif
#define NN 2
#define PERIOD 4
#define INTERVAL 2              /* so the rate is two a period */
#define MOST (PERIOD / INTERVAL + BURST)
#define LAST 20
#define NOBODY 7
#define NEVER 99

bool dead[NN], woken[NN];
byte sleeps[NN] = NEVER, rows[NN];
short opens[NN];                /* both are one number, but for OWN_OPENS */
byte due = JOBS, retried, retries = RETRIES, kills = KILLS, watcher = NOBODY, standby = NOBODY;
byte now = 10;
byte claimed[LAST + 11];        /* how many at each tick */

#ifdef OWN_OPENS
#define OPENS opens[n]
#else
#define OPENS opens[0]
#endif

inline in_window() {
    total = 0; at = (now >= PERIOD - 1 -> now - (PERIOD - 1) : 0);
    do
    :: at <= now -> total = total + claimed[at]; at++
    :: else -> break
    od;
    assert(total <= MOST)
}

inline transfer(n) {
    woken[n] = false; sleeps[n] = NEVER;
#ifndef PILES_UP
    OPENS = (OPENS < now - BURST * INTERVAL -> now - BURST * INTERVAL : OPENS);
#endif
    do
    :: due > 0 && OPENS <= now && rows[n] < 2 ->
        due--; rows[n]++; claimed[now]++;
#ifdef RETRY_FREE
        if
        :: retried > 0 -> retried--
        :: else -> OPENS = OPENS + INTERVAL
        fi
#else
        OPENS = OPENS + INTERVAL
#endif
    :: else -> break
    od;
    in_window();
    if
    :: watcher == NOBODY || dead[watcher] || watcher == n -> watcher = n;
        if
        :: standby == n -> standby = NOBODY
        :: else
        fi
    :: else ->
        if
        :: standby == NOBODY || dead[standby] -> standby = n
        :: else
        fi
    fi;
    if
    :: due > 0 && OPENS <= now -> woken[1 - n] = true           /* no permit: others come */
    :: due > 0 && OPENS > now ->
#ifndef NO_TIME
        if
        :: watcher == n -> sleeps[n] = OPENS
#ifndef NO_STANDBY
        :: standby == n -> sleeps[n] = OPENS + 1
#endif
        :: else
        fi
#else
        skip
#endif
    :: else
    fi
}

inline wake() {
    if
    :: watcher != NOBODY && !dead[watcher] -> woken[watcher] = true
    :: else -> watcher = NOBODY; woken[0] = true; woken[1] = true
    fi
}

#define BUSY(n) (!dead[n] && rows[n] < 2 && (woken[n] || sleeps[n] <= now))

proctype node(byte n) {
    short total; byte at;
end:
    do
    :: atomic { BUSY(n) -> transfer(n) }
    :: atomic { !dead[n] && rows[n] > 0 ->      /* settle */
        rows[n]--;
        if
        :: true -> skip
        :: retries > 0 -> retries--; retried++; due++;
            if
            :: due == 1 -> wake()
            :: else
            fi
        fi;
        if                                      /* it has room again */
        :: due > 0 && sleeps[n] == NEVER -> woken[n] = true
        :: else
        fi
       }
    :: atomic { !dead[n] && kills > 0 && !dead[1 - n] -> kills--; dead[n] = true; due = due + rows[n]; retried = retried + rows[n]; rows[n] = 0;
#ifndef NO_STANDBY
        if                                      /* the other one learns of it by the lease (rule 20) */
        :: due > 0 && sleeps[1 - n] == NEVER && standby != 1 - n -> woken[1 - n] = true
        :: else
        fi
#endif
       }
    od
}

proctype clock() {
end:
    do
    :: atomic { now < LAST + 10 && !BUSY(0) && !BUSY(1) && (rows[0] == 0 || dead[0]) && (rows[1] == 0 || dead[1]) -> now++ }
    od
}

active proctype quiet() {
end:
    do
    :: atomic { timeout -> assert(due == 0); break }
    od
}

init {
    atomic { woken[0] = true; woken[1] = true; run node(0); run node(1); run clock() }
}
