//! Compares the scripts with their headers, with `keys.rs` and with the docs.

use super::super::keys::Keyspace;
use super::*;

/// `KEYS[1]  {app:topic}:jobs  HASH  ...` as (`jobs`, `HASH`).
fn keys_of_header(step: Step) -> Vec<(String, String)> {
    let header = step.text().split_once("]]\n").expect("a script has a header").0;
    let lines = header.lines().filter_map(|line| line.strip_prefix("KEYS["));
    lines
        .enumerate()
        .map(|(n, line)| {
            let (number, rest) = line.split_once(']').unwrap();
            assert_eq!(number, (n + 1).to_string(), "{}: keys are numbered in order", step.name());
            let mut words = rest.split_whitespace();
            let name = words.next().unwrap().strip_prefix("{app:topic}:").expect("a key of the topic").to_owned();
            (name, words.next().unwrap().to_owned())
        })
        .collect()
}

#[test]
fn headers_name_the_keys_of_the_scripts() {
    for step in Step::ALL {
        let given = step.keys().iter().map(|key| written(*key));
        assert_eq!(keys_of_header(*step), given.collect::<Vec<_>>(), "{}", step.name());
    }
}

/// The name of a key behind the hash tag, as headers and docs write it, and its type.
fn written(key: Key) -> (String, String) {
    let owner = match key {
        Key::Calls => ":PRODUCER",
        Key::Set => ":NAME",
        key if key.is_owned() => ":NODE",
        _ => "",
    };
    (format!("{}{owner}", key.suffix()), key.redis_type().to_uppercase())
}

/// The keys and channels of all scripts. They tell moves through a channel that they name themselves.
fn keys() -> impl Iterator<Item = Key> {
    Step::ALL.iter().flat_map(|step| step.keys()).copied().chain([Key::EventsChannel])
}

const DOCS: &str = include_str!("../../../../../docs/guide/deploying-on-redis.md");
const TOPIC: &str = "`dq:{APP:TOPIC}:";

#[test]
fn the_table_in_the_docs_has_the_keys_of_the_scripts() {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| ")?.split(" | ").map(str::to_owned);
        let name = cells.next()?.strip_prefix(TOPIC)?.strip_suffix('`')?.to_owned();
        Some((name, cells.next()?))
    };
    let section = DOCS
        .split("## Keys\n")
        .nth(1)
        .and_then(|rest| rest.split("\n## ").next())
        .expect("the docs have a section on keys");
    let mut docs: Vec<_> = section.lines().filter_map(row).collect();
    docs.sort();
    let mut given: Vec<_> = keys().map(written).collect();
    given.sort();
    given.dedup();
    assert_eq!(docs, given);
    for (name, redis_type) in Keyspace::default().directory("APP").iter().zip(["ZSET", "HASH"]) {
        assert!(section.contains(&format!("| `{name}` | {redis_type} |")), "{name}");
    }
}

#[test]
fn every_key_in_the_docs_exists() {
    let known: Vec<_> = keys().map(Key::suffix).collect();
    let mut mentioned = 0;
    for rest in DOCS.split(&TOPIC[1..]).skip(1) {
        let name: String = rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        assert!(name.is_empty() || known.contains(&name.as_str()), "the docs name `{name}`, which is not a key");
        mentioned += 1;
    }
    assert!(mentioned > known.iter().collect::<BTreeSet<_>>().len(), "{mentioned}");
}

/// The commands that a text of a script calls.
fn commands_of(text: &str) -> BTreeSet<String> {
    let calls = ["call('", "write('", "read('", "ask('"].into_iter().flat_map(|call| text.split(call).skip(1));
    calls.filter_map(|rest| rest.split_once('\'')).map(|(name, _)| name.to_ascii_lowercase()).collect()
}

#[test]
fn the_user_in_the_docs_may_call_every_command_of_the_scripts() {
    let rule = DOCS.lines().find_map(|line| line.strip_prefix("ACL SETUSER dq ")).expect("the docs have the rule");
    let allowed: BTreeSet<_> = rule.split_whitespace().filter_map(|word| word.strip_prefix('+')).collect();
    let called: BTreeSet<_> = Step::ALL.iter().flat_map(|step| commands_of(assembled(*step))).collect();
    assert!(called.len() > 25, "{called:?}");
    let missing: Vec<_> = called.iter().filter(|name| !allowed.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn headers_are_complete() {
    let parts = PARTS.iter().map(|(name, text)| (*name, *text, &["Cost"][..0]));
    let files = Step::ALL.iter().map(|step| (step.name(), step.text(), &["Returns", "Holds", "Cost"][..]));
    for (name, text, wanted) in files.chain(parts) {
        let (header, _) = text.split_once("]]\n").unwrap_or_else(|| panic!("{name} has no header"));
        let purpose = format!("--[[ {}: ", name.trim_end_matches(".lua"));
        assert!(header.starts_with(&purpose), "{name}: the header begins with `{purpose}`");
        for word in wanted {
            assert!(header.lines().any(|line| line.starts_with(word)), "{name}: the header has no `{word}`");
        }
    }
}

#[test]
fn headers_name_every_argument() {
    for step in Step::ALL {
        let (header, body) = step.text().split_once("]]\n").unwrap();
        let used = (1..=9).filter(|n| body.contains(&format!("ARGV[{n}]"))).max().unwrap_or_default();
        for n in 1..=used {
            assert!(header.contains(&format!("ARGV[{n}]  ")), "{}: ARGV[{n}] is not in the header", step.name());
        }
    }
}

#[test]
fn every_name_of_a_key_is_one() {
    let names: BTreeSet<_> = keys().map(|key| key.suffix().replace('-', "_")).collect();
    for (file, text) in Step::ALL.iter().map(|step| (step.name(), step.text())).chain(PARTS.iter().copied()) {
        for rest in text.split("KEYS.").skip(1) {
            let name: String = rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            assert!(names.contains(&name), "{file}: no key is named `{name}`");
        }
    }
}

#[test]
fn every_part_is_used_and_every_include_exists() {
    let texts: String = Step::ALL.iter().map(|step| step.text()).chain(PARTS.iter().map(|(_, text)| *text)).collect();
    for (name, _) in PARTS {
        let is_named = |word: &str| texts.contains(&format!("-- {word} {name}\n"));
        assert!(is_named("include") || is_named("rare"), "no script includes {name}");
    }
    for step in Step::ALL {
        let text = assembled(*step);
        assert!(
            !text.contains("-- include ") && !text.contains("-- rare "),
            "{} includes an unknown part",
            step.name()
        );
        // A settle of plain acks reads the clock only if something wants to know it: the record, the lease, or what is rare.
        let clocks = if *step == Step::Settle { 3 } else { 1 };
        let reads = text.matches("redis.call('TIME')").count();
        assert!(reads <= clocks, "{} reads one clock", step.name());
        let is_timed = [Step::Add, Step::Transfer, Step::Settle].contains(step);
        assert!(!is_timed || reads > 0, "{} reads the clock", step.name());
    }
}

/// The lines of code that whoever follows the common path of a step reads, from top to bottom.
fn common_lines(step: Step) -> usize {
    let mut text = String::new();
    assemble(step, body(step.text()), &["-- include "], &mut text);
    text.lines().filter(|line| !line.trim_start().starts_with("--")).count()
}

#[test]
fn the_common_path_of_the_steps_of_every_job_is_short() {
    for (step, most) in [(Step::Add, 125), (Step::Transfer, 170), (Step::Settle, 80)] {
        let lines = common_lines(step);
        assert!(
            (most / 2..=most).contains(&lines),
            "{}: {lines} lines; at most {most}, and not a fraction of that",
            step.name()
        );
    }
}
