/* dq: which of the groups with due jobs runs next (rule 4 of README.md beside this file), for the model checker spin.
 *
 * Three groups, each with more jobs that are due than may run; those of the first one have been due the longest. There are fewer permits than groups.
 * A claim takes the job that stands first; a run ends; a caller deletes waiting jobs.
 *
 * No group runs twice while another one stands where claims look. All parts of the rule are on by default; each -D below takes one away
 * (model.md says what the checker then finds).
 *   NO_TURN   the next job of a group stands at its due time
 *   LOST_TURN the next job of a group stands at a new turn whenever the first one goes, even if it was deleted
 */
#ifndef MOST
#define MOST 1
#endif
#ifndef PERMITS
#define PERMITS 1
#endif
#define GROUPS 3
#define JOBS 4

byte left[GROUPS] = JOBS, seats[GROUPS], running = 0, deletes = 3;
byte place[GROUPS];             /* where its first job stands; 0: nowhere */
byte overtaken[GROUPS];         /* by each other group: two bits each */
byte clock = GROUPS;            /* the due times are 1 to GROUPS */

inline stand(g, turn) {
#ifdef NO_TURN
    place[g] = g + 1
#else
    place[g] = turn
#endif
}

inline claim(g) {
    o = 0;
    do
    :: o < GROUPS && o != g && place[o] != 0 ->
        assert((overtaken[o] >> (2 * g) & 3) == 0);
        overtaken[o] = overtaken[o] | 1 << (2 * g); o++
    :: o < GROUPS && (o == g || place[o] == 0) -> o++
    :: else -> break
    od;
    overtaken[g] = 0; left[g]--; seats[g]++; running++; clock++; place[g] = 0;
    if
    :: left[g] > 0 && seats[g] < MOST -> stand(g, clock)
    :: else
    fi
}

inline end_of(g) {
    seats[g]--; running--; clock++;
    if
    :: left[g] > 0 && place[g] == 0 -> stand(g, clock)
    :: else
    fi
}

inline remove(g) {
    deletes--; clock++; left[g]--;
    if
    :: left[g] == 0 -> place[g] = 0; overtaken[g] = 0
#ifdef LOST_TURN
    :: left[g] > 0 && place[g] != 0 -> place[g] = clock
#endif
    :: else
    fi
}

#define FIRST(g, a, b) (place[g] != 0 && (place[a] == 0 || place[g] <= place[a]) && (place[b] == 0 || place[g] <= place[b]))

active proctype Store() {
    byte o;
    stand(0, 1); stand(1, 2); stand(2, 3);
    do
    :: atomic { running < PERMITS && FIRST(0, 1, 2) -> claim(0) }
    :: atomic { running < PERMITS && FIRST(1, 0, 2) -> claim(1) }
    :: atomic { running < PERMITS && FIRST(2, 0, 1) -> claim(2) }
    :: atomic { seats[0] > 0 -> end_of(0) }
    :: atomic { seats[1] > 0 -> end_of(1) }
    :: atomic { seats[2] > 0 -> end_of(2) }
    :: atomic { deletes > 0 && left[0] > 0 -> remove(0) }
    :: atomic { deletes > 0 && left[1] > 0 -> remove(1) }
    :: atomic { deletes > 0 && left[2] > 0 -> remove(2) }
    :: left[0] + left[1] + left[2] + running == 0 -> break
    od
}
