/* dq: ticks of a schedule (rule 30 of README.md beside this file), for the model checker spin.
 *
 * One schedule with TICKS ticks and two nodes.  Time passes tick by tick.  A node claims the schedule, computes what the tick adds from
 * the clock in the answer, and settles under its token.  It may crash, or be so slow that its row is reclaimed.  A settle is answered;
 * executed with its answer lost; lost; or executed at any later time ("late").  The jobs of ticks may end at any time.  With REMOVES the
 * schedule is removed once.  With FALLS the clock falls back by any time, and a node that sees it aligns the schedule: ticks that the clock
 * had fired while it was ahead come again, unless their jobs are there.
 *
 * All parts of the rule are on by default; each -D below takes one away (model.md says what the checker then finds).
 *   NO_FENCE    a tick needs no token
 *   JOBS_FIRST  the jobs are added in a step of their own, before the schedule moves on
 *   MOVE_FIRST  the schedule moves on in a step of its own, before the jobs are added
 *   NO_LAST     with SKIP: the store does not look whether the last job has ended
 *   END_LATER   with REMOVES=1: a tick adds its jobs under a pending end
 *   NO_ALIGN    with FALLS=1: the schedule keeps the tick that it has when the clock falls back
 *   NO_WAIT     with FALLS=1: who aligns the schedule does not wait for a tick that was claimed before
 * ONCE: of the ticks that were missed only the last one adds a job.  SKIP: a tick adds no job while that of the last one is there.
 */
#ifndef TICKS
#define TICKS 3
#endif
#ifndef FAULTS
#define FAULTS 2        /* settles lost, answers lost, settles late */
#endif
#ifndef CRASHES
#define CRASHES 2       /* nodes that die, or lose their row to another */
#endif
#ifndef REMOVES
#define REMOVES 0
#endif
#ifndef FALLS
#define FALLS 0         /* how often the clock falls back */
#endif
#define NN 2

byte now;                   /* the last tick that has passed */
bool there = true, running, ends;       /* the schedule; its row; a pending end */
byte tick = 1, fence, owner_fence;
byte last;                  /* the job of the last tick that added one */
bool alive[TICKS + 2];      /* jobs that wait or run */
byte added[TICKS + 2];      /* how often each tick has added its job */
bool skipped[TICKS + 2];    /* the last job had not ended, or the tick was missed and only the last one counts */
bool removed;
byte falls = FALLS;
bool fell;                  /* the clock fell back, and the schedule is not aligned yet */
byte fell_to;               /* what the clock showed then, at the earliest */
byte may_come[TICKS + 2];   /* how often the tick may come again */
bool comes[TICKS + 2];      /* it has to come again */

byte token[NN];             /* the row that the node believes to hold; 0: none */
byte from[NN], upto[NN];    /* the ticks of its claim: from the one it waited for to the clock in the answer */
byte knows[NN];             /* the last job, as the payload says */
byte late_token, late_from, late_upto, late_knows;      /* a late settle */
byte faults = FAULTS, crashes = CRASHES, removes = REMOVES;

#if FALLS
#define is_known(t) alive[t]
#else
#define is_known(t) false
#endif

inline add_jobs(a, b, l) {
    for (t : a .. b) {
        comes[t] = false;
        if
        :: is_known(t) -> skip
#ifdef ONCE
        :: !is_known(t) && t < b -> skipped[t] = true
        :: !is_known(t) && t == b ->
#else
        :: !is_known(t) ->
#endif
#ifdef SKIP
            if
#ifndef NO_LAST
            :: l != 0 && alive[l] -> skipped[t] = true
            :: else ->
#else
            :: true ->
#endif
                assert(l == 0 || !alive[l]);    /* no two jobs overlap */
                added[t]++; alive[t] = true; last = t
            fi
#else
            added[t]++; alive[t] = true; last = t
#endif
        fi;
        assert(added[t] <= 1 + may_come[t]);    /* each tick adds its job once */
        assert(!removed)                        /* and none behind a removal */
    }
}

#ifdef NO_FENCE
#define holds_row(f) true
#else
#define holds_row(f) (running && owner_fence == f)
#endif

inline settle(f, a, b, l) {
    if
    :: holds_row(f) && there ->
        if
#ifdef END_LATER
        :: ends -> add_jobs(a, b, l); there = false; running = false
#else
        :: ends -> there = false; running = false
#endif
        :: else ->
            add_jobs(a, b, l);
            if :: tick <= b -> tick = b + 1 :: else fi;
            running = false
        fi
    :: else
    fi
}

inline forget(n) { token[n] = 0; from[n] = 0; upto[n] = 0; knows[n] = 0 }

#ifdef NO_WAIT
#define may_align true
#else
#define may_align (!running || !there)
#endif
#define is_steady (falls == 0 && !fell)

active [NN] proctype Node() {
    byte n = _pid, t;
    do
    :: atomic { there && !running && tick <= now && token[n] == 0 ->
        fence++; owner_fence = fence; running = true;
        token[n] = fence; from[n] = tick; upto[n] = now; knows[n] = last;
#ifdef SKIP
        upto[n] = tick      /* one tick at a time shows what overlaps */
#endif
       }
#if defined(JOBS_FIRST) || defined(MOVE_FIRST)
    :: token[n] != 0 ->
        if
        :: atomic { holds_row(token[n]) && there && !ends ->
#ifdef JOBS_FIRST
            add_jobs(from[n], upto[n], knows[n])
#else
            tick = upto[n] + 1; running = false
#endif
           };
           if
           :: atomic { true ->
#ifdef JOBS_FIRST
                if :: holds_row(token[n]) -> tick = upto[n] + 1; running = false :: else fi;
#else
                add_jobs(from[n], upto[n], knows[n]);
#endif
                forget(n)
              }
           :: atomic { crashes > 0 -> crashes--;
                if :: holds_row(token[n]) -> running = false :: else fi;
                forget(n)
              }
           fi
        :: atomic { !holds_row(token[n]) || !there || ends -> settle(token[n], from[n], upto[n], knows[n]); forget(n) }
        fi
#else
    :: atomic { token[n] != 0 -> settle(token[n], from[n], upto[n], knows[n]); forget(n); t = 0 }
    :: atomic { token[n] != 0 && faults > 0 -> faults--; settle(token[n], from[n], upto[n], knows[n]); t = 0 }
    :: atomic { token[n] != 0 && faults > 0 && late_token == 0 -> faults--;
        late_token = token[n]; late_from = from[n]; late_upto = upto[n]; late_knows = knows[n]
       }
#endif
    :: atomic { token[n] != 0 && crashes > 0 ->     /* the node dies, and another one reclaims the row; or only that */
        crashes--;
        if :: running && owner_fence == token[n] -> running = false; if :: ends -> there = false :: else fi :: else fi;
        if :: forget(n) :: true fi
       }
    :: atomic { late_token != 0 ->
        settle(late_token, late_from, late_upto, late_knows);
        late_token = 0; late_from = 0; late_upto = 0; late_knows = 0; t = 0
       }
    :: atomic { fell && may_align -> fell = false;
#ifndef NO_ALIGN
        if :: tick > fell_to + 1 -> tick = fell_to + 1 :: else fi
#endif
       }
    :: is_steady && token[n] == 0 && late_token == 0 && (!there || (tick > TICKS && !running)) -> break
    od
}

active proctype Time() {
    byte t;
    do
    :: atomic { now < TICKS -> now++ }
    :: atomic { true -> select(t : 1 .. TICKS); if :: alive[t] -> alive[t] = false :: else fi; t = 0 }
    :: atomic { removes > 0 && there -> removes--;
        if :: running -> ends = true :: else -> there = false fi;
        removed = true
       }
    :: atomic { falls > 0 && now > 0 -> falls--; select(t : 0 .. TICKS);
        if
        :: t < now -> now = t; fell = true; fell_to = t; for (t : now + 1 .. TICKS) { may_come[t]++; comes[t] = added[t] > 0 && !alive[t] }
        :: else
        fi;
        t = 0
       }
    :: atomic { falls > 0 -> falls = 0 }
    :: is_steady && now == TICKS && (!there || (tick > TICKS && !running)) -> break
    od
}

/* When nothing can move any more, every tick has added its job, unless it was one of a gap, or the last job was there. */
active proctype Watch() {
    byte t;
    atomic {
        timeout;
        assert(!there || tick > TICKS);
        for (t : 1 .. TICKS) { assert(removed || (added[t] >= 1 && !comes[t]) || skipped[t]) }
    }
}
