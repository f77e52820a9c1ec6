//! `dq top` without a terminal.

use std::sync::Arc;
use std::time::Duration;

use dq::Provider;
use dq::config::NodeSettings;
use dq::environment::{Environment, Seeded, StoreClock, WallClock};
use dq::job::AppName;
use dq::store::memory::MemoryStore;
use dq::testing::ManualClock;
use dq_cli::verbs::top::{Action, Model, Sort, draw, read};
use dq_tests::redis::RedisServer;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::in_process::ran;

fn shop() -> Provider {
    shop_at(Arc::new(WallClock))
}

fn shop_at(clock: Arc<dyn StoreClock>) -> Provider {
    let store = Arc::new(MemoryStore::new(clock));
    let environment = Environment::on_this_runtime(Arc::new(Seeded::by_system()));
    Provider::root(AppName::new("shop").unwrap(), store, environment, NodeSettings::default())
}

async fn refreshed(model: &mut Model, provider: &Provider) {
    let seen = read(&provider.inspect(), model.wanted()).await;
    model.show(seen);
}

fn press(model: &mut Model, code: KeyCode) -> Action {
    model.key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn picture(model: &Model) -> String {
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
    terminal.draw(|frame| draw(frame, model)).unwrap();
    terminal.backend().to_string()
}

async fn filled() -> Provider {
    let provider = shop();
    for n in 0..20_u64 {
        let topic = provider.topic(&format!("topic{n:02}")).unwrap();
        for job in 0..=n {
            topic.add_json("1").id(job).await.unwrap();
        }
        topic.add_json("1").id("later").after("1h").await.unwrap();
    }
    provider
}

#[tokio::test]
async fn topics_are_shown_selected_sorted_and_read_page_by_page() {
    let (provider, mut model) = (filled().await, Model::new("shop".into(), Sort::Name));
    assert!(picture(&model).contains("reading .."));
    refreshed(&mut model, &provider).await;
    let seen = picture(&model);
    for text in ["dq top  shop", "topic00", "topic15", "page 1, more follow", "no node listens", "the first job is due"]
    {
        assert!(seen.contains(text), "{text}: {seen}");
    }
    assert!(!seen.contains("topic16"), "{seen}");
    assert_eq!((press(&mut model, KeyCode::Down), model.row()), (Action::Read, Some(1)));
    refreshed(&mut model, &provider).await;
    assert!(picture(&model).contains(" topic01 "), "its frame has its name");
    press(&mut model, KeyCode::Char('2'));
    assert_eq!(
        (model.row(), picture(&model).contains("by ready")),
        (Some(14), true),
        "the selection stays on its topic"
    );
    assert_eq!(press(&mut model, KeyCode::Home), Action::Read);
    assert_eq!(model.wanted().selected.as_deref(), Some("topic15"));
    assert_eq!(press(&mut model, KeyCode::Char('n')), Action::Read);
    refreshed(&mut model, &provider).await;
    let seen = picture(&model);
    assert!(seen.contains("topic19") && seen.contains("page 2:") && !seen.contains("topic15"), "{seen}");
    assert_eq!(press(&mut model, KeyCode::Char('n')), Action::Nothing, "it is the last page");
    assert_eq!(press(&mut model, KeyCode::Char('b')), Action::Read);
    refreshed(&mut model, &provider).await;
    assert!(picture(&model).contains("topic15"));
}

#[tokio::test]
async fn what_is_latest_comes_first_and_each_key_sorts_as_the_help_says() {
    let clock = Arc::new(ManualClock::at(1_800_000_000_000_000));
    let (provider, mut model) = (shop_at(clock.clone()), Model::new("shop".into(), Sort::Late));
    for (name, after) in [("c-is-latest", "0s"), ("b-is-late", "0s"), ("a-is-on-time", "1h")] {
        provider.topic(name).unwrap().add_json("1").after(after).await.unwrap();
        clock.advance(Duration::from_secs(60));
    }
    refreshed(&mut model, &provider).await;
    let first = |model: &Model| model.wanted().selected.unwrap();
    assert_eq!(first(&model), "c-is-latest", "the topic that needs somebody most is selected, and the first");
    assert_eq!(model.row(), Some(0));
    for (key, word, row) in [
        ('5', "by name", 2),
        ('1', "by late", 0),
        ('s', "by ready", 1),
        ('S', "by late", 0),
        ('S', "by name", 2),
        ('4', "by dead", 2),
        ('3', "by running", 2),
    ] {
        assert_eq!(press(&mut model, KeyCode::Char(key)), Action::Nothing);
        assert!(picture(&model).contains(word), "{key}: {}", picture(&model));
        assert_eq!((first(&model).as_str(), model.row()), ("c-is-latest", Some(row)), "{key}");
    }
    press(&mut model, KeyCode::Char('?'));
    assert!(picture(&model).contains("1 to 5  late, ready, running, dead, name"), "{}", picture(&model));
}

#[tokio::test]
async fn a_pause_needs_a_yes_and_is_shown() {
    let (provider, mut model) = (filled().await, Model::new("shop".into(), Sort::Name));
    refreshed(&mut model, &provider).await;
    press(&mut model, KeyCode::Char('p'));
    assert!(picture(&model).contains("pause topic00 on all its nodes? y/n"));
    assert_eq!(press(&mut model, KeyCode::Char('n')), Action::Nothing);
    press(&mut model, KeyCode::Char('p'));
    assert_eq!(press(&mut model, KeyCode::Char('y')), Action::Pause("topic00".into()));
    provider.topic("topic00").unwrap().pause().reason("bank \u{1b}[2J").by("ann\u{202e}").await.unwrap();
    refreshed(&mut model, &provider).await;
    let seen = picture(&model);
    assert!(seen.contains("paused by ann\\u{202e}: bank \\u{1b}[2J"), "{seen}");
    press(&mut model, KeyCode::Char('p'));
    assert_eq!(press(&mut model, KeyCode::Char('y')), Action::Resume("topic00".into()));
}

#[tokio::test]
async fn an_outage_is_said_and_what_was_read_stays() {
    let (provider, mut model) = (filled().await, Model::new("shop".into(), Sort::Name));
    refreshed(&mut model, &provider).await;
    let seen = dq_cli::verbs::top::Seen { wanted: model.wanted(), page: Err("no \u{1b} answer".into()) };
    model.show(seen);
    let seen = picture(&model);
    assert!(seen.contains("no \\u{1b} answer") && seen.contains("topic00"), "{seen}");
    press(&mut model, KeyCode::Char('?'));
    assert!(picture(&model).contains("PageDown"));
    press(&mut model, KeyCode::Char('x'));
    for code in [KeyCode::Char('q'), KeyCode::Esc] {
        assert_eq!(press(&mut model, code), Action::Quit);
    }
    assert_eq!(model.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Action::Quit);
}

#[tokio::test]
async fn a_topic_with_a_key_of_a_wrong_type_is_the_first_row_and_hides_no_other_topic() {
    let server = RedisServer::start();
    let provider = Provider::connect("shop", server.url()).await.unwrap();
    for name in ["mail", "orders"] {
        provider.topic(name).unwrap().add_json("1").after("1h").await.unwrap();
    }
    server.command(&["SET", "dq:{shop:orders}:dead", "of another program"]);
    let mut model = Model::new("shop".into(), Sort::Late);
    refreshed(&mut model, &provider).await;
    refreshed(&mut model, &provider).await; // the first row is selected
    let (picture, error) = (picture(&model), "key `dq:{shop:orders}:dead` has the wrong type");
    assert!(picture.contains(error) && picture.contains("mail"), "{picture}");
    assert!(picture.find("orders").unwrap() < picture.find("mail").unwrap(), "{picture}");
    let url = server.url();
    let listed = tokio::task::spawn_blocking(move || ran(&["topics", "--json", "--store", &url, "--app", "shop"]));
    let listed = listed.await.unwrap();
    let lines: Vec<serde_json::Value> = listed.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((listed.code, lines.len()), (0, 2), "{listed:?}");
    assert!(lines[1]["error"].as_str().unwrap().starts_with(error), "{listed:?}");
    assert_eq!((&lines[0]["delayed"], &lines[0]["error"]), (&1.into(), &serde_json::Value::Null));
}
