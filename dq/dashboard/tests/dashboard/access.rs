//! Who may do what, sessions, and buckets for each address.

use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use dq_dashboard::{Access, Dashboard, Role, User};
use serde_json::{Value, json};

use super::live::Looking;
use super::log::Log;
use super::visitor::{TOKEN, Visitor, provider};

const OTHER: &str = "another-token-for-the-tests";

/// The user of the header `x-user`, which is a name and its role.
fn of_header(parts: &Parts) -> Option<User> {
    let (name, role) = parts.headers.get("x-user")?.to_str().ok()?.split_once(':')?;
    Some(User::new(name).with_roles(Role::of_word(role)))
}

#[tokio::test]
async fn a_role_opens_what_it_names_and_nothing_else() {
    let provider = provider("roles").await;
    let token = |role: &str| format!("a-token-with-the-role-{role}");
    let user = |role: &str| User::new(role).with_roles(Role::of_word(role));
    let tokens = Access::token(user("look"), token("look"))
        .or_token(user("operate"), token("operate"))
        .or_token(user("add"), token("add"));
    let by_token = Visitor::of(Dashboard::new(provider.clone(), tokens));
    let by_hook = Visitor::of(Dashboard::new(provider.clone(), Access::check(of_header)));
    for (role, looks, operates, adds) in
        [("look", true, false, false), ("operate", true, true, false), ("add", false, false, true)]
    {
        let mut browser = by_token.clone();
        assert_eq!(browser.log_in(&token(role)).await, StatusCode::SEE_OTHER);
        let hooked = by_hook.clone().with("x-user", format!("{role}:{role}"));
        let program = by_token.clone().with("authorization", format!("Bearer {}", token(role)));
        for mut program in [program, hooked.clone()] {
            let mut may = async |method, path, body: Value| {
                let answer = program.call(method, path, &body).await;
                assert!(answer.status.is_success() || answer.status == StatusCode::FORBIDDEN, "{}", answer.body);
                answer.status.is_success()
            };
            assert_eq!(may(Method::GET, "/topics", json!({})).await, looks, "{role}");
            assert_eq!(
                may(Method::POST, "/topics/mail/jobs", json!({ "payload": 1, "after": "1h" })).await,
                adds,
                "{role}"
            );
            assert_eq!(may(Method::POST, "/topics/mail/pause", json!({ "reason": "x" })).await, operates, "{role}");
            let bulk = json!({ "action": "delete", "state": "dead" });
            assert_eq!(may(Method::POST, "/topics/mail/bulk", bulk).await, operates, "{role}");
        }
        for mut browser in [browser, hooked] {
            let page = browser.get("/topic?topic=mail").await;
            assert_eq!(page.status == StatusCode::OK, looks, "{role}");
            assert_eq!(page.body.contains("/confirm?"), operates, "{role}: {}", page.body);
            let asked = browser.get("/confirm?action=drain&topic=mail").await;
            assert_eq!(asked.status == StatusCode::OK, operates, "{role}");
            if looks {
                let mut live = Looking::at(&browser, "/live/topic?topic=mail").await;
                assert_eq!(live.next().await.contains("/confirm?"), operates, "{role}");
                // A hook has no sessions to end, so it shows those who only look no form.
                let page = if operates { asked } else { browser.get("/settings").await };
                if !page.body.contains("form_token") {
                    continue;
                }
                let token = page.field("form_token");
                let form = format!("action=resume&topic=mail&form_token={token}");
                assert_eq!(browser.post("/act", &form).await.status == StatusCode::SEE_OTHER, operates, "{role}");
            }
        }
    }
    assert_eq!(provider.topic("mail").unwrap().counts().await.unwrap().delayed, 2);
}

#[tokio::test]
async fn a_flood_without_a_token_shuts_out_neither_users_nor_other_addresses() {
    let dashboard = |name| async move { Dashboard::new(provider(name).await, Access::token("ann", TOKEN)) };
    let direct = Visitor::of(dashboard("flood").await);
    let proxied = Visitor::of(dashboard("flood-proxied").await.behind_proxy());
    let (flood, owner) = (direct.from("10.0.0.1"), direct.from("10.0.0.2"));
    // The proxy writes the last entry, and visitors may write those before it.
    let by_proxy = |address: &str| proxied.from("10.0.0.9").with("x-forwarded-for", format!("10.0.0.2, {address}"));
    for (mut flood, mut owner) in [(flood, owner), (by_proxy("203.0.113.1"), by_proxy("203.0.113.2"))] {
        let mut same_address = flood.clone();
        assert_eq!(same_address.log_in(TOKEN).await, StatusCode::SEE_OTHER);
        let mut program = flood.clone().with("authorization", format!("Bearer {TOKEN}"));
        let mut seen = Vec::new();
        for n in 0..500 {
            seen.push(match n % 3 {
                0 => flood.log_in("a-wrong-token-of-someone").await,
                1 => flood.clone().with("authorization", "Bearer wrong").get("/api/v1/topics").await.status,
                _ => flood.get("/").await.status,
            });
        }
        let refused = seen.iter().filter(|status| **status == StatusCode::UNAUTHORIZED).count();
        assert!((1..40).contains(&refused), "{seen:?}");
        assert_eq!(seen.last(), Some(&StatusCode::TOO_MANY_REQUESTS));
        assert_eq!(same_address.get("/").await.status, StatusCode::OK, "a session of the same address");
        assert_eq!(program.get("/api/v1/topics").await.status, StatusCode::OK, "a program at the same address");
        assert_eq!(owner.log_in(TOKEN).await, StatusCode::SEE_OTHER, "a login from another address");
        assert_eq!(owner.get("/").await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn requests_of_a_foreign_page_take_nothing_of_the_rate() {
    let mut visitor =
        Visitor::of(Dashboard::new(provider("rebound").await, Access::token("ann", TOKEN)).hosts(["jobs.example"]));
    for _ in 0..500 {
        let foreign = visitor.clone().with("host", "evil.example").get("/login").await;
        assert_eq!(foreign.status, StatusCode::MISDIRECTED_REQUEST);
    }
    assert_eq!(visitor.get("/login").await.status, StatusCode::OK);
}

#[tokio::test]
async fn every_name_that_a_request_gives_to_its_host_must_be_ours() {
    let mut visitor = Visitor::free(provider("authority").await);
    let without_host = || Visitor { headers: Vec::new(), ..visitor.clone() };
    for (mut visitor, path, status) in [
        (without_host(), "http://localhost:8080/", StatusCode::OK), // as HTTP/2 has it
        (without_host(), "http://evil.example/", StatusCode::MISDIRECTED_REQUEST),
        (visitor.clone(), "http://evil.example/", StatusCode::MISDIRECTED_REQUEST),
        (visitor.clone().with("host", "evil.example"), "http://localhost/", StatusCode::MISDIRECTED_REQUEST),
        (without_host(), "/", StatusCode::MISDIRECTED_REQUEST),
    ] {
        assert_eq!(visitor.get(path).await.status, status, "{path}");
    }
    let token = visitor.get("http://localhost/confirm?action=pause&topic=a").await.field("form_token");
    let mut http_2 = Visitor { headers: vec![("origin", "http://localhost".into())], ..visitor };
    let form = format!("action=pause&topic=a&reason=x&form_token={token}");
    assert_eq!(http_2.post("http://localhost/act", &form).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_session_that_was_ended_is_refused_and_its_live_page_ends() {
    let tokens = Access::token("ann", TOKEN).or_token("bob", OTHER);
    let fresh = Visitor::of(Dashboard::new(provider("ended").await, tokens));
    let [mut first, mut second, mut bob] = [(); 3].map(|()| fresh.clone());
    for (visitor, token) in [(&mut first, TOKEN), (&mut second, TOKEN), (&mut bob, OTHER)] {
        visitor.log_in(token).await;
    }
    let [of_first, of_second, of_bob] = [&first, &second, &bob].map(|visitor| Looking::at(visitor, "/live/overview"));
    let (of_first, of_second, mut of_bob) = tokio::join!(of_first, of_second, of_bob);
    let leave = async |visitor: &mut Visitor, everywhere: &str| {
        let stolen = visitor.clone();
        let token = visitor.get("/settings").await.field("form_token");
        visitor.post("/logout", &format!("form_token={token}&everywhere={everywhere}")).await;
        stolen
    };
    let mut stolen = leave(&mut first, "").await;
    of_first.end().await;
    assert_eq!(stolen.get("/").await.status, StatusCode::SEE_OTHER, "the cookie is of no use any more");
    assert_eq!(stolen.get("/live/overview").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(second.get("/").await.status, StatusCode::OK, "another session of the token lasts");
    first.log_in(TOKEN).await;
    let mut forgotten = leave(&mut first, "1").await;
    of_second.end().await;
    for visitor in [&mut forgotten, &mut second] {
        assert_eq!(visitor.get("/").await.status, StatusCode::SEE_OTHER);
    }
    assert_eq!(second.log_in(TOKEN).await, StatusCode::SEE_OTHER);
    assert_eq!(second.get("/").await.status, StatusCode::OK);
    assert_eq!(bob.get("/").await.status, StatusCode::OK, "another user is no concern of it");
    of_bob.next().await;
}

#[tokio::test(start_paused = true)]
async fn a_live_page_ends_when_the_hook_no_longer_lets_its_user_in() {
    let is_let_in = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let hook = is_let_in.clone();
    let who = move |_: &Parts| hook.load(std::sync::atomic::Ordering::Relaxed).then(|| User::new("ann"));
    let visitor = Visitor::of(Dashboard::new(provider("hook-ends").await, Access::check(who)));
    let mut live = Looking::at(&visitor, "/live/overview").await;
    live.next().await;
    live.next().await;
    is_let_in.store(false, std::sync::atomic::Ordering::Relaxed);
    live.end().await;
}

#[tokio::test]
async fn each_dashboard_has_a_key_of_its_own_unless_it_is_given_one() {
    let provider = provider("keys").await;
    let dashboard = || Dashboard::new(provider.clone(), Access::token("ann", TOKEN));
    let of_key = |key: u8| Visitor::of(dashboard().key([key; 32]));
    for (made, other, goes_over) in [
        (Visitor::of(dashboard()), Visitor::of(dashboard()), false),
        (of_key(1), of_key(1), true),
        (of_key(1), of_key(2), false),
    ] {
        let mut visitor = made;
        visitor.log_in(TOKEN).await;
        visitor.router = other.router;
        assert_eq!(visitor.get("/").await.status == StatusCode::OK, goes_over);
    }
    let open = || Visitor::free(provider.clone());
    let (mut ours, mut theirs) = (open(), open());
    let form = theirs.get("/confirm?action=pause&topic=mail").await.field("form_token");
    ours.cookie = theirs.cookie;
    let forged = ours.post("/act", &format!("action=pause&topic=mail&reason=x&form_token={form}")).await;
    assert_eq!(forged.status, StatusCode::FORBIDDEN, "the key of an open dashboard is no constant");
    assert!(dashboard().key([1; 31]).router().unwrap_err().to_string().contains("at least 32"));
}

#[tokio::test]
async fn wrong_tokens_are_logged_with_their_address_and_changes_with_a_name() {
    let log = Log::of_this_test();
    let fresh = Visitor::of(Dashboard::new(provider("names").await, Access::token("ann", TOKEN))).from("10.0.0.7");
    fresh.clone().log_in("a-wrong-token-of-someone").await;
    fresh.clone().with("authorization", "Bearer wrong").get("/api/v1/topics").await;
    for _ in 0..60 {
        fresh.clone().log_in("a-wrong-token-of-someone").await;
    }
    let mut ann = fresh.clone();
    ann.log_in(TOKEN).await;
    ann.confirm("action=pause&topic=mail", "reason=x").await;
    let mut program = fresh.with("authorization", format!("Bearer {TOKEN}"));
    program.call(Method::POST, "/topics/mail/resume", &json!({})).await;
    let audits = log.audits();
    for parts in [
        &["WARN", "refused", "address=\"10.0.0.7\"", "how=\"login\""][..],
        &["WARN", "refused", "address=\"10.0.0.7\"", "how=\"bearer\""],
        &["INFO", "logged in", "address=\"10.0.0.7\"", "who=\"ann\""],
        &["INFO", "action=\"pause\"", "who=\"ann\""],
        &["INFO", "action=\"resume\"", "who=\"ann\""],
    ] {
        assert!(audits.iter().any(|line| parts.iter().all(|part| line.contains(part))), "{parts:?}: {audits:#?}");
    }
    assert!(audits.iter().all(|line| !line.contains("a-wrong-token") && !line.contains(TOKEN)), "{audits:#?}");
    assert!(audits.iter().filter(|line| line.contains("WARN")).count() <= 25, "the log is bounded");
}
