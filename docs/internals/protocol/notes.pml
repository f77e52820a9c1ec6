/* dq: the notes of a run (rule 10 of README.md beside this file), for the model checker spin.
 *
 * A run saves three states, one after the other. A line may break while some are on their way; the node goes on over another line, and the store
 * executes what is left on the old one later, or never. The task of the topic may panic, and others may be let start beside the run.
 *
 * No state replaces a later one, and each that the node is answered is there.
 * All parts of the rule are on by default; each -D below takes one away (model.md says what the checker then finds).
 *   NO_NUMBER  a note has no number
 *   COUNTER    the number is a counter of the task, and begins again after a panic
 *   FORGETS    the store forgets the number when others are let start beside the run
 */
#define STATES 3
#define LINES 3
byte sent, state, kept, clock, count, line;
byte panics = 1, opens = 1;
chan lines[LINES] = [STATES] of { byte, byte };

inline execute(at) {
    lines[at] ? number, nth;
    if
#ifndef NO_NUMBER
    :: number <= kept -> skip
#endif
    :: else -> assert(nth > state); state = nth; kept = number
    fi;
    assert(at != line || state == nth);     /* only the answers of the last line are read */
    number = 0; nth = 0
}

active proctype Node() {
    do
    :: atomic { sent < STATES ->
        sent++; clock++; count++;
#ifdef COUNTER
        lines[line] ! count, sent
#else
        lines[line] ! clock, sent
#endif
       }
    :: atomic { line + 1 < LINES -> line++ }
    :: atomic { panics > 0 && line + 1 < LINES -> panics--; count = 0; line++ }
    :: sent == STATES -> break
    od
}

active proctype Store() {
    byte number, nth;
end:
    do
    :: atomic { nempty(lines[0]) -> execute(0) }
    :: atomic { nempty(lines[1]) -> execute(1) }
    :: atomic { nempty(lines[2]) -> execute(2) }
    :: atomic { line > 0 && nempty(lines[0]) -> lines[0] ? _, _ }
    :: atomic { line > 1 && nempty(lines[1]) -> lines[1] ? _, _ }
    :: atomic { opens > 0 -> opens--;
#ifdef FORGETS
        kept = 0
#endif
       }
    od
}
