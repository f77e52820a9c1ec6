/* dq: the protocol of one topic, for the model checker spin.
 *
 * Every step is atomic in the store.  A request may be answered; executed with its answer lost; never executed; or
 * executed at any later time ("late": it waited in a socket buffer).  A node may crash (it comes back under a new
 * identity), stop cleanly, or pause for so long that its lease expires.  The handler of an abandoned run may still send
 * an outcome.  The model has no time: every waiting job is due.  With EARLY a job becomes due at any time after its add, nodes
 * claim it before, and its handler begins when it is due.
 *
 * Numbers in [] are the rules of README.md beside this file.  All rules are on by default; each -D below takes one away
 * (model.md says what the checker then finds).
 *   NO_FENCE  NO_RECONCILE  NO_SEQUENCE  NO_COUNT  SPLIT_RECLAIM  LEASE_FIRST  BLIND_RELEASE  RELEASE_KEEPS_SEQUENCE
 *   BLIND_REPLACE  INPLACE_REPLACE  NO_PENDING  ADD_IS_KEPT  NO_ADD_NUMBER  NO_DELETE_NUMBER  NO_LATE_NUMBER
 *   RENEW_ROWLESS  with ACKS: ACK_BLIND  ACK_FIRST  ACK_LAST  with UNRESPONSIVE=1: RECONCILE_RENEWS
 *   with EARLY=1: BEGIN_AT_CLAIM  with TAIL=1: COUNTER_FENCE  with ARRIVING=1 UNRESPONSIVE=1: RENEW_ANY
 * QUIET_FAILOVER (with TAIL=1) takes no rule away: no node notices that the store fell back.
 */
#ifndef FAULTS
#define FAULTS 2        /* answers lost, requests lost, requests late */
#endif
#ifndef CRASHES
#define CRASHES 1       /* kill -9; the node restarts under a new identity */
#endif
#ifndef PAUSES
#define PAUSES 1        /* leases that expire although the node lives */
#endif
#ifndef BACKS
#define BACKS 1         /* runs that end in retry or rejoin */
#endif
#ifndef STOPS
#define STOPS 0         /* node 1 may stop cleanly */
#endif
#ifndef REPLACES
#define REPLACES 0      /* one add with on_duplicate = replace on job 0 */
#endif
#ifndef DELETES
#define DELETES 0       /* one delete of job 0, then an add of the same id by the same caller */
#endif
#ifndef ACKS
#define ACKS 0          /* commands that ack one named run of job 0; not with TAIL */
#endif
#ifndef TAIL
#define TAIL 0          /* the store may once fall back to an earlier state (failover, AOF everysec) */
#endif
#ifndef UNRESPONSIVE
#define UNRESPONSIVE 0  /* from some time on node 1 receives no answer, but its requests arrive */
#endif
#ifndef ARRIVING
#define ARRIVING 0      /* claims whose answer takes long to arrive; not with TAIL */
#endif
#ifndef EARLY
#define EARLY 0         /* nodes claim jobs before they are due (lookahead); not with TAIL, ARRIVING */
#endif
#ifdef SMALL
#define NJ 1
#else
#define NJ 2
#endif
#define NN (2 + CRASHES)
#define AT(n,j) ((n)*NJ+(j))

#define NONE 0
#define ALIVE 1
#define EXPIRED 2
#define ACK 1
#define BACK 2          /* retry, rejoin, rollback: the same move */

/* Calls of the one producer, by number: an add for each job, a replacement of job 0, a delete of it, an add after that. */
#define DEL (NJ + REPLACES)
#define READD (DEL + 1)
#define CALLS (NJ + REPLACES + 2 * DELETES)

/* ---- the store ---- */
bit  rec[NJ];           /* jobs: the record */
byte ver[NJ];           /* the add that the record comes from */
bit  delayed[NJ];
byte row[NN*NJ];        /* running:NODE, id -> fence */
byte lease[NN];
byte sequence[NN];          /* counts transfers, reconciles and releases executed for the node */
byte fence;
bit  ended[NJ];         /* pending command: the job was deleted while it ran */
bit  next[NJ];          /* pending command: the replacement */
#if ACKS
byte ack_fence;         /* pending command of job 0: an ack that names a run, its fence */
#endif
bit  executed[NJ+REPLACES+2];   /* numbers of the calls that were executed */
byte top;               /* the highest of them, + 1 */

/* ---- what each node believes ---- */
byte held[NN*NJ];       /* fence of the job that the node holds */
byte out[NN*NJ];        /* outcome that is not yet confirmed */
byte last_seen[NN];     /* last sequence number whose answer the node read; each of its requests carries it */
bit  lost[NN];          /* the node must reconcile before it claims again */
bit  dead[NN];
byte abandoned[NN*NJ];  /* fence of an abandoned run: its handler still executes */
byte id[2];             /* identity of each of the two processes */
byte fresh = 2;         /* next unused identity */

#if ARRIVING
bit  arriving[NN];      /* the answer to the node's claim is arriving */
bit  reported[NN];      /* an answer to `renew` has reported the sequence number of that claim */
byte claim_fence[NN*NJ]; byte claim_run[NN*NJ];     /* what that answer says: the fence and run number of each job */
#define ARRIVES(n) (arriving[n])
#define IN_ANSWER(n,j) (claim_fence[AT(n,j)] != 0)
#ifdef RENEW_ANY
#define CLAIM_KEPT(n) (reported[n] && sequence[n] == last_seen[n] + 1)
#else
#define CLAIM_KEPT(n) (arriving[n] && reported[n] && sequence[n] == last_seen[n] + 1)
#endif
#else
#define ARRIVES(n) false
#define IN_ANSWER(n,j) false
#define CLAIM_KEPT(n) false
#endif

#if EARLY
byte due[NJ];           /* versions up to this one are due */
byte held_ver[NN*NJ];   /* the version that the node holds */
bit  started[NN*NJ];      /* its handler has started */
#define STARTED(n,j) started[AT(n,j)]
#define FORGET_BEGIN(n,j) held_ver[AT(n,j)] = 0; started[AT(n,j)] = 0
#else
#define STARTED(n,j) true
#define FORGET_BEGIN(n,j) skip
#endif

/* ---- in the network ---- */
bit  lt[NN]; byte lt_seen[NN];                                 /* a late transfer, and what it names */
byte ls; byte ls_n; byte ls_j; byte ls_f; byte ls_r; byte ls_o; byte ls_h; /* a late settle */
bit  lr; byte lr_n; byte lr_h;                                 /* a late reconcile */
byte la = 255;                                                 /* a late add or delete */
#if ACKS
byte wf[ACKS]; byte wr[ACKS]; byte told;                       /* acks on their way: the fence and the run that each names */
#endif

/* ---- only for the assertions ---- */
byte rid;               /* every claim has its own run number */
byte cur[NN*NJ];        /* run number of the row in running:NODE */
byte cver[NN*NJ];       /* version of the record when it was claimed */
byte hrid[NN*NJ];       /* run number behind held */
byte abandoned_run[NN*NJ]; /* run number behind abandoned */
byte effect[NJ+REPLACES+2]; /* how often a call was executed */
byte owed[NJ];          /* the version that must be acked: the last one added, neither acked nor deleted since */
byte wiped[NJ];         /* the version that was deleted last */
bit  left[NN];          /* the node's release was executed */
#if ACKS
byte said;              /* the run that a command acked while it ran */
byte ack_run;           /* the run that ack_fence belongs to */
#endif
bit  over = 0;          /* every call has returned */
bit  settled = 0;       /* what the last exec_settle or exec_transfer answered */
bit  fellback = 0;

#if ARRIVING
byte arrivals = ARRIVING;
#endif
byte faults = FAULTS, crashes = CRASHES, pauses = PAUSES, backs = BACKS, stops = STOPS, tails = TAIL;

#ifdef NO_SEQUENCE
#define CURRENT(n,h) true
#else
#define CURRENT(n,h) (sequence[n] == (h))       /* [6] the request names the stored sequence number */
#endif
#define UP_TO_DATE(n) CURRENT(n, last_seen[n])
#if UNRESPONSIVE
bit unresponsive1;
#define unresponsive (s == 1 && unresponsive1)
#else
#define unresponsive false
#endif
#if defined(RECONCILE_RENEWS) && UNRESPONSIVE
#define KEEPS(n) (UP_TO_DATE(n) || CLAIM_KEPT(n) || unresponsive1 && n == id[1])  /* its repeated reconciles keep the lease alive */
#else
#define KEEPS(n) (UP_TO_DATE(n) || CLAIM_KEPT(n)) /* a node that misses answers cannot keep its lease alive */
#endif
#ifdef NO_RECONCILE
#define LOSE(n) skip
#else
#define LOSE(n) lost[n] = 1                 /* [7] every timeout starts a reconcile */
#endif
#if defined(NO_COUNT) || defined(NO_RECONCILE)
#define DIFFERS(n) skip
#else
#define DIFFERS(n) lost[n] = 1              /* [7] so does an unexpected number of rows */
#endif
#if defined(NO_ADD_NUMBER)
#define KEPT(c) (c == DEL && (executed[c] || c < top))
#elif defined(NO_DELETE_NUMBER)
#define KEPT(c) (c != DEL && (executed[c] || c < top))
#elif defined(NO_LATE_NUMBER)
#define KEPT(c) executed[c]
#else
#define KEPT(c) (executed[c] || c < top)        /* [18] the kept answer, or late */
#endif
#if NJ == 1
#define ROWS(n) (row[AT(n,0)] != 0)
#define KNOWN(n) (row[AT(n,0)] || held[AT(n,0)] || abandoned[AT(n,0)] || IN_ANSWER(n,0))
#define WAITING (delayed[0])
#define HOLDS(n) (held[AT(n,0)] != 0)
#define COUNTS(n) ((row[AT(n,0)] != 0) == (held[AT(n,0)] != 0))
#else
#define ROWS(n) (row[AT(n,0)] != 0 || row[AT(n,1)] != 0)
#define KNOWN(n) (row[AT(n,0)] || held[AT(n,0)] || abandoned[AT(n,0)] || IN_ANSWER(n,0) \
    || row[AT(n,1)] || held[AT(n,1)] || abandoned[AT(n,1)] || IN_ANSWER(n,1))
#define WAITING (delayed[0] || delayed[1])
#define HOLDS(n) (held[AT(n,0)] != 0 || held[AT(n,1)] != 0)
#define COUNTS(n) ((row[AT(n,0)] != 0) + (row[AT(n,1)] != 0) == (held[AT(n,0)] != 0) + (held[AT(n,1)] != 0))
#endif
#if CRASHES == 0
#define INRUN(j) ((row[AT(0,j)]!=0) + (row[AT(1,j)]!=0))
#define ANY_KNOWN (KNOWN(0) || KNOWN(1))
#elif CRASHES == 1
#define INRUN(j) ((row[AT(0,j)]!=0) + (row[AT(1,j)]!=0) + (row[AT(2,j)]!=0))
#define ANY_KNOWN (KNOWN(0) || KNOWN(1) || KNOWN(2))
#else
#define INRUN(j) ((row[AT(0,j)]!=0) + (row[AT(1,j)]!=0) + (row[AT(2,j)]!=0) + (row[AT(3,j)]!=0))
#define ANY_KNOWN (KNOWN(0) || KNOWN(1) || KNOWN(2) || KNOWN(3))
#endif
#if ACKS == 2
#define ON_ITS_WAY_OUTSIDE (wf[0] || wf[1] || ack_fence)
#elif ACKS == 1
#define ON_ITS_WAY_OUTSIDE (wf[0] || ack_fence)
#else
#define ON_ITS_WAY_OUTSIDE false
#endif
#if ACKS
#define HAS_PENDING(j) (next[j] || ended[j] || j == 0 && ack_fence != 0)
#else
#define HAS_PENDING(j) (next[j] || ended[j])
#endif
#ifdef NO_PLACE_CHECK
#define ONE_PLACE(j) skip
#else
#define ONE_PLACE(j) assert(delayed[j] + INRUN(j) == rec[j] && (INRUN(j) || !HAS_PENDING(j)))
#endif

/* [13] Run r, which has fence f, ends.  A pending ack that names a run counts for that run only, and is removed with it. */
inline obey_ack(j, f, r)
{
#if ACKS
    if
    :: j == 0 && ack_fence != 0 ->
#ifdef ACK_BLIND
        if :: true ->
#else
        if :: ack_fence == f ->
#endif
            assert(ack_run == r);                            /* an ack ends the run that it names, never another */
            ended[j] = 1;
            if :: owed[j] == ver[j] -> owed[j] = 0 :: else fi
        :: else
        fi;
        ack_fence = 0; ack_run = 0
    :: else
    fi;
    assert(j != 0 || said != r || ended[j]);              /* the ack of this run is never lost */
    if :: j == 0 && said == r -> said = 0 :: else fi
#else
    skip
#endif
}

/* [13] Every way out of RUNNING but an ack does this: a replacement takes the job's place, a pending delete removes it. */
inline go_back(j)
{
    if
    :: next[j] -> next[j] = 0; ended[j] = 0; ver[j]++; delayed[j] = 1
    :: !next[j] && ended[j] -> ended[j] = 0; rec[j] = 0
    :: else -> delayed[j] = 1
    fi
}

/* [6, 8] A lease exists exactly while the node has rows.  A request that does not name the stored sequence number renews
 * nothing. */
inline renew(n, h)
{
    if
#ifdef RENEW_ROWLESS
    :: true -> lease[n] = ALIVE
#else
    :: !ROWS(n) -> lease[n] = NONE
    :: ROWS(n) && CURRENT(n, h) -> assert(!left[n]); lease[n] = ALIVE
    :: else
#endif
    fi
}

/* [6] The step takes a new sequence number and renews nothing, whether the answer arrives or not. */
inline new_sequence(n, h)
{
    sequence[n] = (sequence[n] > h -> sequence[n] : h) + 1
}

/* Sequence numbers are only compared for equality, fences for equality and order, so both start from 0 again when nobody
 * knows an old one (fewer states). */
#define ON_ITS_WAY(n) (lt[n] || ls && ls_n == n || lr && lr_n == n)
inline renumber(n)
{
#if !TAIL
    if :: (sequence[n] == last_seen[n] || dead[n]) && !ON_ITS_WAY(n) -> sequence[n] = 0; last_seen[n] = 0 :: else fi
#else
    skip
#endif
}
inline renumber_claims()
{
#if !TAIL
    if :: !ls && !ANY_KNOWN && !ON_ITS_WAY_OUTSIDE -> fence = 0; rid = 0 :: else fi
#else
    skip
#endif
}

inline exec_reconcile(n, h)
{
    new_sequence(n, h);
#ifdef RECONCILE_RENEWS
    if :: ROWS(n) -> lease[n] = ALIVE :: else fi
#endif
}

inline claim(n, j)
{
    if
    :: delayed[j] ->
        assert(ver[j] > wiped[j] || fellback);            /* a deleted version does not run again */
        assert(!left[n]);                                 /* nothing is claimed for a node that was released */
        delayed[j] = 0; fence++; rid++;
        row[AT(n,j)] = fence; cur[AT(n,j)] = rid; cver[AT(n,j)] = ver[j];
        ONE_PLACE(j)
    :: else
    fi
}

inline exec_transfer(n, h)   /* settled: whether the step was let in */
{
    settled = CURRENT(n, h);
    if
    :: settled ->
        claim(n, 0);
#if NJ == 2
        claim(n, 1);
#endif
        sequence[n]++;
        if :: ROWS(n) -> lease[n] = ALIVE :: else fi
    :: else
    fi
}

inline exec_settle(n, j, f, r, o, h)
{
    if
#ifdef NO_FENCE
    :: rec[j] && row[AT(n,j)] != 0 || rec[j] ->
#else
    :: row[AT(n,j)] == f ->
#endif
        assert(cur[AT(n,j)] == r);                       /* a stale outcome never changes anything */
        obey_ack(j, row[AT(n,j)], cur[AT(n,j)]);
        row[AT(n,j)] = 0; cur[AT(n,j)] = 0;
        if
        :: o == ACK && !next[j] ->
            assert(ver[j] == cver[AT(n,j)]);              /* the acked version is the one that ran */
#if EARLY
            assert(due[j] >= ver[j]);                     /* [4] and it was due */
#endif
            if :: owed[j] == ver[j] -> owed[j] = 0 :: else fi;
            rec[j] = 0; ended[j] = 0
        :: else -> go_back(j)
        fi;
        cver[AT(n,j)] = 0;
        settled = 1;
        ONE_PLACE(j)
    :: else -> settled = 0
    fi;
    renew(n, h)
}

inline exec_add(c, j)
{
    if
    :: !rec[j] -> rec[j] = 1; delayed[j] = 1; ver[j]++; owed[j] = ver[j]
    :: rec[j] && ended[j] ->                              /* [13] under a pending delete the id counts as absent */
        owed[j] = ver[j] + 1;
#ifndef ADD_IS_KEPT
        next[j] = 1
#endif
    :: rec[j] && !ended[j] && c >= NJ && c < DEL ->       /* replace */
        if
        :: delayed[j] -> ver[j]++; owed[j] = ver[j]
        :: else ->
#ifdef BLIND_REPLACE
            ver[j]++; owed[j] = ver[j]; delayed[j] = 1
#elif defined(INPLACE_REPLACE)
            ver[j]++; owed[j] = ver[j]
#else
            next[j] = 1; owed[j] = ver[j] + 1
#endif
        fi
    :: else                                               /* exists */
    fi
}

inline exec_delete(j)
{
    if
    :: rec[j] && (!ended[j] || next[j]) ->
        assert(effect[READD] == 0 || fellback);           /* a delete never removes what was added after it */
        wiped[j] = ver[j]; owed[j] = 0; next[j] = 0;
        if
        :: delayed[j] -> delayed[j] = 0; rec[j] = 0
        :: else ->
#ifdef NO_PENDING
            skip
#else
            ended[j] = 1
#endif
        fi
    :: else                                               /* absent */
    fi
}

inline exec_call(c, j)
{
    if
    :: KEPT(c)
    :: else ->
        executed[c] = 1;
        if :: c != DEL -> effect[c]++ :: else fi;
        if :: top <= c -> top = c + 1 :: else fi;
        assert(c == DEL || effect[c] <= 1 || fellback);   /* one call, one effect: an acked job never returns */
        if
        :: c == DEL -> exec_delete(j)
        :: else -> exec_add(c, j)
        fi;
        ONE_PLACE(j)
    fi
}

/* The node forgets a job; its handler may still execute: the run is abandoned. */
inline drop(n, j)
{
    if
    :: STARTED(n,j) ->
        abandoned[AT(n,j)] = held[AT(n,j)]; abandoned_run[AT(n,j)] = hrid[AT(n,j)]
    :: else                                               /* its handler never begins */
    fi;
    held[AT(n,j)] = 0; hrid[AT(n,j)] = 0; out[AT(n,j)] = 0; FORGET_BEGIN(n,j)
}

/* The node reads the answer of a transfer (jobs claimed after run number r) or of a reconcile (r = 0, o = BACK: rows that
 * the node does not hold go back under their own token, and are held until that is answered). */
inline read_rows(n, j, r, o)
{
    if
    :: row[AT(n,j)] != 0 && cur[AT(n,j)] > r && cur[AT(n,j)] != hrid[AT(n,j)] ->
        if :: held[AT(n,j)] != 0 -> drop(n, j) :: else fi;
#if EARLY
        held_ver[AT(n,j)] = cver[AT(n,j)];
#endif
        held[AT(n,j)] = row[AT(n,j)]; hrid[AT(n,j)] = cur[AT(n,j)]; out[AT(n,j)] = o
    :: else
    fi
}

#if ARRIVING
/* The answer of a claim is on its way: it has the jobs claimed after run number r. */
inline note_claim(n, j, r)
{
    if
    :: row[AT(n,j)] != 0 && cur[AT(n,j)] > r -> claim_fence[AT(n,j)] = row[AT(n,j)]; claim_run[AT(n,j)] = cur[AT(n,j)]
    :: else
    fi
}
inline read_claim(n, j)
{
    if
    :: claim_fence[AT(n,j)] != 0 ->
        if :: held[AT(n,j)] != 0 -> drop(n, j) :: else fi;
        held[AT(n,j)] = claim_fence[AT(n,j)]; hrid[AT(n,j)] = claim_run[AT(n,j)]; out[AT(n,j)] = 0;
        claim_fence[AT(n,j)] = 0; claim_run[AT(n,j)] = 0
    :: else
    fi
}
inline end_claim(n)
{
    arriving[n] = 0;
    claim_fence[AT(n,0)] = 0; claim_run[AT(n,0)] = 0;
#if NJ == 2
    claim_fence[AT(n,1)] = 0; claim_run[AT(n,1)] = 0;
#endif
#ifdef RENEW_ANY
    skip
#else
    reported[n] = 0
#endif
}
#endif

proctype Client()
{
    byte c = 0; byte j;
    do
    :: c < CALLS ->
        j = (c < NJ -> c : 0);
        if
        :: atomic { exec_call(c, j); c++ }
        :: atomic { faults > 0 -> faults--; exec_call(c, j) }                               /* answer lost: repeat */
        :: atomic { faults > 0 && la == 255 -> faults--; la = c }                        /* late: repeat */
        :: atomic { c == DEL && faults > 0 && la == 255 -> faults--; la = c; c++ }       /* late, and given up: Unknown */
        fi
    :: else -> over = 1; break
    od
}

#if ACKS
#if CRASHES == 0
#define IS_CUR(r) (cur[AT(0,0)] == r || cur[AT(1,0)] == r)
#elif CRASHES == 1
#define IS_CUR(r) (cur[AT(0,0)] == r || cur[AT(1,0)] == r || cur[AT(2,0)] == r)
#else
#define IS_CUR(r) (cur[AT(0,0)] == r || cur[AT(1,0)] == r || cur[AT(2,0)] == r || cur[AT(3,0)] == r)
#endif

/* [13] A command acks the run with fence f (run number r), as a webhook does.  Of two pending acks on one job the one with
 * the larger fence counts.  Under a pending delete, or on a waiting job, the ack does nothing. */
inline exec_ack(f, r)
{
    if
    :: rec[0] && !delayed[0] && !ended[0] ->
        if
#if defined(ACK_FIRST)
        :: ack_fence == 0 -> ack_fence = f; ack_run = r
#elif defined(ACK_LAST)
        :: true -> ack_fence = f; ack_run = r
#else
        :: f > ack_fence -> ack_fence = f; ack_run = r
#endif
        :: else
        fi;
        if :: IS_CUR(r) -> said = r :: else fi
    :: else
    fi
}

/* A program outside learns of a run and acks it at any later time, in any order. */
proctype Webhook()
{
    byte m = 0;
end:
    do
    :: atomic { told < ACKS && row[AT(0,0)] != 0 -> wf[told] = row[AT(0,0)]; wr[told] = cur[AT(0,0)]; told++ }
    :: atomic { told < ACKS && row[AT(1,0)] != 0 -> wf[told] = row[AT(1,0)]; wr[told] = cur[AT(1,0)]; told++ }
    :: atomic { wf[0] != 0 -> exec_ack(wf[0], wr[0]); wf[0] = 0; wr[0] = 0 }
#if ACKS == 2
    :: atomic { wf[1] != 0 -> exec_ack(wf[1], wr[1]); wf[1] = 0; wr[1] = 0 }
#endif
    od
}
#endif

proctype Net()
{
    byte n, j;
end:
    do
    :: atomic { la != 255 -> n = la; la = 255; j = (n < NJ -> n : 0); exec_call(n, j); n = 0; j = 0 }
    :: atomic { lr -> lr = 0; exec_reconcile(lr_n, lr_h); lr_n = 0; lr_h = 0 }
    :: atomic { lt[0] -> lt[0] = 0; exec_transfer(0, lt_seen[0]); lt_seen[0] = 0 }
    :: atomic { lt[1] -> lt[1] = 0; exec_transfer(1, lt_seen[1]); lt_seen[1] = 0 }
    :: atomic { ls -> ls = 0; exec_settle(ls_n, ls_j, ls_f, ls_r, ls_o, ls_h);
                      ls_n = 0; ls_j = 0; ls_f = 0; ls_r = 0; ls_o = 0; ls_h = 0 }
    od
}

/* Leases expire: those of dead nodes always, those of nodes that do not renew always, those of living nodes as often as
 * PAUSES says. */
proctype Clock()
{
    byte n;
end:
    do
    :: atomic { lease[0] == ALIVE && (dead[0] || !KEEPS(0)) -> lease[0] = EXPIRED }
    :: atomic { lease[1] == ALIVE && (dead[1] || !KEEPS(1)) -> lease[1] = EXPIRED }
#if CRASHES > 0
    :: atomic { lease[2] == ALIVE && (dead[2] || !KEEPS(2)) -> lease[2] = EXPIRED }
#endif
#if CRASHES > 1
    :: atomic { lease[3] == ALIVE && (dead[3] || !KEEPS(3)) -> lease[3] = EXPIRED }
#endif
#if EARLY
    :: atomic { due[0] < ver[0] -> due[0]++ }
#if NJ == 2
    :: atomic { due[1] < ver[1] -> due[1]++ }
#endif
#endif
    :: atomic { pauses > 0 && lease[id[0]] == ALIVE && !dead[id[0]] -> pauses--; lease[id[0]] = EXPIRED }
    :: atomic { pauses > 0 && lease[id[1]] == ALIVE && !dead[id[1]] -> pauses--; lease[id[1]] = EXPIRED }
    od
}

#if TAIL
/* A failover: the store takes a snapshot at some time, and falls back to it at a later time. */
bit  k_rec[NJ]; byte k_ver[NJ]; bit k_delayed[NJ]; byte k_row[NN*NJ]; byte k_lease[NN]; byte k_sequence[NN];
byte k_fence; bit k_ended[NJ]; bit k_next[NJ]; bit k_executed[NJ+REPLACES+2]; byte k_top; byte k_owed[NJ];
byte k_cur[NN*NJ]; byte k_cver[NN*NJ];
#define CP(to, from, len) i = 0; do :: i < len -> to[i] = from[i]; i++ :: else -> break od; i = 0
proctype Failover()
{
    byte i;
    atomic {
        over ->                 /* every call was confirmed and is on the replica */
        CP(k_rec, rec, NJ); CP(k_ver, ver, NJ); CP(k_delayed, delayed, NJ); CP(k_row, row, NN*NJ);
        CP(k_lease, lease, NN); CP(k_sequence, sequence, NN); CP(k_next, next, NJ);
        CP(k_ended, ended, NJ); CP(k_executed, executed, NJ+REPLACES+2); CP(k_owed, owed, NJ); k_top = top;
        CP(k_cur, cur, NN*NJ); CP(k_cver, cver, NN*NJ); k_fence = fence
    }
    atomic {
        CP(rec, k_rec, NJ); CP(ver, k_ver, NJ); CP(delayed, k_delayed, NJ); CP(row, k_row, NN*NJ);
        CP(lease, k_lease, NN); CP(sequence, k_sequence, NN); CP(next, k_next, NJ);
        CP(ended, k_ended, NJ); CP(executed, k_executed, NJ+REPLACES+2); CP(owed, k_owed, NJ); top = k_top;
        CP(cur, k_cur, NN*NJ); CP(cver, k_cver, NN*NJ);
#ifdef COUNTER_FENCE
        fence = k_fence;        /* a counter falls back too; a fence from the clock does not */
#endif
        fellback = 1;
        /* the connection breaks: every living node reconciles */
#if !defined(NO_RECONCILE) && !defined(QUIET_FAILOVER)
        lost[id[0]] = 1; lost[id[1]] = 1;
#endif
        k_fence = 0; k_top = 0
    }
}
#endif

/* One reclaim step: it takes a bounded number of rows (one), and the lease with the last row. */
inline reclaim(m)
{
    if
    :: lease[m] == EXPIRED && m != n ->
#ifdef SPLIT_RECLAIM
        if
        :: row[AT(m,0)] != 0 -> row[AT(m,0)] = 0; cur[AT(m,0)] = 0; hand = 1
#if NJ == 2
        :: row[AT(m,1)] != 0 -> row[AT(m,1)] = 0; cur[AT(m,1)] = 0; hand = 2
#endif
        :: else -> lease[m] = NONE
        fi
#else
        if
        :: row[AT(m,0)] != 0 -> obey_ack(0, row[AT(m,0)], cur[AT(m,0)]);
                              row[AT(m,0)] = 0; cur[AT(m,0)] = 0; cver[AT(m,0)] = 0; go_back(0); ONE_PLACE(0)
#if NJ == 2
        :: row[AT(m,1)] != 0 -> obey_ack(1, row[AT(m,1)], cur[AT(m,1)]);
                              row[AT(m,1)] = 0; cur[AT(m,1)] = 0; cver[AT(m,1)] = 0; go_back(1); ONE_PLACE(1)
#endif
        :: else
        fi;
#ifdef LEASE_FIRST
        lease[m] = NONE
#else
        if :: !ROWS(m) -> lease[m] = NONE :: else fi
#endif
#endif
    fi
}

/* What the node does with one job that it holds. */
inline act(j)
{
    if
    :: out[AT(n,j)] == 0 && STARTED(n,j) -> out[AT(n,j)] = ACK
    :: out[AT(n,j)] == 0 && !STARTED(n,j) && ended[j] -> out[AT(n,j)] = BACK   /* [13] it was deleted before it began */
    :: out[AT(n,j)] == 0 && STARTED(n,j) && backs > 0 -> backs--; out[AT(n,j)] = BACK
    :: out[AT(n,j)] == 0 && stopping -> out[AT(n,j)] = BACK
    :: out[AT(n,j)] != 0 ->
        if
        :: !unresponsive ->
            exec_settle(n, j, held[AT(n,j)], hrid[AT(n,j)], out[AT(n,j)], last_seen[n]);
            if :: settled -> abandoned[AT(n,j)] = 0; abandoned_run[AT(n,j)] = 0;
                             held[AT(n,j)] = 0; hrid[AT(n,j)] = 0; out[AT(n,j)] = 0; FORGET_BEGIN(n,j)
               :: else -> drop(n, j); DIFFERS(n) fi
        :: !unresponsive && faults > 0 -> faults--; LOSE(n);
            exec_settle(n, j, held[AT(n,j)], hrid[AT(n,j)], out[AT(n,j)], last_seen[n])                /* answer lost */
        :: !unresponsive && faults > 0 && !ls -> faults--; LOSE(n); ls = 1; ls_n = n; ls_j = j; ls_f = held[AT(n,j)];
                                ls_r = hrid[AT(n,j)]; ls_o = out[AT(n,j)]; ls_h = last_seen[n]         /* late */
        :: unresponsive -> exec_settle(n, j, held[AT(n,j)], hrid[AT(n,j)], out[AT(n,j)], last_seen[n])
        fi
    fi
}
#define HAS_MOVE(j) (STARTED(n,j) || out[AT(n,j)] != 0 || stopping || ended[j])
#define MAY_ACT(j) (!ARRIVES(n) && held[AT(n,j)] != 0 && HAS_MOVE(j) && (!unresponsive || out[AT(n,j)] == 0 || row[AT(n,j)] == held[AT(n,j)]))

/* [7] The node reads the answer of a reconcile: rows that it does not hold go back, held jobs without a row are dropped. */
inline compare(j)
{
    if :: held[AT(n,j)] != 0 && row[AT(n,j)] != held[AT(n,j)] -> drop(n, j) :: else fi;
    read_rows(n, j, 0, BACK)
}

proctype Node(byte s)
{
    byte n = s;
    bit stopping = 0;
    byte r;
#ifdef SPLIT_RECLAIM
    byte hand = 0;      /* a job between the two steps of a broken reclaim */
#endif
end:
    do
    /* transfer: one in flight, none while an answer is missing */
    :: atomic { WAITING && !lost[n] && !stopping && !unresponsive && !ARRIVES(n) ->
        if
        :: renumber_claims(); r = rid; exec_transfer(n, last_seen[n]);
            if
            :: settled ->
                last_seen[n] = sequence[n];
                read_rows(n, 0, r, 0);
#if NJ == 2
                read_rows(n, 1, r, 0);
#endif
                renumber(n)
            :: else -> LOSE(n)
            fi;
            r = 0
        :: faults > 0 -> faults--; exec_transfer(n, last_seen[n]); LOSE(n)
        :: faults > 0 && n < 2 && !lt[n] -> faults--; lt[n] = 1; lt_seen[n] = last_seen[n]; LOSE(n)
#if ARRIVING
        :: arrivals > 0 -> arrivals--; renumber_claims(); r = rid; exec_transfer(n, last_seen[n]);
            if
            :: settled -> arriving[n] = 1; note_claim(n, 0, r);
#if NJ == 2
                note_claim(n, 1, r)
#endif
            :: else -> LOSE(n)
            fi;
            r = 0
#endif
        fi }
#if ARRIVING
    /* [6] While an answer is arriving, the node waits for it and renews over another connection.  The answer to that reports
     * the sequence number that the claim took.  No byte comes for the call timeout: the node gives the claim up. */
    :: atomic { ARRIVES(n) && !reported[n] -> reported[n] = 1 }
    :: atomic { ARRIVES(n) && !unresponsive ->
        last_seen[n]++; read_claim(n, 0);
#if NJ == 2
        read_claim(n, 1);
#endif
        arriving[n] = 0; reported[n] = 0; renumber(n) }
    :: atomic { ARRIVES(n) && (faults > 0 || unresponsive) ->
        if :: unresponsive :: else -> faults-- fi;
        end_claim(n); LOSE(n) }
#endif
    /* reconcile */
    :: atomic { lost[n] && !unresponsive ->
        if
        :: exec_reconcile(n, last_seen[n]); last_seen[n] = sequence[n]; lost[n] = 0;
            compare(0);
#if NJ == 2
            compare(1);
#endif
            renumber(n)
        :: faults > 0 -> faults--; exec_reconcile(n, last_seen[n])
        :: faults > 0 && !lr -> faults--; lr = 1; lr_n = n; lr_h = last_seen[n]
        fi }
#if UNRESPONSIVE
    /* An unresponsive node keeps sending transfers and reconciles.  The model takes only those that change something, so that
     * it sees the end. */
    :: atomic { s == 1 && !unresponsive1 -> unresponsive1 = 1 }
#if ARRIVING
    :: atomic { unresponsive && WAITING && CURRENT(n, last_seen[n]) && !ARRIVES(n) ->
        r = rid; exec_transfer(n, last_seen[n]); arriving[n] = 1; note_claim(n, 0, r);
#if NJ == 2
        note_claim(n, 1, r);
#endif
        r = 0 }
#else
    :: atomic { unresponsive && WAITING && CURRENT(n, last_seen[n]) -> exec_transfer(n, last_seen[n]) }
#endif
#ifdef RECONCILE_RENEWS
    :: atomic { unresponsive && (sequence[n] == last_seen[n] || lease[n] == EXPIRED && ROWS(n)) ->
        exec_reconcile(n, last_seen[n]) }
#else
    :: atomic { unresponsive && sequence[n] == last_seen[n] && !ARRIVES(n) -> exec_reconcile(n, last_seen[n]) }
#endif
#endif
#if !defined(NO_COUNT) && !defined(NO_RECONCILE)
    /* [7] Every answer carries the lease status: sequence number and number of rows.  The number must be that of the held
     * jobs; a difference starts a reconcile. */
    :: atomic { !lost[n] && !unresponsive && !ARRIVES(n) && (!UP_TO_DATE(n) || !COUNTS(n)) -> lost[n] = 1 }
#endif
    /* renew (heartbeat): extends a lease that has expired and that nobody has reclaimed yet */
    :: atomic { lease[n] == EXPIRED && ROWS(n) && (HOLDS(n) && UP_TO_DATE(n) || CLAIM_KEPT(n)) -> lease[n] = ALIVE }
#if EARLY
    /* [4] A handler begins when its job is due. */
#ifdef BEGIN_AT_CLAIM
#define MAY_BEGIN(j) (held[AT(n,j)] != 0 && out[AT(n,j)] == 0 && !started[AT(n,j)])
#else
#define MAY_BEGIN(j) (held[AT(n,j)] != 0 && out[AT(n,j)] == 0 && !started[AT(n,j)] && due[j] >= held_ver[AT(n,j)])
#endif
    :: atomic { MAY_BEGIN(0) -> started[AT(n,0)] = 1 }
#if NJ == 2
    :: atomic { MAY_BEGIN(1) -> started[AT(n,1)] = 1 }
#endif
#endif
    /* handlers */
    :: atomic { MAY_ACT(0) -> act(0) }
    :: atomic { abandoned[AT(n,0)] != 0 ->
        exec_settle(n, 0, abandoned[AT(n,0)], abandoned_run[AT(n,0)], ACK, last_seen[n]);
        abandoned[AT(n,0)] = 0; abandoned_run[AT(n,0)] = 0 }
#if NJ == 2
    :: atomic { MAY_ACT(1) -> act(1) }
    :: atomic { abandoned[AT(n,1)] != 0 ->
        exec_settle(n, 1, abandoned[AT(n,1)], abandoned_run[AT(n,1)], ACK, last_seen[n]);
        abandoned[AT(n,1)] = 0; abandoned_run[AT(n,1)] = 0 }
#endif
    /* reclaim of others */
    :: atomic { lease[0] == EXPIRED && n != 0 && !unresponsive -> reclaim(0) }
    :: atomic { lease[1] == EXPIRED && n != 1 && !unresponsive -> reclaim(1) }
#if CRASHES > 0
    :: atomic { lease[2] == EXPIRED && n != 2 && !unresponsive -> reclaim(2) }
#endif
#if CRASHES > 1
    :: atomic { lease[3] == EXPIRED && n != 3 && !unresponsive -> reclaim(3) }
#endif
#ifdef SPLIT_RECLAIM
    :: atomic { hand == 1 -> hand = 0; go_back(0) }
    :: atomic { hand == 2 -> hand = 0; go_back(1) }
#endif
    /* kill -9 */
    :: atomic { crashes > 0 -> crashes--;
        dead[n] = 1; lost[n] = 0;
#if ARRIVING
        end_claim(n);
#endif
        held[AT(n,0)] = 0; hrid[AT(n,0)] = 0; out[AT(n,0)] = 0; abandoned[AT(n,0)] = 0; abandoned_run[AT(n,0)] = 0;
        FORGET_BEGIN(n,0);
#if NJ == 2
        held[AT(n,1)] = 0; hrid[AT(n,1)] = 0; out[AT(n,1)] = 0; abandoned[AT(n,1)] = 0; abandoned_run[AT(n,1)] = 0;
        FORGET_BEGIN(n,1);
#endif
#ifdef SPLIT_RECLAIM
        hand = 0;
#endif
        renumber(n);
        n = fresh; id[s] = fresh; fresh++; stopping = 0 }
    /* clean stop of node 1: roll back, then release; the node may give up on requests that get no answer */
    :: atomic { s == 1 && stops > 0 -> stops--; stopping = 1 }
    :: atomic { stopping && !ARRIVES(n) && (!HOLDS(n) || faults > 0) ->
        if :: HOLDS(n) -> faults-- :: else fi;
        if
        :: left[n] = 1;
#ifndef RELEASE_KEEPS_SEQUENCE
            new_sequence(n, last_seen[n]);                        /* [8] its requests that are still on their way do nothing */
#endif
            if
#ifdef BLIND_RELEASE
            :: true -> lease[n] = NONE
#else
            :: ROWS(n) -> lease[n] = EXPIRED
            :: else -> lease[n] = NONE
#endif
            fi
        :: faults > 0 -> faults--                         /* never executed */
        fi;
        dead[n] = 1; lost[n] = 0;
        held[AT(n,0)] = 0; hrid[AT(n,0)] = 0; out[AT(n,0)] = 0; abandoned[AT(n,0)] = 0; abandoned_run[AT(n,0)] = 0;
        FORGET_BEGIN(n,0);
#if NJ == 2
        held[AT(n,1)] = 0; hrid[AT(n,1)] = 0; out[AT(n,1)] = 0; abandoned[AT(n,1)] = 0; abandoned_run[AT(n,1)] = 0;
        FORGET_BEGIN(n,1);
#endif
        renumber(n);
        break }
    od
}

#if NJ == 1
#define DONE (over && !rec[0])
#define OWED (owed[0])
#else
#define DONE (over && !rec[0] && !rec[1])
#define OWED (owed[0] || owed[1])
#endif

/* When nothing can move any more, every job must be done and nothing may be left behind. */
proctype Watch()
{
end:
    timeout ->
        assert(DONE);
        assert(!OWED);                  /* what an add promised was acked, replaced or deleted */
        assert(lease[0] == NONE && lease[1] == NONE);
#if CRASHES > 0
        assert(lease[2] == NONE)
#endif
}

init {
    atomic {
        id[0] = 0; id[1] = 1;
        run Node(0); run Node(1); run Client(); run Net(); run Clock(); run Watch();
#if TAIL
        run Failover();
#endif
#if ACKS
        run Webhook();
#endif
    }
}

#ifdef LIVE
ltl ends { <> [] DONE }
#endif
