//! What ran, and how late, as the verbs show it.

use dq::Provider;
use dq_cli::verbs::top::{Model, Sort, draw, read};
use dq_tests::redis::{RedisServer, ask};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use crate::in_process::Shop;

/// Two minutes ago three jobs were claimed, up to 20 ms late; three runs ended, two with an ack, and one failed for good.
const PLANT: &str = "local minute = math.floor(redis.call('TIME')[1] / 60) - 2 redis.call('HSET', KEYS[1], minute % 1440, \
    struct.pack('<I4I4I4I4I4I4I8I6I4I4I4I4I4I4I4I4', minute, 3, 3, 2, 1, 1, 30, 20, 2, 1, 0, 0, 0, 0, 0, 0))";

/// What `dq top` shows.
async fn top(server: &RedisServer) -> String {
    let provider = Provider::connect("shop", server.url()).await.unwrap();
    let mut model = Model::new("shop".into(), Sort::Late);
    for _ in 0..2 {
        model.show(read(&provider.inspect(), model.wanted()).await);
    }
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
    terminal.draw(|frame| draw(frame, &model)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn a_timeline_shows_what_ran_before_what_falls_due() {
    let server = RedisServer::start();
    let shop = Shop(server.url());
    shop.wrote(&["add", "orders", "1", "--delay", "10m"]);
    ask(&mut server.connect(), &["EVAL", PLANT, "1", "dq:{shop:orders}:statistics"]);
    for scale in ["minute", "hour"] {
        let text = shop.wrote(&["timeline", "orders", "--scale", scale]);
        let lines: Vec<_> = text.lines().collect();
        let find = |words: &str| {
            lines.iter().position(|line| line.contains(words)).unwrap_or_else(|| panic!("{words}: {text}"))
        };
        let (ran, now) = (find("99 % up to 20ms late, 1 failed, 1 dead"), find("due already"));
        assert!(find("nothing ran for") < ran && ran < now && now < find(" 1  █"), "{text}");
        assert!(
            lines[0] == "what ran:" && lines[ran].contains(" 3  █") && lines[now - 1] == "what falls due:",
            "{text}"
        );
    }
    assert!(!shop.wrote(&["timeline", "orders", "--scale", "day"]).contains("ran"));
    let json = &shop.json(&["timeline", "orders"])[0];
    let day = &json["past"]["hours"]["whole"];
    assert_eq!((&day["ran"], &day["failed"], &day["dead"], &day["done"]), (&3.into(), &1.into(), &1.into(), &2.into()));
    assert_eq!(json["past"]["minutes"]["spans"].as_array().unwrap().len(), 60);
    assert_eq!(json["minutes"].as_array().unwrap().len(), 60);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let top = runtime.block_on(top(&server));
    assert!(top.contains("ran a minute") && top.contains("of them failed; late: half up to"), "{top}");
    shop.wrote(&["add", "mails", "1"]);
    assert!(shop.json(&["timeline", "mails"])[0]["past"].is_null());
    assert!(!shop.wrote(&["timeline", "mails"]).contains("ran"));
}
