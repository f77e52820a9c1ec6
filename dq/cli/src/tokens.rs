//! Who may use the dashboard of `dq serve`.

use std::path::Path;

use dq_dashboard::{Access, Role, User};

use crate::config::words;
use crate::failure::Failure;

/// The variable with a token.
const VARIABLE: &str = "DQ_DASHBOARD_TOKEN";

/// Who may use the dashboard, and the token that was just made.
pub(crate) struct Tokens {
    pub(crate) access: Access,
    pub(crate) made: Option<String>,
}

impl Tokens {
    /// The tokens of the file, of the variable, or a new one. A token without a name is `author`'s.
    pub(crate) fn of(file: Option<&Path>, author: &str) -> Result<Self, Failure> {
        if let Some(path) = file {
            let access = read(&words(path)?, author);
            let access = access.map_err(|why| Failure::Usage(format!("the token file {}: {why}", path.display())))?;
            return Ok(Self { access, made: None });
        }
        if let Some(token) = std::env::var(VARIABLE).ok().filter(|token| !token.is_empty()) {
            return Ok(Self { access: Access::token(author, token), made: None });
        }
        let token = Access::new_token().map_err(|error| Failure::Refused(error.to_string()))?;
        Ok(Self { access: Access::token(author, &token), made: Some(token) })
    }
}

/// Reads lines such as `TOKEN` and `NAME ROLE,ROLE TOKEN`; one with `#` is a comment.
fn read(text: &str, author: &str) -> Result<Access, String> {
    let mut access: Option<Access> = None;
    for (n, line) in text.lines().enumerate() {
        let words: Vec<_> = line.split_whitespace().collect();
        let (user, token) = match words[..] {
            [] => continue,
            [first, ..] if first.starts_with('#') => continue,
            [token] => (User::new(author), token),
            [name, roles, token] => (User::new(name).with_roles(read_roles(roles, n + 1)?), token),
            _ => {
                return Err(format!(
                    "line {}: write `TOKEN`, or `NAME ROLES TOKEN` such as `ann look,operate ..`",
                    n + 1
                ));
            }
        };
        access = Some(match access {
            Some(access) => access.or_token(user, token),
            None => Access::token(user, token),
        });
    }
    access.ok_or_else(|| "it has no token".into())
}

fn read_roles(words: &str, line: usize) -> Result<Vec<Role>, String> {
    let role = |word| Role::of_word(word).ok_or_else(|| format!("line {line}: the roles are look, operate and add"));
    words.split(',').map(role).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_token_or_a_name_with_roles_and_a_token() {
        assert!(read("# comment\n\n  a-token-without-a-name  \n", "ann@host").is_ok());
        assert!(read("ann look,operate a-token\nci add another-token", "x").is_ok());
        for (text, says) in [
            ("", "no token"),
            ("# only this", "no token"),
            ("a b", "line 1: write"),
            ("ok\nann look a token", "line 2: write"),
            ("ann rule a-token", "line 1: the roles are look, operate and add"),
        ] {
            let why = read(text, "x").unwrap_err();
            assert!(why.contains(says), "{text}: {why}");
        }
    }
}
