//! `store` and `app` from the command line, the variables and the config file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use dq::job::AppName;

use crate::failure::Failure;
use crate::frame::Common;

/// The config file that is read if it is there and no other is named.
const DEFAULT_FILE: &str = "dq.toml";

/// The largest config file, in bytes.
const MAX_FILE: u64 = 1 << 20;

impl Common {
    /// The URL of the store: that in `--store-file`, `--store`, `DQ_STORE`, or `store` of the config file.
    ///
    /// # Errors
    /// [`Failure::NotNamed`] with all places that were looked at; or the file cannot be read.
    pub fn store(&self) -> Result<String, Failure> {
        if let Some(path) = &self.store_file {
            return words(path).map(|url| url.trim().to_owned());
        }
        match &self.store {
            Some(url) => Ok(url.clone()),
            None => self.of_file("store", "--store <URL> or --store-file <FILE>", "DQ_STORE"),
        }
    }

    /// The app: `--app`, `DQ_APP`, or `app` of the config file.
    ///
    /// # Errors
    /// As [`store`](Self::store), and [`Failure::Usage`] if the file's name is not valid.
    pub fn app(&self) -> Result<AppName, Failure> {
        match &self.app {
            Some(app) => Ok(app.clone()),
            None => {
                let name = self.of_file("app", "--app <APP>", "DQ_APP")?;
                AppName::new(name).map_err(|bad| Failure::Usage(format!("`app` of the config file: {bad}")))
            }
        }
    }

    fn of_file(&self, key: &'static str, flag: &'static str, variable: &'static str) -> Result<String, Failure> {
        let path = self.config.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
        let not_named = |file: String| Failure::NotNamed { key, flag, variable, file };
        let text = match text(&path) {
            Ok(text) => text,
            Err(error) if self.config.is_none() && error.kind() == io::ErrorKind::NotFound => {
                let here = std::env::current_dir().unwrap_or_default();
                return Err(not_named(format!("{} has no {DEFAULT_FILE}", here.display())));
            }
            Err(source) => return Err(Failure::Open { path, source }),
        };
        let bad = |why: String| Failure::Usage(format!("the config file {}: {why}", path.display()));
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| bad(error.message().to_owned()))?;
        match table.get(key) {
            Some(toml::Value::String(value)) => Ok(value.clone()),
            Some(_) => Err(bad(format!("`{key}` is not a string"))),
            None => Err(not_named(format!("{} has no `{key}`", path.display()))),
        }
    }
}

/// The text of a file that the command line names.
pub(crate) fn words(path: &Path) -> Result<String, Failure> {
    text(path).map_err(|source| Failure::Open { path: path.to_owned(), source })
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE {
        return Err(io::Error::other(format!("it is longer than {MAX_FILE} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str) -> (Common, PathBuf) {
        let path = std::env::temp_dir().join(format!("dq-config-{}-{}.toml", std::process::id(), text.len()));
        std::fs::write(&path, text).unwrap();
        (Common { config: Some(path.clone()), ..Common::default() }, path)
    }

    #[test]
    fn a_file_with_the_url_overrides_the_url() {
        let (_, path) = with("redis://:secret@a\n");
        let store = Some("redis://b".into());
        let common = Common { store, store_file: Some(path.clone()), ..Common::default() };
        assert_eq!(common.store().unwrap(), "redis://:secret@a");
        std::fs::remove_file(path).unwrap();
        assert!(matches!(common.store(), Err(Failure::Open { .. })));
    }

    #[test]
    fn what_nobody_names_is_reported_with_every_place() {
        let (common, path) = with("app = \"a b\"\n");
        let said = common.store().unwrap_err().to_string();
        for place in ["--store <URL>", "DQ_STORE", path.to_str().unwrap()] {
            assert!(said.contains(place), "{said}");
        }
        assert!(common.app().unwrap_err().to_string().contains("`a b` contains ' '"));
        std::fs::remove_file(path).unwrap();
    }
}
