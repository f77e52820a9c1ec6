//! Names of apps and topics, and ids of jobs.

/// The longest name of an app or a topic, in bytes.
pub const MAX_NAME: usize = 128;

/// The longest id of a job, in bytes.
pub const MAX_ID: usize = 256;

/// The longest name of a schedule, in bytes: the ids of its jobs have the time of their tick behind it.
pub const MAX_SCHEDULE: usize = 200;

/// The error of a text that cannot be a name or an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {what} `{name}` {why}")]
pub struct InvalidName {
    /// What the text should name: "app name", "topic" or "job id".
    pub what: &'static str,
    /// The text, cut after 140 characters, with control characters escaped.
    pub name: String,
    /// What is wrong with it; if it is too long, with the limit and the size.
    pub why: String,
}

fn bad(what: &'static str, name: &str, why: String) -> Result<(), InvalidName> {
    Err(InvalidName { what, name: name.chars().take(140).flat_map(char::escape_debug).collect(), why })
}

fn check_length(what: &'static str, name: &str, most: usize) -> Result<(), InvalidName> {
    match name.len() {
        0 => bad(what, name, format!("is empty: write 1 to {most} bytes")),
        size if size > most => bad(what, name, format!("is {size} bytes long; the limit is {most}")),
        _ => Ok(()),
    }
}

fn check_name(what: &'static str, name: &str, allowed: &str) -> Result<(), InvalidName> {
    check_length(what, name, MAX_NAME)?;
    match name.chars().find(|&c| !(c.is_ascii_alphanumeric() || allowed.contains(c))) {
        Some(wrong) => bad(what, name, format!("contains {wrong:?}; write A-Z a-z 0-9 {}", spaced(allowed))),
        // A browser takes it out of the path of a page.
        None if matches!(name, "." | "..") => bad(what, name, "stands for a directory: add a letter or a digit".into()),
        None => Ok(()),
    }
}

fn spaced(allowed: &str) -> String {
    allowed.chars().map(String::from).collect::<Vec<_>>().join(" ")
}

/// Checks the name of an app: 1 to 128 bytes of `A-Z a-z 0-9 . _ -`, and neither `.` nor `..`.
///
/// # Errors
/// [`InvalidName`].
pub fn check_app(name: &str) -> Result<(), InvalidName> {
    check_name("app name", name, "._-")
}

/// Checks the name of a topic: 1 to 128 bytes of `A-Z a-z 0-9 . _ : -`, and neither `.` nor `..`.
///
/// # Errors
/// [`InvalidName`].
pub fn check_topic(name: &str) -> Result<(), InvalidName> {
    check_name("topic", name, "._:-")
}

/// Checks the id of a job: 1 to 256 bytes of text without control characters.
///
/// # Errors
/// [`InvalidName`].
pub fn check_id(id: &str) -> Result<(), InvalidName> {
    check_text("job id", id, MAX_ID)
}

/// Checks the name of a schedule: 1 to 200 bytes of text without control characters.
///
/// # Errors
/// [`InvalidName`].
pub fn check_schedule(name: &str) -> Result<(), InvalidName> {
    check_text("name of the schedule", name, MAX_SCHEDULE)
}

fn check_text(what: &'static str, text: &str, most: usize) -> Result<(), InvalidName> {
    check_length(what, text, most)?;
    match text.chars().find(|c| c.is_control()) {
        Some(wrong) => bad(what, text, format!("contains the control character {wrong:?}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_bad_name_says_the_limit_the_size_and_what_is_allowed() {
        assert_eq!(check_topic("order:timeout-1.a_b"), Ok(()));
        let long = check_topic(&"x".repeat(129)).unwrap_err().to_string();
        assert!(long.ends_with("is 129 bytes long; the limit is 128"), "{long}");
        let colon = check_app("a:b").unwrap_err().to_string();
        assert_eq!(colon, "the app name `a:b` contains ':'; write A-Z a-z 0-9 . _ -");
        assert!(check_topic("").unwrap_err().to_string().contains("is empty: write 1 to 128 bytes"));
    }

    #[test]
    fn a_name_of_dots_that_stands_for_a_directory_is_refused() {
        for name in [".", ".."] {
            let refused = check_topic(name).unwrap_err().to_string();
            assert_eq!(refused, format!("the topic `{name}` stands for a directory: add a letter or a digit"));
            assert!(check_app(name).is_err());
        }
        assert_eq!((check_topic("..."), check_topic(".a"), check_app("a..")), (Ok(()), Ok(()), Ok(())));
    }

    #[test]
    fn an_id_is_any_text_without_control_characters() {
        assert_eq!(check_id("Bestellung 7/ü"), Ok(()));
        assert!(check_id(&"x".repeat(257)).unwrap_err().to_string().contains("257 bytes long; the limit is 256"));
        assert_eq!(check_id("a\nb").unwrap_err().to_string(), r"the job id `a\nb` contains the control character '\n'");
    }
}
