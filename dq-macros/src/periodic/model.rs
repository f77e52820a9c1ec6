//! A schedule: the keys of `#[periodic(..)]`.

use std::time::Duration;

use dq_grammar::{MAX_DELAY, MAX_SCHEDULE, MIN_INTERVAL, check_schedule};
use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::{Ident, LitStr};

use crate::arguments::{self, Argument, Arguments, Key, Root};
use crate::errors::Errors;

const ATTRIBUTE: &str = "periodic";

const KEYS: &[Key] = &[
    Key { name: "every", example: "every = \"30s\"" },
    Key { name: "cron", example: "cron = \"0 9 * * MON-FRI\"" },
    Key { name: "tz", example: "tz = \"Asia/Singapore\"" },
    Key { name: "name", example: "name = \"nightly\"" },
    Key { name: "on_missed", example: "on_missed = \"once\"" },
    Key { name: "overlap", example: "overlap = \"skip\"" },
    Key { name: "jitter", example: "jitter = \"5m\"" },
    Key { name: "start", example: "start = \"2026-12-01T00:00:00Z\"" },
    Key { name: "end", example: "end = \"2027-01-01T00:00:00Z\"" },
    Key { name: "skipped", example: "skipped = \"later\"" },
    Key { name: "repeated", example: "repeated = \"first\"" },
    Key { name: "revision", example: "revision = 2" },
    Key { name: "register", example: "register = false" },
    Key { name: "crate", example: "crate = \"work\"" },
];

/// When the ticks are.
#[derive(Debug)]
pub(super) enum Times {
    Every(Duration),
    #[cfg_attr(not(feature = "cron"), expect(dead_code, reason = "only the feature reads cron lines"))]
    Cron {
        line: LitStr,
        zone: LitStr,
        skipped: char,
        repeated: char,
    },
    /// After a mistake.
    Unknown,
}

/// A schedule.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) root: Root,
    pub(super) name: LitStr,
    pub(super) times: Times,
    pub(super) on_missed: Option<&'static str>,
    pub(super) overlap: Option<&'static str>,
    pub(super) jitter: Duration,
    pub(super) start: Option<u64>,
    pub(super) end: Option<u64>,
    pub(super) revision: u32,
    pub(super) register: bool,
}

impl Model {
    /// Reads and checks every key.
    pub(super) fn check(tokens: TokenStream, item: &Ident, errors: &mut Errors) -> Self {
        let mut model = Self {
            root: Root::usual(),
            name: LitStr::new(&item.unraw().to_string(), item.span()),
            times: Times::Unknown,
            on_missed: None,
            overlap: None,
            jitter: Duration::ZERO,
            start: None,
            end: None,
            revision: 0,
            register: true,
        };
        let arguments = arguments::read(tokens, ATTRIBUTE, KEYS, errors);
        for argument in &arguments.list {
            match &*argument.name() {
                "name" => model.name = name(argument, errors).unwrap_or(model.name),
                "on_missed" => model.on_missed = argument.choice(&["skip", "once", "all"], errors),
                "overlap" => model.overlap = argument.choice(&["allow", "skip"], errors),
                "jitter" => model.jitter = argument.duration(errors).unwrap_or_default(),
                "start" => model.start = time(argument, errors),
                "end" => model.end = time(argument, errors),
                "revision" => model.revision = argument.number(0..=u32::MAX, errors).unwrap_or_default(),
                "register" => model.register = argument.flag(errors).unwrap_or(true),
                "crate" => model.root = Root::named(argument, errors),
                _ => {} // the times, below
            }
        }
        model.times = times(&arguments, item, errors).unwrap_or(Times::Unknown);
        if let (Some(start), Some(end)) = (model.start, model.end)
            && end < start
        {
            errors.at(find(&arguments, "end").map(Argument::place), "the end is before the start, so there is no tick");
        }
        model
    }
}

fn find<'a>(arguments: &'a Arguments, name: &str) -> Option<&'a Argument> {
    arguments.list.iter().find(|argument| argument.key == name)
}

fn name(argument: &Argument, errors: &mut Errors) -> Option<LitStr> {
    let text = argument.text(errors)?;
    let name = text.value();
    if check_schedule(&name).is_err() {
        let text = format!("the name of a schedule has 1 to {MAX_SCHEDULE} bytes and no control characters");
        errors.at(argument.place(), text);
        return None;
    }
    Some(text.clone())
}

/// A time in ms since the Unix epoch.
fn time(argument: &Argument, errors: &mut Errors) -> Option<u64> {
    let text = argument.text(errors)?;
    match dq_grammar::parse_time(&text.value()) {
        Ok(time) => Some(time),
        Err(bad) => {
            errors.at(argument.place(), bad);
            None
        }
    }
}

fn times(arguments: &Arguments, item: &Ident, errors: &mut Errors) -> Option<Times> {
    let [every, cron, zone] = ["every", "cron", "tz"].map(|name| find(arguments, name));
    for name in ["tz", "skipped", "repeated"] {
        if let Some(argument) = find(arguments, name).filter(|_| cron.is_none() && !arguments.mention("cron")) {
            errors.at(&argument.key, format!("`{name}` belongs to `cron`, and there is none"));
        }
    }
    match (every, cron) {
        (Some(_), Some(cron)) => {
            errors.at(&cron.key, "a schedule has `every` or `cron`: keep one");
            None
        }
        (Some(every), None) => {
            let interval = every.duration(errors)?;
            if !(MIN_INTERVAL..=MAX_DELAY).contains(&interval) {
                errors.at(every.place(), "`every` takes 1s to ten years");
                return None;
            }
            Some(Times::Every(interval))
        }
        (None, Some(cron)) => {
            let line = cron.text(errors)?.clone();
            let Some(zone) = zone else {
                if !arguments.mention("tz") {
                    errors.at(&line, "`cron` needs the zone whose clock it follows: write `tz = \"Asia/Singapore\"` or `tz = \"UTC\"`");
                }
                return None;
            };
            let zone = zone.text(errors)?.clone();
            let policy = |name, choices: &[&'static str], errors: &mut Errors| {
                find(arguments, name).and_then(|argument| argument.choice(choices, errors))
            };
            let skipped = policy("skipped", &["later", "never"], errors);
            let repeated = policy("repeated", &["first", "second", "both"], errors);
            checked_cron(line, zone, skipped, repeated, errors)
        }
        (None, None) => {
            if !arguments.mention("every") && !arguments.mention("cron") {
                errors.at(item, "this schedule does not say when: write `#[periodic(every = \"1h\")]` or `#[periodic(cron = \"0 9 * * *\", tz = \"UTC\")]`");
            }
            None
        }
    }
}

#[cfg(feature = "cron")]
fn checked_cron(
    line: LitStr,
    zone: LitStr,
    skipped: Option<&str>,
    repeated: Option<&str>,
    errors: &mut Errors,
) -> Option<Times> {
    use dq_grammar::{Cron, InvalidCron, RepeatedTime, SkippedTime};
    match Cron::parse(&line.value(), &zone.value()) {
        Ok(cron) => {
            let (usual_skipped, usual_repeated) = cron.policies();
            let skipped = match skipped {
                Some("later") => SkippedTime::Later,
                Some(_) => SkippedTime::Never,
                None => usual_skipped,
            };
            let repeated = match repeated {
                Some("first") => RepeatedTime::First,
                Some("second") => RepeatedTime::Second,
                Some(_) => RepeatedTime::Both,
                None => usual_repeated,
            };
            Some(Times::Cron { line, zone, skipped: skipped.letter(), repeated: repeated.letter() })
        }
        Err(bad) => {
            let place = if matches!(bad, InvalidCron::Zone { .. }) { &zone } else { &line };
            errors.at(place, bad);
            None
        }
    }
}

#[cfg(not(feature = "cron"))]
fn checked_cron(
    line: LitStr,
    _zone: LitStr,
    _skipped: Option<&str>,
    _repeated: Option<&str>,
    errors: &mut Errors,
) -> Option<Times> {
    errors
        .at(line, "cron lines need the feature `cron` of dq: write `dq = { features = [\"cron\"], .. }` in Cargo.toml");
    None
}
