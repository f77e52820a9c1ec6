/* dq: how crashes are charged (rule 19 of README.md beside this file), for the model checker spin.
 *
 * One node runs jobs of two topics in one process.  Jobs 0 .. KILLERS-1 kill the process each time they run; the others are
 * innocent.  A crash ends the process; another node reclaims its rows and charges them, and the process comes back.  An
 * `isolate` may be answered; executed with its answer lost; lost; or executed at any later time ("late").
 *
 * All parts of the rule are on by default; each -D below takes one away (model.md says what the checker then finds).
 *   TOPIC_ALONE     a job is alone if no other job of its topic runs
 *   OPEN_EARLY      an isolated job stops being alone when its handler returns, not when its outcome is confirmed
 *   OPEN_FIRST      others start before the store has noted that an isolated job is alone no longer
 *   NO_SEQUENCE     `isolate` works under any sequence number
 *   CHARGE_GROUPS   a crash of a group that the cap allows convicts its members
 *   CHARGE_ENDED    a crash is charged to a job that was deleted while its node held it
 * CROWDED takes no rule away: a job that must run alone may run in a group, because its handler or another one has run for
 * very long.  The bound on the crashes of a killer then does not hold.
 */
#ifndef CAP
#define CAP 2           /* max_crashes */
#endif
#ifndef KILLERS
#define KILLERS 1
#endif
#ifndef FAULTS
#define FAULTS 2        /* isolates lost, answers lost, isolates late */
#endif
#ifndef BACKS
#define BACKS 1         /* jobs given back before they start */
#endif
#ifndef DELETES
#define DELETES 0       /* deletes of held jobs */
#endif
#ifndef NJ
#define NJ 3
#endif
#define TOPIC(j) ((j) % 2)
#define NOBODY 255
#define THRESHOLD (CAP > 2 -> CAP - 1 : 1)

/* Where a job is: waiting in the store; held; isolate in flight; its handler runs; outcome not confirmed; acked; DEAD. */
#define DELAYED 0
#define HELD 1
#define ASKED 2
#define RUNS 3
#define SETTLING 4
#define GONE 5
#define DEAD 6
/* What `crashes` says of the run, and what an isolate asks for. */
#define UNMARKED 0
#define GROUPED 1
#define ALONE 2

byte place[NJ], count[NJ], mark[NJ], asks[NJ], caused[NJ];
bool exhausted[NJ];
bool ended[NJ];             /* a pending command says that the job is gone once its run is over, however that ends */
byte alone = NOBODY;        /* the job that holds the process for itself */
byte faults = FAULTS, backs = BACKS, deletes = DELETES;
bool synced[2] = true;      /* the link of the topic needs no reconcile */
byte late_job[2] = NOBODY;  /* a late isolate of the topic: for which job, what, and under the current sequence number */
byte late_asks[2];
bool late_fresh[2];

#define quarantined(j) (count[j] >= THRESHOLD)
#define must_be_alone(j) (count[j] > CAP)
/* A job that runs alone only because nothing else did makes room for others; one that must be alone does after very long. */
#ifdef CROWDED
#define may_give_way(j) true
#else
#define may_give_way(j) (!must_be_alone(j))
#endif
/* The end of a deleted job takes effect before a crash could be charged to it. */
#ifdef CHARGE_ENDED
#define charged(j) true
#else
#define charged(j) (!ended[j])
#endif
#ifdef TOPIC_ALONE
#define open(j) (alone == NOBODY || alone == j || TOPIC(alone) != TOPIC(j))
#else
#define open(j) (alone == NOBODY || alone == j)
#endif

inline is_quiet(j, quiet) { /* whether no other job runs or is about to */
    quiet = true;
    for (i : 0 .. NJ - 1) {
#ifdef TOPIC_ALONE
        if :: i != j && TOPIC(i) == TOPIC(j) && (place[i] == ASKED || place[i] == RUNS) -> quiet = false
#else
        if :: i != j && (place[i] == ASKED || place[i] == RUNS) -> quiet = false
#endif
           :: else
        fi
    }
}

inline leave(j) { /* the row of the job goes, and its mark with it */
    mark[j] = UNMARKED;
    ended[j] = false;
    if :: alone == j -> alone = NOBODY :: else fi;
    if :: late_job[TOPIC(j)] == j -> late_job[TOPIC(j)] = NOBODY :: else fi
}

inline charge(j) {
    place[j] = (ended[j] -> GONE : DELAYED);
    if
    :: charged(j) && mark[j] == ALONE ->
        assert(j < KILLERS);    /* no innocent job is convicted */
        if
        :: exhausted[j] && count[j] > CAP + 1 -> place[j] = DEAD
        :: else -> exhausted[j] = true; count[j] = CAP + 2
        fi
    :: charged(j) && mark[j] != ALONE && (count[j] < THRESHOLD || (mark[j] == GROUPED && count[j] <= CAP)) ->
        count[j]++;
#ifdef CHARGE_GROUPS
        if :: count[j] > CAP -> assert(j < KILLERS); exhausted[j] = true :: else fi
#endif
    :: else
    fi;
    leave(j)
}

inline crash() {
    for (k : 0 .. NJ - 1) {
        if :: place[k] >= HELD && place[k] <= SETTLING -> charge(k) :: else fi
    }
    alone = NOBODY;
    synced[0] = true; synced[1] = true
}

inline fail(t) { /* the link failed: the node reconciles before it asks again */
    faults--;
    synced[t] = false
}

inline ask(j, what) {
    asks[j] = what;
    place[j] = ASKED
}

inline note(j, what) { /* an `isolate` is executed; of a deleted job it notes nothing */
    if :: !ended[j] -> mark[j] = what :: else fi
}

inline late(t) {
#ifdef NO_SEQUENCE
    note(late_job[t], late_asks[t]);
#else
    if :: late_fresh[t] -> note(late_job[t], late_asks[t]) :: else fi;
#endif
    late_job[t] = NOBODY
}

active proctype Node() {
    byte j, i, k;
    bool quiet;
    do
    :: atomic {
        select(j : 0 .. NJ - 1);
        if
        :: place[j] == DELAYED && synced[TOPIC(j)] -> place[j] = HELD
        :: place[j] == HELD && !quarantined(j) && open(j) -> place[j] = RUNS
        :: place[j] == HELD && quarantined(j) && !must_be_alone(j) && synced[TOPIC(j)] && open(j) && alone != j ->
            ask(j, GROUPED)
        :: place[j] == HELD && quarantined(j) && synced[TOPIC(j)] && alone == NOBODY ->
            is_quiet(j, quiet);
            if
            :: quiet -> alone = j; ask(j, ALONE)
#ifdef CROWDED
            :: !quiet && must_be_alone(j) -> ask(j, GROUPED)
#endif
            :: else
            fi
        :: place[j] == HELD && alone == j && synced[TOPIC(j)] -> ask(j, ALONE)  /* the first one was not answered */
        :: place[j] == ASKED ->
            note(j, asks[j]);
            place[j] = (ended[j] -> SETTLING : RUNS)        /* no handler of a deleted job starts */
        :: place[j] == ASKED && faults > 0 -> note(j, asks[j]); place[j] = HELD; fail(TOPIC(j))
        :: place[j] == ASKED && faults > 0 -> place[j] = HELD; fail(TOPIC(j))
        :: place[j] == ASKED && faults > 0 && late_job[TOPIC(j)] == NOBODY ->
            late_job[TOPIC(j)] = j; late_asks[TOPIC(j)] = asks[j]; late_fresh[TOPIC(j)] = true;
            place[j] = HELD; fail(TOPIC(j))
        :: place[j] == RUNS && alone == j && synced[TOPIC(j)] && may_give_way(j) ->
            note(j, GROUPED); alone = NOBODY        /* a deleted job keeps its mark, and others start all the same */
#ifdef OPEN_FIRST
        :: place[j] == RUNS && alone == j && faults > 0 && may_give_way(j) -> fail(TOPIC(j)); alone = NOBODY
#endif
        :: place[j] == RUNS && j >= KILLERS ->
            place[j] = SETTLING;
#ifdef OPEN_EARLY
            if :: alone == j -> alone = NOBODY :: else fi
#endif
        :: place[j] == RUNS && j < KILLERS && exhausted[j] -> place[j] = SETTLING   /* `on_exhausted` */
        :: place[j] == RUNS && j < KILLERS ->
            if :: !exhausted[j] -> caused[j]++ :: else fi;
#ifndef CROWDED
            assert(caused[j] <= CAP + 2);
#endif
            if :: caused[j] > CAP + 3 -> caused[j] = CAP + 3 :: else fi;
            crash()
        :: place[j] == SETTLING && synced[TOPIC(j)] ->
            place[j] = (exhausted[j] && !ended[j] -> DEAD : GONE);
            count[j] = 0;
            leave(j)
        :: place[j] == HELD && backs > 0 && synced[TOPIC(j)] -> backs--; place[j] = (ended[j] -> GONE : DELAYED); leave(j)
        :: place[j] >= HELD && place[j] <= SETTLING && deletes > 0 && !ended[j] -> deletes--; ended[j] = true
        :: else
        fi;
        quiet = false; i = 0; k = 0
       }
    :: atomic { !synced[0] -> synced[0] = true; late_fresh[0] = false }     /* reconcile takes a new sequence number */
    :: atomic { !synced[1] -> synced[1] = true; late_fresh[1] = false }
    :: atomic { late_job[0] != NOBODY -> late(0) }
    :: atomic { late_job[1] != NOBODY -> late(1) }
    od
}
