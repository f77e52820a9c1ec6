//! The example client in Python, against a dashboard that is really served.

use std::path::Path;

use dq_dashboard::{Access, Dashboard};
use tokio::net::TcpListener;
use tokio::process::Command;

use super::visitor::{TOKEN, provider};

#[tokio::test]
async fn the_client_in_python_does_what_its_example_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/python_client");
    let dashboard = Dashboard::new(provider("python").await, Access::token("ann", TOKEN)).at("/admin/dq").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/admin/dq", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, dashboard).await });
    let mut python = Command::new("python3");
    python.arg(folder.join("dq_client.py")).env("DQ_URL", url).env("DQ_DASHBOARD_TOKEN", TOKEN);
    let ended = python.output().await.expect("python3 is installed");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let expected = std::fs::read_to_string(folder.join("expected.txt")).unwrap();
    assert_eq!(String::from_utf8_lossy(&ended.stdout), expected);
}
