//! What the documents say of the code: the tests, settings, metrics and pages that they name.

use std::collections::HashSet;
use std::fs;

use super::{report, root, sources, texts};

/// Whether a name of a function may have this character.
fn is_of_name(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'
}

/// `docs/internals/requirements.md` says of each line of the requirements and each rule which test shows it; those tests exist.
#[test]
fn every_test_that_the_docs_name_exists() {
    let sources = sources();
    let functions = sources.iter().flat_map(|(_, text)| text.split("fn ").skip(1));
    let functions: HashSet<&str> = functions.filter_map(|text| text.split(|c: char| !is_of_name(c)).next()).collect();
    let mut found = Vec::new();
    for doc in ["requirements.md", "guarantees.md", "protocol/README.md"].map(|doc| format!("docs/internals/{doc}")) {
        let Ok(text) = fs::read_to_string(root().join(&doc)) else { continue };
        for name in text.split('`').skip(1).step_by(2) {
            let is_test = name.matches('_').count() >= 2 && name.chars().all(is_of_name);
            if is_test && !functions.contains(name) {
                found.push(format!("{doc}: `{name}`"));
            }
        }
    }
    report("no test has this name", &found);
}

/// The tables of the guide that say what becomes of a job: `docs/internals/requirements.md` has the tests that show each cell.
#[test]
fn each_cell_of_the_tables_of_verbs_has_a_test_of_it() {
    let sources: String = sources().into_iter().map(|(_, text)| text).collect();
    let is_shown = |cell: &&str| {
        let mut names = cell.split('`').skip(1).step_by(2).peekable();
        names.peek().is_some() && names.all(|name| sources.contains(&format!("async fn {name}(")))
    };
    let rows = |doc: &str, head: &str| -> Vec<Vec<String>> {
        let text = fs::read_to_string(root().join("docs").join(doc)).unwrap();
        let table = text.split("\n\n").find(|part| part.starts_with(head)).unwrap_or_else(|| panic!("{doc}: {head}"));
        let cells = |row: &str| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
        table.lines().skip(2).map(cells).collect()
    };
    let (mut found, mut cells) = (Vec::new(), 0);
    for (doc, of_guide, of_tests) in [
        ("guide/changing-jobs.md", "| verb | ", "| verb | "),
        ("guide/pausing.md", "| what | under a pause |", "| under a pause | "),
        ("guide/pausing.md", "| what | while the topic drains |", "| while the topic drains | "),
    ] {
        let (guide, shown) = (rows(doc, of_guide), rows("internals/requirements.md", of_tests));
        let names = |rows: &[Vec<String>]| rows.iter().map(|row| (row[0].clone(), row.len())).collect::<Vec<_>>();
        assert_eq!(names(&guide), names(&shown), "{doc}: {of_guide}");
        let of_rows: Vec<&str> = shown.iter().flat_map(|row| row[1..].iter().map(String::as_str)).collect();
        cells += of_rows.len();
        found.extend(of_rows.into_iter().filter(|cell| !is_shown(cell)).map(|cell| format!("{doc}: {cell}")));
    }
    assert_eq!(cells, 4 * 7 + 10 + 8, "the tables are found");
    report("name a test that shows this", &found);
}

/// Every line of the source documents, and every rule, has its row, which names a test or says why there is none.
#[test]
fn every_requirement_has_its_row() {
    let text = fs::read_to_string(root().join("docs/internals/requirements.md")).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(" | ").collect()).collect();
    let lines = [("S0-", 28), ("S1-", 15), ("S2-", 14), ("S3-", 84), ("S4-", 44), ("S4U-", 18), ("Y-", 4)];
    let defects = [("D0-", 8), ("D1-", 8), ("D2-", 3), ("D3-", 16), ("D4-", 6)];
    let lines = lines.into_iter().flat_map(|(prefix, most)| (1..=most).map(move |n| format!("| {prefix}{n:02}")));
    let defects = defects.into_iter().flat_map(|(prefix, most)| (1..=most).map(move |n| format!("| {prefix}{n}")));
    let (rules, _) = rules();
    let rules = rules.iter().map(|rule| format!("| {rule}"));
    let reasons = ["rejected", "later", "nothing to", "is in the docs", "not visible here", "a rule of the"];
    let answered = |row: &[&str]| {
        row.len() == 3 && (row[2].contains('`') || reasons.iter().any(|reason| row[1..].concat().contains(reason)))
    };
    let unanswered = lines.chain(defects).chain(rules).filter(|name| {
        let mut of_this = rows.iter().filter(|row| row[0] == name).peekable();
        of_this.peek().is_none() || !of_this.all(|row| answered(row))
    });
    report("say in docs/internals/requirements.md what shows these", &unanswered.collect::<Vec<_>>());
}

/// The numbers of the rules of the protocol, and the empty ones, whose rules became parts of others.
fn rules() -> (Vec<u8>, Vec<u8>) {
    let text = fs::read_to_string(root().join("docs/internals/protocol/README.md")).unwrap();
    let section = text.split("\n## ").find(|part| part.starts_with("4. Rules")).unwrap();
    let items = section.lines().skip(1).filter_map(|line| line.split_once(". "));
    let (mut rules, mut empty) = (Vec::new(), Vec::new());
    for (number, text) in items.filter_map(|(number, text)| Some((number.parse().ok()?, text))) {
        if text.starts_with("Merged into rule ") { empty.push(number) } else { rules.push(number) }
    }
    (rules, empty)
}

#[test]
fn the_protocol_has_at_most_25_rules_and_each_keeps_its_number() {
    let (rules, empty) = rules();
    assert!(rules.len() <= 25, "merge rules that are one idea: {}", rules.len());
    let mut all = [rules, empty].concat();
    all.sort_unstable();
    assert!(all.iter().copied().eq(1..=34), "{all:?}");
}

/// The numbers that a text cites as "rule 7" or "rules 5, 6 and 7".
fn cited(text: &str) -> Vec<u8> {
    let mut cited = Vec::new();
    let mut is_list = false;
    for word in text.split_whitespace().filter(|word| !matches!(*word, "//" | "///" | "//!" | "--")) {
        let number = word.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u8>().ok().filter(|_| is_list);
        cited.extend(number);
        is_list = matches!(word.trim_start_matches(['(', '[']), "rule" | "rules")
            || is_list && matches!(word, "and" | "or" | "to")
            || number.is_some() && word.ends_with(|c: char| c.is_ascii_digit() || c == ',');
    }
    cited
}

#[test]
fn no_text_cites_the_number_of_a_rule_that_became_part_of_another() {
    let (_, empty) = rules();
    let files = [".rs", ".lua", ".pml", ".md"]
        .into_iter()
        .flat_map(|ending| texts(&["dq", "tests", "docs", "examples"], ending));
    let found = files.map(|(path, text)| (path, cited(&text))).flat_map(|(path, cited)| {
        let gone = cited.into_iter().filter(|rule| empty.contains(rule));
        gone.map(|rule| format!("{path}: rule {rule}")).collect::<Vec<_>>()
    });
    report("cite the rule that has the text now", &found.collect::<Vec<_>>());
}

/// The tables of settings in the guide name each setting with the default that the code has.
#[tokio::test(start_paused = true)]
async fn the_guide_has_every_setting_with_its_default() {
    #[derive(Debug, serde::Serialize, serde::Deserialize, dq::DelayJob)]
    #[job(topic = "work")]
    struct Work;

    #[dq::delay_listener(register = false)]
    async fn work(_job: dq::Job<Work>) -> Result<(), dq::JobError> {
        Ok(())
    }

    let guide = fs::read_to_string(root().join("docs/guide/configuration.md")).unwrap();
    let node = dq::testing::Harness::start(|factory| factory.listener::<work>()).await.into_context();
    let topic = node.topic_settings("work").unwrap();
    let rows =
        node.settings().all().iter().chain(topic.all()).map(|is| format!("\n| `{}` | `{}` | ", is.key, is.value));
    report(
        "put these rows into docs/guide/configuration.md",
        &rows.filter(|row| !guide.contains(row)).collect::<Vec<_>>(),
    );
}

/// The table of metrics in the guide is the table of the code.
#[test]
fn the_guide_has_every_metric_and_no_other() {
    let guide = fs::read_to_string(root().join("docs/guide/metrics.md")).unwrap();
    let rows = dq::telemetry::METRICS.iter().map(|metric| {
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        format!("| `{}` | {} | {} | {} |", metric.name, metric.kind.as_str(), labels.join(", "), metric.help)
    });
    let listed: Vec<_> =
        guide.lines().filter(|line| line.starts_with("| `dq_") && line.matches(" | ").count() == 3).collect();
    assert_eq!(rows.collect::<Vec<_>>(), listed);
}

/// The table of spans in the guide is the table of the code.
#[test]
fn the_guide_has_every_span_and_no_other() {
    let guide = fs::read_to_string(root().join("docs/guide/traces.md")).unwrap();
    let rows = dq::telemetry::SPANS.iter().map(|span| {
        let fields: Vec<_> = span.fields.iter().map(|field| format!("`{field}`")).collect();
        format!("| `{}` | {} | {} | {} |", span.name, span.level, fields.join(", "), span.help)
    });
    let listed: Vec<_> = guide.lines().filter(|line| line.starts_with("| `dq.")).collect();
    assert_eq!(rows.collect::<Vec<_>>(), listed);
}

/// Where a relative link of a document leads, and the heading in it.
fn links(text: &str) -> Vec<(String, Option<String>)> {
    let mut prose = String::new();
    let mut fenced = false;
    for line in text.lines() {
        match line.trim_start().starts_with("```") {
            true => fenced = !fenced,
            false if !fenced => prose.extend([line, "\n"]),
            false => {}
        }
    }
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let relative = targets.filter(|target| !target.contains("://") && !target.contains(char::is_whitespace));
    let parts = relative.map(|target| target.split_once('#').map_or((target, None), |(file, to)| (file, Some(to))));
    parts.map(|(file, heading)| (file.to_owned(), heading.map(str::to_owned))).collect()
}

/// A heading as links name it.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let mut documents = texts(&["docs", "examples"], ".md");
    for name in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        documents.push((name.to_owned(), fs::read_to_string(root().join(name)).unwrap()));
    }
    let mut found = Vec::new();
    for (path, text) in &documents {
        for (file, heading) in links(text) {
            let own = root().join(path);
            let target = if file.is_empty() { own } else { own.parent().unwrap().join(&file) };
            let known = match &heading {
                None => target.exists(),
                Some(wanted) => fs::read_to_string(&target)
                    .is_ok_and(|text| text.lines().any(|line| line.starts_with('#') && anchor(line) == *wanted)),
            };
            if !known {
                found.push(format!("{path}: {file}#{}", heading.unwrap_or_default()));
            }
        }
    }
    report("these links lead nowhere", &found);
}
