//! A shop whose web server shows the dashboard of its jobs beside its own pages. The README in this folder explains it.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use dq::prelude::*;
use dq_dashboard::{Access, Dashboard, serve};
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
    let added = jobs.add(job).keep_existing().await.and_then(dq::provider::AddedOrKept::or_error_if_dead);
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
    // Without a token of yours, each start makes a new one. With a login of your own, use `Access::check`.
    let (token, link) = match std::env::var("DQ_DASHBOARD_TOKEN") {
        Ok(token) => (token, String::new()),
        Err(_) => Access::new_token().map(|token| (token.clone(), format!("/login#{token}")))?,
    };
    let dashboard = Dashboard::new(dq.provider().clone(), Access::token("owner", token))
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
    println!("the dashboard is at http://{}/admin/dq{link}", listener.local_addr()?);
    let server = serve(listener, shop, dq.signals()?);
    dq.run_until(server).await?;
    Ok(())
}
