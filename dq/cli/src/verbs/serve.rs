//! `dq serve`: the dashboard and the JSON API alone.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use dq_dashboard::{Access, Dashboard, serve};
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::failure::Failure;
use crate::session::Session;
use crate::tokens::Tokens;

/// How long open requests have after the signal to end.
const GRACE: Duration = Duration::from_secs(5);

/// The arguments of `dq serve`.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// A file of tokens, a line each: `TOKEN`, or `NAME ROLES TOKEN` with the roles look, operate, add [default: the token in
    /// DQ_DASHBOARD_TOKEN, or a new one, which the printed address contains]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Ask for no token; only on a loopback address
    #[arg(long, conflicts_with = "token_file")]
    pub open: bool,
    /// A name of this host that browsers use; may be given several times. Others are refused, except loopback names
    #[arg(long = "host", value_name = "NAME")]
    pub hosts: Vec<String>,
    /// Leave out everything that changes something
    #[arg(long)]
    pub read_only: bool,
    /// Show payloads as they are
    #[arg(long)]
    pub show_payloads: bool,
    /// Send cookies over HTTPS only: browsers reach the dashboard through a proxy with TLS
    #[arg(long)]
    pub https: bool,
    /// Take the address of a visitor from the last entry of `X-Forwarded-For`, and the path that the proxy strips from
    /// `X-Forwarded-Prefix`; only behind a proxy that writes them, with no way around it
    #[arg(long)]
    pub behind_proxy: bool,
    /// The path that a proxy strips from each request, such as `/ops/dq`: links have it before their paths
    #[arg(long, value_name = "PATH")]
    pub prefix: Option<String>,
}

/// Serves until a signal comes.
pub(crate) async fn run(session: &mut Session<'_>, arguments: &ServeArguments) -> Result<(), Failure> {
    let is_loopback = arguments.listen.ip().is_loopback();
    let tokens = match arguments.open {
        false => Tokens::of(arguments.token_file.as_deref(), &session.common.author())?,
        true if is_loopback => Tokens { access: Access::everyone_who_reaches_it(), made: None },
        true => return Err(Failure::Usage(too_open(arguments.listen))),
    };
    let mut dashboard = Dashboard::new(session.provider().await?, tokens.access);
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
    if arguments.behind_proxy {
        dashboard = dashboard.behind_proxy();
    }
    if let Some(prefix) = &arguments.prefix {
        dashboard = dashboard.prefix(prefix);
    }
    let router = dashboard.router().map_err(|error| Failure::Usage(error.to_string()))?;
    let failed = |error| Failure::Refused(format!("cannot serve at {}: {error}", arguments.listen));
    let listener = TcpListener::bind(arguments.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    // The lines that say who changed what go where all else goes that is no answer.
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false);
    let _ = lines.try_init();
    if !is_loopback && !arguments.https {
        session.screen.say(format_args!("{}", not_encrypted(arguments.listen)));
    }
    // Browsers send no server what follows the `#`; the page reads it.
    let place = tokens.made.map_or_else(String::new, |token| format!("login#{token}"));
    match arguments.prefix.as_deref().map(|prefix| prefix.trim_end_matches('/')) {
        None => session.screen.say(format_args!("the dashboard is at http://{address}/{place}")),
        // Its links lead through the proxy.
        Some(prefix) => session
            .screen
            .say(format_args!("the dashboard is at http://{address}/, and through the proxy at {prefix}/{place}")),
    }
    tokio::select! {
        biased;
        () = serve(listener, router, ended()) => {}
        () = async { ended().await; sleep(GRACE).await } => {}
    }
    Ok(())
}

fn too_open(listen: SocketAddr) -> String {
    format!("{listen} can be reached from elsewhere: leave out `--open`, or listen on 127.0.0.1")
}

fn not_encrypted(listen: SocketAddr) -> String {
    format!(
        "warning: {listen} can be reached from elsewhere without TLS, so others on the way can read tokens and cookies: put a \
         proxy with TLS in front of it and give `--https`, or listen on 127.0.0.1"
    )
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
