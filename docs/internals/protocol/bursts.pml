/* dq: what holds a group back, and when it borrows (rules 4 and 29 of README.md beside this file), for the model checker spin.
 *
 * Two groups with jobs that are due, one node with a few permits, and a clock that ticks while a group waits for its rate. A group has MOST seats of
 * its own and borrows BURST more; it has a rate of one job an interval and RATE_BURST more. A caller pauses and resumes the first group. A run ends
 * with an ack or with a retry that keeps its seat. There is no fallback scan.
 *
 * No job of a paused group is claimed, no window of an interval has more claims of a group than its rate and its burst, a group borrows only while
 * nothing else is due and nothing of it waits with a seat, never more than its burst, and in the end no job is left.
 * All parts of the rules are on by default; each -D below takes one away (model.md says what the checker then finds).
 *   NO_PAUSE    a claim sees no pause of a group
 *   SILENT      a resume does not let the first job of the group come
 *   FREE_LOAN   what a group borrows spends nothing of its rate
 *   NO_TIME     no node comes when the rate of a group opens
 *   ENDLESS     a group borrows as much as there is
 *   EAGER       a group borrows while something else is due
 *   PASSES      a group borrows while it waits for a job with a seat
 *   STAYS       an end of a run leaves the first job of a group that borrowed behind everything else
 */
#ifndef MOST
#define MOST 1
#endif
#ifndef BURST
#define BURST 1
#endif
#ifndef PERMITS
#define PERMITS 3
#endif
#ifndef JOBS
#define JOBS 4
#endif
#ifndef CHANGES
#define CHANGES 2               /* pauses */
#endif
#ifndef RATE_BURST
#define RATE_BURST 2
#endif
#define GROUPS 2
#define INTERVAL 2
#define WINDOW (1 + RATE_BURST) /* claims in an interval */
#define START 10
#define LAST 60

#define NOWHERE 0               /* where the first job of a group stands: it is blocked, */
#define AMONG 1                 /* or stands among the others, */
#define BEHIND 2                /* or behind everything that is due */

byte left[GROUPS] = JOBS, seats[GROUPS], runs[GROUPS];
byte later[GROUPS], back[GROUPS];       /* jobs with a seat that wait for their retry, and that are due again */
byte place[GROUPS] = AMONG;
byte opens[GROUPS], waits[GROUPS];      /* when the rate lets the next job come, and whether one waits for that */
byte when[GROUPS * 3];                  /* the last claims of each group, the latest first */
bool paused[GROUPS], woken = true;
byte free = PERMITS, now = START, retries = 2, changes = CHANGES;

#ifdef NO_PAUSE
#define SHUT(g) (opens[g] > now)
#else
#define SHUT(g) (paused[g] || opens[g] > now)
#endif
#define COMES(g) (place[g] == AMONG || back[g] > 0 && !SHUT(g))
#ifdef EAGER
#define BORROWS(g) (place[g] == BEHIND)
#else
#define BORROWS(g) (place[g] == BEHIND && !COMES(0) && !COMES(1))
#endif
#ifdef ENDLESS
#define LENT(g) true
#else
#define LENT(g) (seats[g] < MOST + BURST)
#endif
#ifdef PASSES
#define MAY_BORROW(g) LENT(g)
#else
#define MAY_BORROW(g) (LENT(g) && later[g] + back[g] == 0)
#endif

inline spend(g) {
    opens[g] = (opens[g] + RATE_BURST * INTERVAL < now -> now - RATE_BURST * INTERVAL : opens[g]) + INTERVAL
}

/* A job of the group is claimed. */
inline starts(g) {
    assert(!paused[g]);
    assert(when[3 * g + WINDOW - 1] == 0 || now - when[3 * g + WINDOW - 1] >= INTERVAL);
    when[3 * g + 2] = when[3 * g + 1]; when[3 * g + 1] = when[3 * g]; when[3 * g] = now;
    runs[g]++; free--
}

inline next_of(g) {
    if
    :: left[g] == 0 -> place[g] = NOWHERE
    :: left[g] > 0 && seats[g] < MOST -> place[g] = AMONG
    :: left[g] > 0 && seats[g] >= MOST && LENT(g) -> place[g] = BEHIND
    :: else -> place[g] = NOWHERE
    fi
}

/* The claim meets the first job of the group. */
inline meet(g) {
    if
    :: SHUT(g) -> waits[g] = waits[g] || opens[g] > now; place[g] = NOWHERE
    :: !SHUT(g) && (seats[g] < MOST || place[g] == BEHIND && MAY_BORROW(g)) ->
        /* No group that has a seat of its own is passed over. */
        assert(place[1 - g] != BEHIND || seats[1 - g] >= MOST);
        if
        :: seats[g] >= MOST ->
            assert(later[g] + back[g] == 0 && place[1 - g] != AMONG);
#ifndef FREE_LOAN
            spend(g)
#endif
        :: else -> spend(g)
        fi;
        left[g]--; seats[g]++; assert(seats[g] <= MOST + BURST);
        starts(g); next_of(g)
    :: !SHUT(g) && seats[g] >= MOST && place[g] == AMONG && MAY_BORROW(g) -> place[g] = BEHIND
    :: else -> place[g] = NOWHERE
    fi
}

/* A job that kept its seat is claimed. */
inline again(g) {
    back[g]--; spend(g); starts(g);
    if
    :: place[g] == NOWHERE -> next_of(g)
    :: else
    fi
}

inline opening(g) {
    if
    :: waits[g] && opens[g] <= now -> waits[g] = false;
        if
        :: left[g] > 0 && place[g] != AMONG -> place[g] = AMONG
        :: else
        fi
    :: else
    fi
}

#ifdef NO_TIME
#define BUSY (woken && free > 0)
#else
#define BUSY (free > 0 && (woken || waits[0] && opens[0] <= now || waits[1] && opens[1] <= now))
#endif

active proctype Node() {
end:
    do
    :: atomic { BUSY ->                                             /* a transfer */
        woken = false; opening(0); opening(1);
        do
        :: free > 0 && back[0] > 0 && !SHUT(0) -> again(0)
        :: free > 0 && back[1] > 0 && !SHUT(1) -> again(1)
        :: free > 0 && place[0] == AMONG -> meet(0)
        :: free > 0 && place[1] == AMONG -> meet(1)
        :: free > 0 && BORROWS(0) -> meet(0)
        :: free > 0 && BORROWS(1) -> meet(1)
        :: else -> break
        od;
        waits[0] = waits[0] || back[0] > 0 && opens[0] > now;
        waits[1] = waits[1] || back[1] > 0 && opens[1] > now
       }
    od
}

#define END(g) \
    :: atomic { runs[g] > 0 -> runs[g]--; free++; woken = true; \
        if \
        :: true -> seats[g]--; \
            if \
            :: left[g] > 0 && RISES(g) -> place[g] = AMONG \
            :: else \
            fi \
        :: retries > 0 -> retries--; later[g]++ \
        fi \
       } \
    :: atomic { later[g] > 0 -> later[g]--; back[g]++; woken = true }
#ifdef STAYS
#define RISES(g) (place[g] == NOWHERE)
#else
#define RISES(g) true
#endif

active proctype Runs() {
end:
    do
    END(0)
    END(1)
    od
}

active proctype Caller() {
    do
    :: atomic { changes > 0 -> changes--; paused[0] = true }
    :: atomic { paused[0] -> paused[0] = false;
#ifndef SILENT
        if
        :: left[0] > 0 -> place[0] = AMONG
        :: else
        fi;
#endif
        woken = true
       }
    :: atomic { changes == 0 && !paused[0] -> break }
    od
}

/* It ticks only while a job waits for a rate, and no node has anything to do. */
active proctype Clock() {
end:
    do
    :: atomic { now < LAST && !BUSY && free == PERMITS && (waits[0] && opens[0] > now || waits[1] && opens[1] > now) -> now++ }
    od
}

active proctype Quiet() {
    atomic { timeout -> assert(left[0] + left[1] + runs[0] + runs[1] + back[0] + back[1] == 0) }
}
