//! The alert rules and the dashboard that come with the example `metrics`.

use std::path::PathBuf;
use std::process::Command;

use dq::telemetry::{METRICS, MetricKind};

use crate::program::shipped;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("metrics")
}

/// Runs `promtool` in the folder of the example.
fn promtool(arguments: &[&str]) -> String {
    let output = Command::new("promtool").args(arguments).current_dir(folder()).output();
    let output = output.expect("`tests/run` installs promtool, which is in the package prometheus");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "promtool {arguments:?}: {text}");
    text
}

/// The names in an expression that dq does not report.
fn unknown_metrics(expression: &str) -> Vec<String> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let named = words.filter(|word| word.starts_with("dq_"));
    let is_known = |word: &&str| {
        METRICS.iter().any(|metric| match metric.kind {
            MetricKind::Histogram => {
                ["_bucket", "_sum", "_count"].iter().any(|end| **word == format!("{}{end}", metric.name))
            }
            _ => **word == *metric.name,
        })
    };
    named.filter(|word| !is_known(word)).map(str::to_owned).collect()
}

#[test]
fn prometheus_loads_the_alert_rules_and_their_tests_pass() {
    let checked = promtool(&["check", "config", "prometheus.yml"]);
    assert!(checked.contains("6 rules found"), "{checked}");
    assert!(promtool(&["test", "rules", "alerts.test.yml"]).contains("SUCCESS"));
    let rules = shipped("metrics/alerts.yml");
    let expressions: Vec<_> = rules.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).collect();
    assert_eq!(expressions.len(), 6);
    assert_eq!(expressions.iter().flat_map(|expression| unknown_metrics(expression)).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn every_query_of_the_dashboard_is_valid_and_names_metrics_of_dq() {
    let dashboard: serde_json::Value = serde_json::from_str(&shipped("metrics/grafana.json")).unwrap();
    let targets = dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries: Vec<_> = targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    assert!(queries.len() >= 10 && queries.iter().all(|query| query.contains("dq_")));
    assert_eq!(queries.iter().flat_map(|query| unknown_metrics(query)).collect::<Vec<_>>(), [""; 0]);
    // As rules, promtool reads them; Grafana fills in its variables before.
    let rules = queries.iter().enumerate().map(|(n, query)| {
        let query = query.replace("$__rate_interval", "1m").replace("$topic", ".*");
        serde_json::json!({ "record": format!("dq:query{n}"), "expr": query })
    });
    let group = serde_json::json!({ "name": "dashboard", "rules": rules.collect::<Vec<_>>() });
    let file = written(&serde_json::json!({ "groups": [group] }));
    promtool(&["check", "rules", file.to_str().unwrap()]);
    std::fs::remove_file(file).unwrap();
}

/// A file with these rules; JSON is YAML.
fn written(rules: &serde_json::Value) -> PathBuf {
    let path = std::env::temp_dir().join(format!("dq-dashboard-{}.yml", std::process::id()));
    std::fs::write(&path, rules.to_string()).unwrap();
    path
}
