//! The table of targets.

use crate::target::{Found, Target};
use crate::{answers, buffer, draw::Draw, journal, keys, lines, parsers, queries, settings, signals};

const fn target(name: &'static str, short: u64, about: &'static str, run: fn(&Draw, &mut Found)) -> Target {
    Target { name, about, short, run }
}

pub const TARGETS: [Target; 13] = [
    target("cron", 3_000, "cron lines and zones, and when they fire", parsers::cron),
    target("words", 3_000, "durations, times, policies, names and the URLs of stores", parsers::words),
    target("records", 20_000, "the bytes of records, and metadata for them", parsers::records),
    target("schedules", 2_000, "schedules as a store has them, and their ticks", parsers::schedules),
    target("settings", 2_000, "config files in TOML", settings::settings),
    target("lines", 1_500, "export lines: import, changes, a node, open again, export, import", lines::lines),
    target("lines-redis", 240, "export lines on Redis: import, export, import", lines::redis),
    target("journal", 400, "journals: check, open, a node, open again", journal::journal),
    target("buffer", 200, "directories of a provider's buffer: open, send, open again", buffer::buffer),
    target("signals", 2_400, "signals to a node whose handler runs", signals::signals),
    target("queries", 2_000, "requests to the dashboard and its API, beside a node", queries::queries),
    target("keys", 120, "entries of keys of Redis, the doctor, and a node", keys::keys),
    target("answers", 1_000, "answers of Redis, changed on their way to nodes", answers::answers),
];
