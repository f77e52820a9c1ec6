//! `dq serve`: the dashboard and the JSON API alone.

use std::future::IntoFuture;
use std::net::SocketAddr;

use clap::Args;
use dq_dashboard::{Access, Dashboard};
use tokio::net::TcpListener;

use crate::failure::Failure;
use crate::session::Session;

/// The arguments of `dq serve`.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// What people and programs must know to get in; required unless it listens on a loopback address
    #[arg(long, value_name = "TOKEN", env = "DQ_DASHBOARD_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// A name of this host that browsers use; may be given several times. Without a token only these and loopback names are answered
    #[arg(long = "host", value_name = "NAME")]
    pub hosts: Vec<String>,
    /// Leaves out everything that changes something
    #[arg(long)]
    pub read_only: bool,
    /// Shows payloads as they are
    #[arg(long)]
    pub show_payloads: bool,
    /// Browsers reach it by HTTPS, through a proxy: their cookies travel over nothing else
    #[arg(long)]
    pub https: bool,
}

/// Serves until a signal comes.
pub(crate) async fn run(session: &mut Session<'_>, arguments: &ServeArguments) -> Result<(), Failure> {
    let access = match arguments.token.as_ref().filter(|token| !token.is_empty()) {
        Some(token) => Access::token(token),
        None if arguments.listen.ip().is_loopback() => Access::everyone_who_reaches_it(),
        None => return Err(Failure::Usage(needs_a_token(arguments.listen))),
    };
    let mut dashboard = Dashboard::new(session.provider().await?, access);
    if !arguments.hosts.is_empty() {
        dashboard = dashboard.hosts(&arguments.hosts);
    }
    if arguments.read_only {
        dashboard = dashboard.read_only();
    }
    if arguments.show_payloads {
        dashboard = dashboard.show_payloads(|_, payload| String::from_utf8_lossy(payload).into_owned());
    }
    if arguments.https {
        dashboard = dashboard.https();
    }
    let router = dashboard.router().map_err(|error| Failure::Usage(error.to_string()))?;
    let failed = |source| Failure::Listen { address: arguments.listen, source };
    let listener = TcpListener::bind(arguments.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    // The lines that say who changed what go where all else goes that is no answer.
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false);
    let _ = lines.try_init();
    session.screen.say(format_args!("the dashboard is at http://{address}/"));
    // Live pages never end by themselves, so nobody waits for open connections.
    tokio::select! {
        biased;
        () = ended() => Ok(()),
        served = axum::serve(listener, router).into_future() => served.map_err(failed),
    }
}

fn needs_a_token(listen: SocketAddr) -> String {
    format!("{listen} can be reached from elsewhere: give `--token` or DQ_DASHBOARD_TOKEN, or listen on 127.0.0.1")
}

/// Waits for Ctrl-C or SIGTERM. Whoever cannot listen for them is ended by them anyway.
async fn ended() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    }
    #[cfg(not(unix))]
    let _ = tokio::signal::ctrl_c().await;
}
