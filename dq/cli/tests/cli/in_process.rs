//! Runs verbs in this process, on a screen that keeps what they write.

use clap::Parser;
use dq_cli::arguments::Arguments;
use dq_cli::failure::Failure;
use dq_cli::run_in;
use dq_cli::screen::Screen;
use dq_cli::session::Session;

/// What a verb wrote, and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) out: String,
    pub(crate) code: u8,
    pub(crate) error: String,
}

/// Runs a verb; nobody can be asked.
pub(crate) fn ran(words: &[&str]) -> Ran {
    ran_with(words, None)
}

/// Runs a verb at a terminal where somebody gives this answer to every question.
pub(crate) fn answered(words: &[&str], answer: &'static str) -> Ran {
    ran_with(words, Some(answer))
}

fn ran_with(words: &[&str], answer: Option<&'static str>) -> Ran {
    let arguments = Arguments::try_parse_from(["dq"].iter().chain(words)).unwrap_or_else(|error| panic!("{error}"));
    let mut out = Vec::new();
    let mut answer = answer.map(str::as_bytes);
    let answers = answer.as_mut().map(|answer| answer as &mut dyn std::io::BufRead);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let done = {
        let Arguments { common, command } = arguments;
        let screen = Screen::new(&common, &mut out, false, answers);
        let mut session = Session { common, screen };
        runtime.block_on(run_in(&mut session, command))
    };
    let (code, error) = match &done {
        Ok(()) => (0, String::new()),
        Err(failure) => (Failure::exit_code(failure), failure.to_string()),
    };
    Ran { out: String::from_utf8(out).unwrap(), code, error }
}

/// Runs a verb that must succeed, and returns what it wrote.
pub(crate) fn wrote(words: &[&str]) -> String {
    let ran = ran(words);
    assert_eq!(ran.code, 0, "{words:?}: {ran:?}");
    ran.out
}

/// A store with the app `shop`.
#[derive(Debug, Clone)]
pub(crate) struct Shop(pub(crate) String);

impl Shop {
    /// The words with the options that lead to the shop.
    pub(crate) fn words<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        [words, &["--store", &self.0, "--app", "shop"]].concat()
    }

    /// Runs a verb on it; nobody can be asked.
    pub(crate) fn ran(&self, words: &[&str]) -> Ran {
        ran(&self.words(words))
    }

    /// Runs a verb on it that must succeed.
    pub(crate) fn wrote(&self, words: &[&str]) -> String {
        wrote(&self.words(words))
    }

    /// The lines of JSON that a verb writes.
    pub(crate) fn json(&self, words: &[&str]) -> Vec<serde_json::Value> {
        let out = self.wrote(&[words, &["--json"]].concat());
        out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
    }
}
