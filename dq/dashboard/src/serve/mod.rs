//! A server with the limits that `axum::serve` does not have.

mod connections;
mod stall;

pub(crate) use connections::Connection;

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::ConnectInfo;
use axum::{Error, Router};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};

use crate::late::Timely;
use crate::rate::network;
use connections::{Answering, ConnectionPlace, Connections};
use stall::Stalling;

/// How long the head of a request may take, and how long a connection may be idle before it.
const HEAD: Duration = Duration::from_secs(15);

/// How long a request or an answer may stand still on its way.
const STALL: Duration = Duration::from_secs(30);

/// The most bytes of the head of a request.
const MAX_HEAD: usize = 64 << 10;

/// How many connections the system keeps until the server takes them.
#[cfg(unix)]
const QUEUE: i32 = 4_096;

/// How long the server waits when the system has no room for another connection.
const FULL: Duration = Duration::from_millis(20);

/// Serves an app over HTTP/1.1 until `stop` is ready; then it takes no more connections, ends live pages and waits for the requests that
/// are being answered. Dropping the future ends them too.
///
/// Use it instead of `axum::serve`, which has no limits of its own, where strangers reach the app:
/// * A request has 15 s for its head, and an idle connection the same; a body or an answer that makes no progress for 30 s ends.
/// * There are at most 512 connections, or half of the files that the process may open. One more ends one of the address that has the most:
///   its oldest idle one; without an idle one, its oldest that answers no user of a [`Dashboard`](crate::Dashboard).
/// * A connection that a handler upgrades, for example to a WebSocket, is the handler's to bound.
/// * Handlers find the address of the sender as `ConnectInfo<SocketAddr>`. The dashboard bounds the rate of each.
///
/// ```no_run
/// # async fn run(app: axum::Router, dq: dq::Context) -> Result<(), Box<dyn std::error::Error>> {
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
/// let server = dq_dashboard::serve(listener, app, dq.signals()?);
/// dq.run_until(server).await?;
/// # Ok(())
/// # }
/// ```
pub async fn serve(listener: TcpListener, app: Router, stop: impl Future<Output = ()>) {
    // A new connection that finds this queue full tries again only a second later. Runtimes make queues of 128 places.
    #[cfg(unix)]
    let _ = rustix::net::listen(&listener, QUEUE);
    let connections = Connections::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                if let Some(place) = connections.enter(network(address.ip())) {
                    tokio::spawn(answer(stream, address, app.clone(), place));
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => {}
            // The system has no more files.
            Err(_) => {
                connections.make_room();
                tokio::time::sleep(FULL).await;
            }
        }
    }
    drop(listener);
    connections.end().await;
}

/// Answers the requests of a connection.
async fn answer(stream: TcpStream, address: SocketAddr, app: Router, place: ConnectionPlace) {
    let connection = Arc::clone(place.connection());
    let app = TowerToHyperService::new(app);
    let of_requests = Arc::clone(&connection);
    let service = service_fn(move |request: Request<Incoming>| {
        let answering = of_requests.answers();
        let mut request = request.map(|body| Timely::pausing(Body::new(body), STALL));
        request.extensions_mut().insert(ConnectInfo(address));
        request.extensions_mut().insert(Arc::clone(&of_requests));
        let answer = app.call(request);
        async move {
            let answer: Response<Body> = answer.await?;
            Ok::<_, Infallible>(answer.map(|body| Answer { body, _answering: answering }))
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(MAX_HEAD);
    let stream = TokioIo::new(Stalling::new(stream, STALL));
    let mut served = pin!(http.serve_connection(stream, service).with_upgrades());
    let mut is_stopping = false;
    loop {
        tokio::select! {
            biased;
            () = connection.is_sent_away() => return,
            () = connection.server_stops(), if !is_stopping => {
                is_stopping = true;
                served.as_mut().graceful_shutdown();
            }
            // Whatever is wrong with a connection is a matter of the other side.
            _ = served.as_mut() => return,
        }
    }
}

/// The body of an answer: its connection answers a request until it is gone.
struct Answer {
    body: Body,
    _answering: Answering,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
