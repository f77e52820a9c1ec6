//! Environment variables as settings.
//!
//! `DQ_STORE` is the store's URL, `DQ_<KEY>` a setting of the node (`DQ_LEASE=30s`), and `DQ_TOPIC_<TOPIC>_<KEY>` a
//! setting of a topic (`DQ_TOPIC_ORDER_TIMEOUT_CONCURRENCY=8`). Names are in capitals, with `_` for every character
//! other than `A-Z` and `0-9`. dq finds the topic by writing every known topic in this form. A variable with two
//! meanings is a problem. Every other variable that begins with `DQ_` is ignored and named in the log, because others make
//! such variables too: Kubernetes sets `DQ_REDIS_PORT` for a service called `dq-redis`. `DQ_SEED` and `DQ_ONLY` belong to
//! simulations in tests, `DQ_APP` and `DQ_CONFIG` to the program `dq`.

use std::collections::BTreeMap;
use std::env;

use super::layer::Layer;
use super::problem::{Setting, SettingProblem, nearest};
use super::settings::{Keyed, NodeSettings, TopicSettings};
use super::source::Source;
use super::unused::Unused;
use super::value::Written;

const PREFIX: &str = "DQ_";
const STORE: &str = "DQ_STORE";
const TOPIC: &str = "DQ_TOPIC_";
/// They select the run of a simulation in tests, which may also start real nodes, and what the program `dq` opens.
const OF_OTHERS: [&str; 4] = ["DQ_SEED", "DQ_ONLY", "DQ_APP", "DQ_CONFIG"];

/// Variables by name.
pub(crate) type Variables = BTreeMap<String, String>;

/// The variables of this process that begin with `DQ_`.
pub(crate) fn of_this_process() -> Variables {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
    };
    env::vars_os().map(text).filter(|(name, _)| name.starts_with(PREFIX) && !OF_OTHERS.contains(&&**name)).collect()
}

/// Turns `order-timeout` into `ORDER_TIMEOUT`.
fn capitals(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

/// Reads the variables. `topics` are the known topics, or `None` if this node cannot know them.
pub(crate) fn read(variables: &Variables, topics: Option<&[&str]>) -> Layer {
    let names = Names::of(topics.unwrap_or_default());
    let mut layer = Layer::default();
    for (name, value) in variables.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        let source = Source::Variable(name.clone());
        let store = [Setting::new(None, "store")];
        match if name == STORE { &store } else { names.meanings(name) } {
            [] => names.unused(name, topics, &mut layer),
            [setting] if value.trim().is_empty() => {
                let why = "the variable is set and empty: unset it, or give it a value".into();
                layer.problems.push(SettingProblem::InvalidValue { setting: setting.clone(), at: source, why });
            }
            [_] if name == STORE => layer.store = Some((value.clone(), source)),
            [Setting { topic, key }] => {
                let _known = layer.read(topic.as_deref(), key, Written::Text(value), source);
            }
            meanings => {
                let meanings = meanings.to_vec();
                layer.problems.push(SettingProblem::AmbiguousVariable { name: name.clone(), meanings });
            }
        }
    }
    layer
}

/// The topic in capitals and the key of `DQ_TOPIC_<TOPIC>_<KEY>`, whether there is such a topic or not.
fn of_some_topic(name: &str) -> Option<(&str, String)> {
    let rest = name.strip_prefix(TOPIC)?;
    let keys = TopicSettings::KEYS.iter().map(|key| capitals(key.name));
    let ends = keys.filter_map(|key| Some((rest.strip_suffix(&key)?.strip_suffix('_')?, key)));
    ends.filter(|(topic, _)| !topic.is_empty()).min_by_key(|(topic, _)| topic.len())
}

/// Every valid name, and the settings it means.
struct Names(BTreeMap<String, Vec<Setting>>);

impl Names {
    fn of(topics: &[&str]) -> Self {
        let mut names: BTreeMap<String, Vec<Setting>> = BTreeMap::new();
        for key in NodeSettings::KEYS {
            names.entry(format!("{PREFIX}{}", capitals(key.name))).or_default().push(Setting::new(None, key.name));
        }
        for &topic in topics {
            for key in TopicSettings::KEYS {
                let name = format!("{TOPIC}{}_{}", capitals(topic), capitals(key.name));
                names.entry(name).or_default().push(Setting::new(Some(topic), key.name));
            }
        }
        Self(names)
    }

    fn meanings(&self, name: &str) -> &[Setting] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// Notes a variable that names no setting of this node. One of a topic without a listener here may be for another program.
    fn unused(&self, name: &str, topics: Option<&[&str]>, layer: &mut Layer) {
        let Some((topic, key)) = of_some_topic(name) else {
            let known = self.0.keys().map(String::as_str).chain([STORE]).map(|known| &known[PREFIX.len()..]);
            let rest = &name[PREFIX.len()..];
            let is_of_topic = TopicSettings::KEYS.iter().any(|key| capitals(key.name) == rest);
            let near = if is_of_topic { Some(format!("TOPIC_<TOPIC>_{rest}")) } else { nearest(rest, known) };
            let near = near.map(|near| format!("{PREFIX}{near}"));
            return layer.unused_variables.push(Unused::new(name, None, near));
        };
        let Some(topics) = topics else { return };
        let known: Vec<_> = topics.iter().map(|topic| capitals(topic)).collect();
        let near = nearest(topic, known.iter().map(String::as_str)).map(|near| format!("{TOPIC}{near}_{key}"));
        let into = if near.is_some() { &mut layer.unused_variables } else { &mut layer.of_other_programs };
        into.push(Unused::new(name, None, near));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn problems(pairs: &[(&str, &str)], topics: Option<&[&str]>) -> Vec<String> {
        read(&variables(pairs), topics).problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_topic_is_found_by_its_capitals() {
        let layer = read(
            &variables(&[
                ("DQ_STORE", "memory:x"),
                ("DQ_LEASE", "30s"),
                ("DQ_TOPIC_ORDER_TIMEOUT_V1_2_MAX_CRASHES", "5"),
                ("PATH", "/bin"),
            ]),
            Some(&["order-timeout:v1.2", "other"]),
        );
        assert_eq!(layer.problems, []);
        assert_eq!(layer.store.unwrap().0, "memory:x");
        assert_eq!(layer.node.len(), 1);
        assert_eq!(layer.topics.keys().collect::<Vec<_>>(), ["order-timeout:v1.2"]);
    }

    #[test]
    fn a_variable_of_two_topics_with_the_same_capitals_is_a_problem() {
        assert_eq!(
            problems(&[("DQ_TOPIC_A_B_TIMEOUT", "5s")], Some(&["a.b", "a-b"])),
            [
                "the environment variable `DQ_TOPIC_A_B_TIMEOUT` may mean `timeout` of topic `a.b` or `timeout` of topic \
              `a-b`: set it in the config file"
            ]
        );
        let of_two_keys = problems(&[("DQ_TOPIC_A_ON_TIMEOUT", "retry")], Some(&["a", "a-on"]));
        assert_eq!(
            of_two_keys,
            [
                "the environment variable `DQ_TOPIC_A_ON_TIMEOUT` may mean `on_timeout` of topic `a` or `timeout` of topic \
              `a-on`: set it in the config file"
            ]
        );
    }

    #[test]
    fn a_variable_that_is_set_and_empty_is_a_problem_of_its_own() {
        let says = "the variable is set and empty: unset it, or give it a value";
        assert_eq!(
            problems(&[("DQ_LEASE", ""), ("DQ_STORE", " "), ("DQ_TOPIC_A_RETRY", "")], Some(&["a"])),
            [
                format!("`lease` (DQ_LEASE): {says}"),
                format!("`store` (DQ_STORE): {says}"),
                format!("`retry` of topic `a` (DQ_TOPIC_A_RETRY): {says}"),
            ]
        );
    }

    fn unused(pairs: &[(&str, &str)], topics: Option<&[&str]>) -> (Vec<String>, Vec<String>) {
        let layer = read(&variables(pairs), topics);
        assert_eq!(layer.problems, [], "a variable of someone else must not keep a node from starting");
        let texts = |unused: &[Unused]| unused.iter().map(ToString::to_string).collect();
        (texts(&layer.unused_variables), texts(&layer.of_other_programs))
    }

    #[test]
    fn a_variable_that_names_no_setting_is_noted_with_a_suggestion() {
        let pairs = [
            ("DQ_CONCURRENCY", "3"),
            ("DQ_LAESE", "1s"),
            ("DQ_TOPIC_ODRER_TIMEOUT", "1s"),
            ("DQ_QUITE_ANOTHER_THING", "1"),
        ];
        let expected = [
            "`DQ_CONCURRENCY` (did you mean `DQ_TOPIC_<TOPIC>_CONCURRENCY`?)",
            "`DQ_LAESE` (did you mean `DQ_LEASE`?)",
            "`DQ_QUITE_ANOTHER_THING`",
            "`DQ_TOPIC_ODRER_TIMEOUT` (did you mean `DQ_TOPIC_ORDER_TIMEOUT`?)",
        ];
        assert_eq!(unused(&pairs, Some(&["order"])).0, expected);
    }

    #[test]
    fn the_variables_of_a_kubernetes_service_are_noted_without_a_wrong_suggestion() {
        let of_a_service = [
            ("DQ_REDIS_PORT", "tcp://10.0.0.1:6379"),
            ("DQ_REDIS_PORT_6379_TCP", "tcp://10.0.0.1:6379"),
            ("DQ_REDIS_PORT_6379_TCP_ADDR", "10.0.0.1"),
            ("DQ_REDIS_PORT_6379_TCP_PORT", "6379"),
            ("DQ_REDIS_PORT_6379_TCP_PROTO", "tcp"),
            ("DQ_REDIS_SERVICE_HOST", "10.0.0.1"),
            ("DQ_REDIS_SERVICE_PORT", "6379"),
        ];
        let noted = unused(&of_a_service, Some(&["order"])).0;
        assert_eq!(noted, of_a_service.map(|(name, _)| format!("`{name}`")));
    }

    #[test]
    fn a_variable_of_a_topic_without_a_listener_here_may_be_for_another_program() {
        let pairs = [("DQ_TOPIC_MAIL_ON_TIMEOUT", "retry"), ("DQ_TOPIC_MAIL_RETRY", "none")];
        let expected = ["`DQ_TOPIC_MAIL_ON_TIMEOUT`".to_owned(), "`DQ_TOPIC_MAIL_RETRY`".to_owned()];
        assert_eq!(unused(&pairs, Some(&["order"])), (vec![], expected.to_vec()));
    }

    #[test]
    fn a_node_without_listeners_ignores_variables_of_topics() {
        assert_eq!(unused(&[("DQ_TOPIC_ORDER_TIMEOUT", "1s")], None), (vec![], vec![]));
        assert_eq!(unused(&[("DQ_TOPIC_ORDER_TIMOUT", "1s")], None).0.len(), 1);
    }
}
