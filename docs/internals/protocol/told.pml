/* dq: who learns of a lease (rule 20 of README.md beside this file), for the model checker spin.
 *
 * Three nodes, and time in ticks.  A node that claims while it has no rows gets a lease, which the step tells to one other node with a
 * role, or to all.  A node renews its lease while it lives, before it ends.  A node looks at all leases when one that it knows of
 * ends, and takes the rows under those that have ended; the watch before that is left out.  Nodes transfer at any time, and after the
 * fallback at the latest.  Signals may be lost, and nodes die.
 *
 * While nothing is lost and only one node dies, its rows are taken within a lease of its death; in any case within the fallback more.
 * All parts of the rule are on by default; each -D below takes one away (model.md says what the checker then finds).
 *   NO_SIGNAL       nobody is told
 *   TOLD_ANYONE     who was told of another lease that ends before does not matter, not even if it is the node of the new lease
 *   NOT_OWED        another scan stands for the one that a node owes because it was told
 *   NO_FALLBACK     nothing repairs a lost signal
 */
#ifndef LOSSES
#define LOSSES 0
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef CLAIMS
#define CLAIMS 3        /* how often a node gets a lease */
#endif
#define NN 3
#define LEASE 2
#define FALLBACK 3
#define NEVER 15
#define NOBODY 7
#define ALL 4           /* ALL + node: all nodes but this one */

bool dead[NN], rows[NN];
byte lease[NN];                 /* the ticks that are left of the lease */
byte looks[NN] = NEVER;         /* when the node scans, because it knows of a lease, */
byte owes[NN] = NEVER;          /* or because it was told */
byte sleeps[NN];                /* when it transfers after the fallback */
byte for_ticks[NN];             /* how long the rows of a dead node have waited */
byte role[2] = NOBODY;          /* watcher and standby watcher */
byte told[2] = NOBODY, told_until[2];
byte losses = LOSSES, claims = CLAIMS, tell_place, hearer, m;
bool excused;                   /* a signal was lost, or a second node died */

/* The fallback shows only where something is lost. */
#if LOSSES > 0 || KILLS > 1
#define SLEEP(n) sleeps[n] = FALLBACK
#else
#define SLEEP(n) sleeps[n] = NEVER
#endif

inline hears(h) {
    if
    :: losses > 0 -> losses--; excused = true
    :: looks[h] = (looks[h] < LEASE -> looks[h] : LEASE); owes[h] = LEASE
    fi
}

inline tell(n) {
#ifdef NO_SIGNAL
    skip
#else
    if
    :: role[0] != NOBODY && role[0] != n -> tell_place = 0; hearer = role[0]
    :: else ->
        tell_place = 1;
        if
        :: role[1] != NOBODY && role[1] != n -> hearer = role[1]
        :: else -> hearer = ALL + n
        fi
    fi;
    if
#ifdef TOLD_ANYONE
    :: told_until[0] > 0 || told_until[1] > 0 -> skip
    :: else ->
#else
    :: told[tell_place] == hearer && told_until[tell_place] > 0 -> skip
    :: else ->
#endif
        told[tell_place] = hearer; told_until[tell_place] = LEASE;
        if
        :: hearer < NN && !dead[hearer] -> hears(hearer)
        :: else ->
            told[tell_place] = ALL + n;         /* it does not listen, or there is none */
            m = 0;
            do
            :: m < NN -> if :: m != n && !dead[m] -> hears(m) :: else fi; m++
            :: else -> break
            od
        fi
    fi;
    hearer = 0; m = 0; tell_place = 0
#endif
}

inline knows(n) {               /* the leases of others, as a transfer or a scan answers them */
    m = 0;
    do
    :: m < NN -> if :: m != n && rows[m] && lease[m] < looks[n] -> looks[n] = lease[m] :: else fi; m++
    :: else -> m = 0; break
    od
}

inline take_role(n) {
    if
    :: role[0] == NOBODY || role[0] == n ->
        role[0] = n;
        if :: role[1] == n -> role[1] = NOBODY :: else fi
    :: else ->
        if
        :: role[1] == NOBODY -> role[1] = n
        :: else
        fi
    fi
}

inline transfer(n) {
    if
    :: rows[n] -> lease[n] = LEASE
    :: !rows[n] && claims > 0 -> claims--; rows[n] = true; lease[n] = LEASE; tell(n)
    :: !rows[n]
    fi;
    take_role(n);
    knows(n);
    SLEEP(n)
}

inline scan(n) {
    looks[n] = NEVER;
#ifdef NOT_OWED
    owes[n] = NEVER;
#else
    if :: owes[n] == 0 -> owes[n] = NEVER :: else fi;
#endif
    m = 0;
    do
    :: m < NN ->
        if :: m != n && dead[m] && rows[m] && lease[m] == 0 -> rows[m] = false; for_ticks[m] = 0 :: else fi;
        m++
    :: else -> break
    od;
    knows(n)
}

active [NN] proctype Node() {
    byte n = _pid;
    do
    :: atomic { !dead[n] && (looks[n] == 0 || owes[n] == 0) -> scan(n) }
    :: atomic { !dead[n] -> transfer(n) }
    :: atomic { !dead[n] && looks[n] != NEVER -> scan(n) }                  /* for another reason */
    :: atomic { !dead[n] && rows[n] -> lease[n] = LEASE }                   /* a renewal */
    :: atomic { !dead[n] && rows[n] -> rows[n] = false; lease[n] = 0 }      /* its last job ends */
    :: atomic { role[0] == n -> role[0] = NOBODY }                          /* it lapses, or the node calls `wake` */
    :: atomic { role[1] == n -> role[1] = NOBODY }
    :: atomic { n < KILLS && !dead[n] ->        /* all nodes are alike, so the first ones die */
        excused = excused || (KILLS > 1 && (dead[0] || dead[1]));
        dead[n] = true; looks[n] = NEVER; owes[n] = NEVER; sleeps[n] = NEVER
       }
#ifdef NO_FALLBACK
    :: atomic { !dead[n] && sleeps[n] == 0 -> sleeps[n] = FALLBACK }
#endif
    od
}

#define MUST(n) (!dead[n] && (looks[n] == 0 || owes[n] == 0 || sleeps[n] == 0 || (rows[n] && lease[n] == 0)))
#define LATER(ticks) if :: ticks > 0 && ticks != NEVER -> ticks-- :: else fi

active proctype Time() {
    byte i;
    do
    :: atomic { !MUST(0) && !MUST(1) && !MUST(2) ->
        i = 0;
        do
        :: i < NN ->
            LATER(lease[i]); LATER(looks[i]); LATER(owes[i]); LATER(sleeps[i]);
            if
            :: dead[i] && rows[i] ->
                assert(excused || for_ticks[i] < LEASE);
                assert(for_ticks[i] < LEASE + FALLBACK);
                for_ticks[i]++
            :: else
            fi;
            i++
        :: else -> break
        od;
        LATER(told_until[0]); LATER(told_until[1]);
        if :: told_until[0] == 0 -> told[0] = NOBODY :: else fi;
        if :: told_until[1] == 0 -> told[1] = NOBODY :: else fi;
        i = 0
       }
    od
}
