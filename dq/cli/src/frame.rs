//! What all verbs have: which store and app, how to write, and whether to ask.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use dq::job::AppName;

use crate::when;

/// How long a verb that looks or changes waits for the store without `--wait`.
const DEFAULT_WAIT: Duration = Duration::from_secs(10);

/// How long an export and an import repeat a request without `--wait`.
const LONG_WAIT: Duration = Duration::from_secs(30);

/// What all verbs have.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Common options")]
pub struct Common {
    /// The store: `file:DIRECTORY`, `redis://HOST:PORT/DATABASE`, `redis+sentinel://HOST,HOST/SERVICE` or `redis+cluster://HOST,HOST`;
    /// with TLS `rediss` in place of `redis`
    #[arg(long, global = true, value_name = "URL", env = "DQ_STORE", hide_env_values = true)]
    pub store: Option<String>,
    /// A file with the URL of the store, so that no list of processes shows a password
    #[arg(long, global = true, value_name = "FILE")]
    pub store_file: Option<PathBuf>,
    /// The app: the name that the programs give to `ContextFactory::new`
    #[arg(long, global = true, value_name = "APP", env = "DQ_APP")]
    pub app: Option<AppName>,
    /// The config file with `store` and `app` [default: `dq.toml` of this directory, if there is one]
    #[arg(long, global = true, value_name = "FILE", env = "DQ_CONFIG")]
    pub config: Option<PathBuf>,
    /// Write JSON: one line for each thing
    #[arg(long, global = true)]
    pub json: bool,
    /// Confirm beforehand: ask no question
    #[arg(long, short = 'y', global = true)]
    pub yes: bool,
    /// When to write colours; NO_COLOR turns `auto` off
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub color: ColorChoice,
    /// How long to wait for the store [default: 10s; 30s for export and import]
    #[arg(long, global = true, value_name = "TIME", value_parser = when::duration)]
    pub wait: Option<Duration>,
    /// The author of a change, for pauses and events [default: you, at this host]
    #[arg(long, global = true, value_name = "NAME")]
    pub by: Option<String>,
}

/// When to write colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Common {
    /// How long a verb that looks or changes waits for the store.
    pub fn wait(&self) -> Duration {
        self.wait.unwrap_or(DEFAULT_WAIT)
    }

    /// How long an export or an import repeats a request.
    pub fn long_wait(&self) -> Duration {
        self.wait.unwrap_or(LONG_WAIT)
    }

    /// Who does it: `--by`, or the user and the host.
    pub fn author(&self) -> String {
        self.by.clone().unwrap_or_else(|| {
            let set = |name| std::env::var(name).ok().filter(|user| !user.is_empty());
            let user = set("USER").or_else(|| set("LOGNAME")).unwrap_or_else(|| "unknown".into());
            format!("{user}@{}", rustix::system::uname().nodename().to_string_lossy())
        })
    }
}
