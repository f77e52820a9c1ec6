/* dq: which jobs of a group run (rule 4 of README.md beside this file), for the model checker spin.
 *
 * Two nodes, one group, and jobs that are due in the order of their numbers. A caller adds them in any order and deletes one, which may run then. A
 * run ends with an ack or with a retry; a node loses its lease, and its outcome comes late. A node transfers only when a signal has woken it:
 * there is no fallback scan and no repair.
 *
 * No more jobs than the limit run, and in the end no job is left.
 * All parts of the rule are on by default; each -D below takes one away (model.md says what the checker then finds).
 *   TWICE     a late outcome of a run that was reclaimed gives a seat back
 *   FORGET    the reclaim of a job that was deleted meanwhile keeps its seat
 *   NO_NEXT   the end of a run leaves the group full
 *   NO_SIGNAL the end of a run lets the next job come, and tells nobody
 *   NO_SWAP   a job that comes before the first one leaves that one claimable, and is claimable too, and a claim does not look at the seats
 */
#ifndef MOST
#define MOST 1
#endif
#define JOBS 3

mtype = {absent, waiting, running, held, gone};
mtype state[JOBS] = absent;
bool blocked[JOBS], ending[JOBS], woken = false;
byte by[JOBS], seats = 0, runs = 0, left = JOBS, retries = 1, losses = 1;
byte late = 99;                 /* the job of which an outcome comes late */

inline first_of() {
    f = 0;
    do
    :: f < JOBS && state[f] != waiting -> f++
    :: else -> break
    od
}

inline let_next() {
    first_of();
    if
    :: f < JOBS && blocked[f] -> blocked[f] = false;
#ifndef NO_SIGNAL
        woken = true
#endif
    :: else -> skip
    fi
}

inline seat_free() {
    seats--;
#ifndef NO_NEXT
    let_next()
#endif
}

inline start(j, n) {
    state[j] = running; by[j] = n; runs++;
    assert(runs <= MOST)
}

inline transfer(n) {
    woken = false; f = 0;
    do
    :: f < JOBS && state[f] == held -> start(f, n); f++
    :: f < JOBS && state[f] != held -> f++
    :: else -> break
    od;
    first_of(); g = f;
    if
#ifdef NO_SWAP
    :: g < JOBS && !blocked[g] -> seats++; start(g, n)
#else
    :: g < JOBS && !blocked[g] && seats < MOST -> seats++; start(g, n); first_of();
        if
        :: seats < MOST && f < JOBS && blocked[f] -> blocked[f] = false; woken = true
        :: else -> skip
        fi
    :: g < JOBS && !blocked[g] && seats >= MOST -> blocked[g] = true
#endif
    :: else -> skip
    fi
}

inline end_of(j, n) {
    runs--;
    if
    :: state[j] = gone; left--; seat_free()
    :: !ending[j] && retries > 0 -> retries--; state[j] = held; woken = true
    /* The lease ends, and another node reclaims the job. */
    :: losses > 0 -> losses--; late = j;
        if
        :: ending[j] -> state[j] = gone; left--;
#ifndef FORGET
            seat_free()
#endif
        :: else -> state[j] = held; woken = true
        fi
    fi
}

proctype Node(byte n) {
    byte f, g;
    do
    :: atomic { woken -> transfer(n) }
    :: atomic { state[0] == running && by[0] == n -> end_of(0, n) }
    :: atomic { state[1] == running && by[1] == n -> end_of(1, n) }
    :: atomic { state[2] == running && by[2] == n -> end_of(2, n) }
    :: atomic { late < JOBS -> late = 99;
#ifdef TWICE
        if
        :: seats > 0 -> seat_free()
        :: else -> skip
        fi
#endif
        }
    :: atomic { left == 0 -> break }
    od
}

inline add(j) {
    first_of(); state[j] = waiting;
    if
    :: f == JOBS -> blocked[j] = false; woken = true
    :: f < JOBS && j < f -> blocked[j] = false; woken = true;
#ifndef NO_SWAP
        blocked[f] = true
#endif
    :: else -> blocked[j] = true
    fi
}

proctype Caller() {
    byte f;
    do
    :: atomic { state[0] == absent -> add(0) }
    :: atomic { state[1] == absent -> add(1) }
    :: atomic { state[2] == absent -> add(2) }
    :: state[0] != absent && state[1] != absent && state[2] != absent -> break
    od;
    atomic { if
    :: state[0] == running || state[1] == running ->
        if
        :: state[0] == running -> ending[0] = true
        :: state[1] == running -> ending[1] = true
        fi
    :: state[0] == waiting -> state[0] = gone; left--; let_next()
    :: state[1] == waiting -> state[1] = gone; left--; let_next()
    :: else -> skip
    fi }
}

init {
    atomic { run Node(0); run Node(1); run Caller() };
    timeout -> assert(left == 0)
}
