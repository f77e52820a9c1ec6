"""The parts of `tests/run`, which says how to call it: what each runs, how long it may take, and what a change calls for.

The last line of the output is `N passed, N failed`. The log of each part is in `logs` of cargo's target directory."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The commit, the time and the counts of the last long run.
RECORD = ROOT / "tests" / "last-long-run"
# It should be no older than a month, and than so many commits to what it proves most about.
MONTH, COMMITS, PROVEN = 31 * 86400, 20, ["dq/src/store", "dq/src/job/state.rs", "docs/internals/protocol"]
# A program that hangs must not hang the run: it may take this many times its budget, and at least ten minutes.
LONGEST = 3
RESULT = re.compile(r"^(?:test result: [^.]*\. )?(\d+) passed[;,] (\d+) failed", re.M)
FAILED = re.compile(r"^test (\S.*) \.\.\. FAILED", re.M)
WORKSPACE = ["--workspace", "--all-features"]
# The lines that the documentation is made of: comments of documentation, and what they may link to.
DOCUMENTS = "-G^ *(//[/!]|pub |#!?\\[doc)"
# Test programs that wait for real clocks, servers and processes most of the time. They run one after the other, beside what computes.
WAITING = ["redis", "storm", "dashboard", "examples", "takeover"]
# Two parts that run at the same time print.
OUTPUT = threading.Lock()


class Part:
    """A command with a name and a budget in seconds. A short run leaves it out if none of `changes`, options of `git diff`, has changed
    since the last long one."""

    def __init__(self, name, budget, command, cwd=ROOT, env=None, changes=None):
        self.name, self.budget, self.command, self.cwd, self.changes = name, budget, command, cwd, changes
        self.env, self.log = {**os.environ, **(env or {})}, LOGS / f"{name.replace('/', '-')}.log"
        self.seconds, self.is_sound, self.passed, self.failed, self.tests = 0, True, 0, 0, []

    def run(self):
        with OUTPUT:
            print(f"== {self.name}: {' '.join(map(str, self.command))}", flush=True)
        begin = time.monotonic()
        with open(self.log, "w") as log:
            try:
                ended = subprocess.run(self.command, cwd=self.cwd, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, timeout=LONGEST * max(self.budget, 200))
                self.is_sound = ended.returncode == 0
            except subprocess.TimeoutExpired:
                log.write("\nit was killed because it took too long\n")
                self.is_sound = False
        self.seconds, text = round(time.monotonic() - begin), self.log.read_text(errors="replace")
        for passed, failed in RESULT.findall(text):
            self.passed, self.failed = self.passed + int(passed), self.failed + int(failed)
        self.tests = FAILED.findall(text)
        # A command that ends with an error has failed, whatever it has counted.
        self.failed += not self.is_sound and not self.failed
        with OUTPUT:
            if not self.is_sound:
                print(text)
            print(self.line(), flush=True)
        return self

    @property
    def is_program(self):
        return "/" in self.name

    def waits(self):
        return self.name in ["servers", "servers-long", "takeovers", "storm-long"] or any(self.name.startswith(f"dq-{package}/{name}") for package in ["tests", "dashboard", "examples"] for name in WAITING)

    def line(self):
        over = f"  over its budget of {self.budget} s" if self.seconds > self.budget else ""
        return f"{self.name:<28} {'ok    ' if self.is_sound else 'FAILED'} {self.passed:5} passed {self.seconds:5} s{over}"


def said_by(*command):
    """The output of a command, or nothing if it fails."""
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return ended.stdout.strip() if ended.returncode == 0 else None


def is_called_for(part):
    """Whether a short run needs a part: what it looks at has changed since the last long run, or nobody knows."""
    commit = RECORD.read_text().split()[0] if RECORD.exists() else None
    return not part.changes or not commit or said_by("git", "diff", "--name-only", commit, *part.changes) != ""


def age_of_long_run():
    """What to say of the last long run; empty if it is recent."""
    if not RECORD.exists():
        return "no long run is on record: run ./tests/run --long before a release"
    commit, when, _ = RECORD.read_text().split(maxsplit=2)
    since = said_by("git", "rev-list", "--count", f"{commit}..HEAD", "--", *PROVEN)
    if time.time() - int(when) < MONTH and since and int(since) <= COMMITS:
        return ""
    return f"the last long run was of {commit[:8]}, {since or 'an unknown number of'} commits to the stores and the protocol ago: run ./tests/run --long"


def programs(messages, filters=()):
    """The parts that run the test programs of a build, by cargo's messages; `filters` are names of tests."""
    libraries, parts = said_by("rustc", "--print", "target-libdir"), []
    for line in messages.splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("reason") != "compiler-artifact" or not message["profile"]["test"] or not message["executable"]:
            continue
        folder, target = Path(message["manifest_path"]).parent, message["target"]
        package = re.search(r'^name = "(.*)"', (folder / "Cargo.toml").read_text(), re.M)[1]
        kind = "" if target["kind"] == ["test"] else f" ({target['kind'][0]})"
        env = {"CARGO_MANIFEST_DIR": str(folder), "CARGO_PKG_NAME": package, "LD_LIBRARY_PATH": libraries}
        parts.append(Part(f"{package}/{target['name']}{kind}", 300, [message["executable"], *filters], folder, env))
    return sorted(parts, key=lambda part: part.name)


def run_all(parts):
    """Runs parts, those that wait beside the others. What is done first takes over test programs of the other, but never two that wait at a time."""
    waiting = deque(part for part in parts if part.waits())
    # Commands of cargo wait for one another, so one of the two has them all, and begins with them.
    computing = deque(sorted((part for part in parts if not part.waits()), key=lambda part: part.is_program))

    lock = threading.Lock()

    def take(own, others):
        with lock:
            if own:
                return own.popleft()
            return others.pop() if others and others[-1].is_program else None

    def run(own, others):
        while part := take(own, others):
            part.run()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, [waiting, computing], [computing, ()]))
    return parts


def table(is_long):
    """The part before the build, and those after it."""
    before = [Part("format", 10, ["cargo", "fmt", "--all", "--check"])]
    after = [
        Part("lint", 300, ["cargo", "clippy", *WORKSPACE, "--all-targets", "--", "-D", "warnings"]),
        Part("deny", 30, ["./tests/deny"], changes=["--", "Cargo.lock", "deny.toml", "tests/advisories.txt"]),
        Part("docs", 120, ["cargo", "doc", *WORKSPACE, "--no-deps"], env={"RUSTDOCFLAGS": "-D warnings"}, changes=[DOCUMENTS, "--", "dq", "dq-macros"]),
        Part("doctests", 180, ["cargo", "test", *WORKSPACE, "--doc", "--no-fail-fast"]),
        Part("simulation", 900 if is_long else 300, ["./tests/simulate", "--seeds", "10000" if is_long else "2000"]),
        Part("rules", 90, ["./tests/simulate", "--rules"]),
        Part("protocol", 1800 if is_long else 180, ["./docs/internals/protocol/run", "table" if is_long else "quick"], changes=["--", "docs/internals/protocol/*.pml", "docs/internals/protocol/run"]),
    ]
    long = [
        Part("servers-long", 3600, ["./tests/servers", "--long"]),
        Part("fuzz", 900, ["./tests/fuzz", "--seconds", "60"]),
        Part("takeovers", 1800, ["./tests/takeover"]),
        Part("storm-long", 1200, ["./tests/storm", "--jobs", "200000", "--rate", "1000"]),
    ]
    return before, after + (long if is_long else [])


def main(words):
    is_long, words = "--long" in words, [word for word in words if word != "--long"]
    if is_long:
        os.environ["DQ_LONG"] = "yes"
    if any(word.startswith("-") for word in words):
        sys.exit("usage: tests/run [--long] [PART | TEST ...]")
    begin, done = time.monotonic(), []
    before, after = table(is_long)
    # Another selection of packages has other features, and builds dq and what it needs once more. So there is this one, and the servers are
    # tested with its program.
    build = Part("build", 480, ["cargo", "test", *WORKSPACE, "--no-run", "--message-format", "json-render-diagnostics"])
    parts = {part.name: part for part in [*before, *after]}
    tests = [word for word in words if word not in [*parts, "build", "servers"]]
    wanted = [part for part in parts.values() if part.name in words or not words and (is_long or is_called_for(part))]
    done += [part.run() for part in wanted if part in before]
    ran = [part for part in wanted if part in after]
    if not words or tests or {"build", "servers"} & set(words):
        done.append(build.run())
        built = programs(build.log.read_text(), tests) if build.is_sound else []
        if not words or tests:
            ran = [*built, *ran]
        if not words or "servers" in words:
            suite = {"DQ_CONFORMANCE": part.command[0] for part in built if part.name == "dq-tests/conformance"}
            ran.append(Part("servers", 400, ["./tests/servers", *([] if is_long else ["--short"])], env=suite))
    done += [part for part in run_all(ran) if part.passed + part.failed or not tests or part not in built]

    print("", *[part.line() for part in done], f"{'together':<41} {'':8} {time.monotonic() - begin:5.0f} s", sep="\n")
    for part in done:
        for test in part.tests:
            print(f"failed: {test} of {part.name}: ./tests/run {test.split()[0]}")
        if not part.is_sound and not part.tests:
            print(f"failed: {part.name}: see {part.log}")
    passed, failed = (sum(getattr(part, what) for part in done) for what in ("passed", "failed"))
    if is_long and not words and not failed:
        RECORD.write_text(f"{said_by('git', 'rev-parse', 'HEAD')} {int(time.time())} {passed} passed, {os.uname().machine}, {os.cpu_count()} cores\n")
    elif not words and (age := age_of_long_run()):
        print(f"note: {age}")
    print(f"{passed} passed, {failed} failed")
    return failed == 0


TARGET = Path(json.loads(said_by("cargo", "metadata", "--format-version", "1", "--no-deps"))["target_directory"])
LOGS = TARGET / "logs"
LOGS.mkdir(parents=True, exist_ok=True)
sys.exit(0 if main(sys.argv[1:]) else 1)
