//! What a start reads, checks and says.

mod errors;
mod precedence;
mod selection;

use std::fs;
use std::path::PathBuf;

use dq::context::{ContextFactory, StartError};

/// No variables.
const NONE: [(&str, &str); 0] = [];

/// The error of a start that has to fail.
async fn refused(factory: ContextFactory) -> StartError {
    match factory.start().await {
        Err(dq::Error::Start(error)) => error,
        other => panic!("it has to be refused: {other:?}"),
    }
}

/// A config file that is gone with this value.
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
