//! Starting a node: what it reads and checks, and the errors it reports.

mod errors;
mod precedence;
mod selection;
mod table;

use std::fs;
use std::path::PathBuf;

use dq::context::{ContextFactory, StartError};

/// No environment variables.
const NONE: [(&str, &str); 0] = [];

/// Starts a node that must not start, and returns the error.
async fn refused(factory: ContextFactory) -> StartError {
    match factory.start().await {
        Err(dq::Error::Start(error)) => error,
        other => panic!("the start must fail: {other:?}"),
    }
}

/// A config file that is removed when the value is dropped.
struct ConfigFile(PathBuf);

impl ConfigFile {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dq-{}-{name}.toml", std::process::id()));
        fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for ConfigFile {
    fn drop(&mut self) {
        fs::remove_file(&self.0).unwrap();
    }
}
