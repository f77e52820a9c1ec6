//! What a server bears, over real connections.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Request;
use dq_dashboard::{Access, Dashboard, serve};
use futures_util::stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tower::ServiceExt;

use super::visitor::{TOKEN, Visitor, provider};

const HALF_HEAD: &str = "GET / HTTP/1.1\r\nhost: local";
const HALF_BODY: &str = "POST /login HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\ncontent-type: application/x-www-form-urlencoded\r\n\r\ntok";

/// Serves a dashboard with a token until the test ends.
async fn served(name: &str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Dashboard::new(provider(name).await, Access::token("ann", TOKEN)).router().unwrap();
    tokio::spawn(serve(listener, router, std::future::pending()));
    address
}

/// A connection on which this was sent.
fn sent(address: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    // The server may have ended it already, for another one.
    let _ = stream.write_all(text.as_bytes());
    stream
}

/// What the server answers to a request, within a second.
fn answer(address: SocketAddr, path: &str) -> String {
    let began = Instant::now();
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n\r\n");
    let mut text = String::new();
    let mut stream = sent(address, &request);
    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    stream.read_to_string(&mut text).unwrap_or_else(|error| panic!("{path} has no answer: {error}"));
    assert!(began.elapsed() < Duration::from_secs(1), "{path} took {:?}", began.elapsed());
    text
}

fn answers_a_user_and_probes(address: SocketAddr, beside: &str) {
    for path in ["/healthz", "/readyz", "/api/v1/topics"] {
        let answer = answer(address, path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path} beside {beside}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_requests_idle_connections_and_floods_leave_room_for_users_and_probes() {
    let address = served("crowd").await;
    tokio::task::spawn_blocking(move || {
        let many = |text: &str, many: usize| (0..many).map(|_| sent(address, text)).collect::<Vec<_>>();
        let mut held = many(HALF_HEAD, 1_100);
        answers_a_user_and_probes(address, "1,100 half heads");
        held.extend(many(HALF_BODY, 1_100));
        answers_a_user_and_probes(address, "1,100 half bodies");
        drop(held);
        for _ in 0..5 {
            let _held = many("", 2_000);
            answers_a_user_and_probes(address, "2,000 idle connections");
        }
        let goes_on = AtomicBool::new(true);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while goes_on.load(Ordering::Relaxed) {
                        let mut text = String::new();
                        let _ = sent(address, "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                            .read_to_string(&mut text);
                    }
                });
            }
            for _ in 0..20 {
                answers_a_user_and_probes(address, "a flood without a token");
            }
            goes_on.store(false, Ordering::Relaxed);
        });
    })
    .await
    .unwrap();
}

/// A flood takes the places of its own address, not that of an honest visitor who is slow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_from_one_address_takes_no_place_of_another() {
    let address = served("flood-of-one").await;
    let honest = tokio::net::TcpSocket::new_v4().unwrap();
    honest.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut honest = honest.connect(address).await.unwrap();
    honest.write_all(b"GET /healthz HTTP/1.1\r\nhost: local").await.unwrap();
    let flood = move || {
        let idle: Vec<_> = (0..2_000).map(|_| sent(address, "")).collect();
        // The server takes connections in their order, so its answer to the last one says that it has taken all.
        let mut last = sent(address, "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        (idle, last.read_to_string(&mut String::new()).unwrap())
    };
    tokio::task::spawn_blocking(flood).await.unwrap();
    honest.write_all(b"host\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut text = String::new();
    honest.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text:?}");
}

/// The clock jumps to the next limit whenever nothing else happens.
#[tokio::test(start_paused = true)]
async fn a_half_head_an_idle_connection_and_a_half_body_end_after_their_time() {
    let address = served("late").await;
    for (half, most, says) in [
        (HALF_HEAD, 15, ""),
        ("", 15, ""),
        ("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n", 15, "HTTP/1.1 200"),
        (HALF_BODY, 20, "HTTP/1.1 408"),
    ] {
        let began = tokio::time::Instant::now();
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(half.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert!(text.starts_with(says), "{half}: {text}");
        assert!((most..=most + 16).contains(&began.elapsed().as_secs()), "{half}: {:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn an_app_with_a_server_of_its_own_waits_for_no_body_for_ever() {
    let visitor = Visitor::free(provider("late-embedded").await);
    let body = Body::from_stream(stream::pending::<Result<String, std::io::Error>>());
    let request = Request::post("/api/v1/topics/mail/jobs").header("host", "localhost");
    let request = request.header("content-type", "application/json").body(body).unwrap();
    let answer = visitor.router.oneshot(request).await.unwrap();
    assert_eq!(answer.status().as_u16(), 408);
}

#[tokio::test]
async fn a_server_that_stops_ends_live_pages_and_finishes_requests() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut visitor = Visitor::of(Dashboard::new(provider("stops").await, Access::token("ann", TOKEN)));
    visitor.log_in(TOKEN).await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let router = visitor.router.clone();
    let server = tokio::spawn(serve(listener, router, async { drop(stopped.await) }));
    let mut live = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET /live/overview HTTP/1.1\r\nhost: localhost\r\ncookie: {}\r\n\r\n", visitor.cookie);
    live.write_all(request.as_bytes()).await.unwrap();
    let mut begin = [0; 12];
    live.read_exact(&mut begin).await.unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200");
    stop.send(()).unwrap();
    server.await.unwrap();
    let mut rest = Vec::new();
    live.read_to_end(&mut rest).await.unwrap();
    assert!(rest.ends_with(b"0\r\n\r\n"), "the page ended, and was not cut off");
}
