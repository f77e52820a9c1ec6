//! A shop whose web server shows the dashboard of its jobs beside its own pages. The README in this folder explains it.

use std::future::IntoFuture;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use dq::prelude::*;
use dq_dashboard::{Access, Dashboard};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "close-order", delay = "30m")]
struct CloseOrder {
    #[job(id)]
    order: u64,
    card: String,
}

#[delay_listener(timeout = "5s")]
async fn close(job: Job<CloseOrder>) -> Result<(), JobError> {
    println!("order {} was not paid in time", job.order);
    Ok(())
}

async fn order(State(jobs): State<Provider>, Path(order): Path<u64>) -> Result<String, StatusCode> {
    let job = CloseOrder { order, card: "4111 1111 1111 1111".into() };
    let added = jobs.add(job).keep_existing().await.and_then(dq::provider::AddedOrKept::unless_dead);
    added.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    Ok(format!("order {order} is open for 30 minutes\n"))
}

/// Cards are nobody's business.
fn without_cards(_topic: &str, payload: &[u8]) -> String {
    match serde_json::from_slice::<serde_json::Value>(payload) {
        Ok(mut payload) => {
            if let Some(card) = payload.get_mut("card") {
                *card = "(hidden)".into();
            }
            format!("{payload:#}")
        }
        Err(_) => "(not JSON)".into(),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dq = ContextFactory::new("shop").store("memory:").start().await?;
    // Whoever knows the token may look and change. With a login of your own, use `Access::check`.
    let token = std::env::var("DQ_DASHBOARD_TOKEN").unwrap_or_else(|_| "a-token-for-this-example".into());
    let dashboard = Dashboard::new(dq.provider().clone(), Access::token(token))
        .show_payloads(without_cards)
        .settings_of(&dq)
        .at("/admin/dq")?;
    let shop = Router::new()
        .route("/", get(|| async { "a shop\n" }))
        .route("/orders/{order}", post(order))
        .with_state(dq.provider().clone())
        .merge(dashboard);
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".into());
    let listener = TcpListener::bind(address).await?;
    println!("the dashboard is at http://{}/admin/dq", listener.local_addr()?);
    // Pages that are live never end by themselves, so the server does not wait for them.
    dq.run_until(axum::serve(listener, shop).into_future()).await?;
    Ok(())
}
