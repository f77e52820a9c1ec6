//! From a URL to a store.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::{NodeSettings, nearest};
use crate::context::problems::InvalidStoreUrl;
use crate::environment::{StoreClock, TokioClock, WallClock};
use crate::job::AppName;
use crate::store::file::{Commits, FileStore};
use crate::store::memory::MemoryStore;
use crate::store::{Store, is_word, masked_url};

/// The store of a factory: a URL, or a store that the program made.
#[derive(Debug, Clone)]
pub struct StoreChoice(pub(crate) Chosen);

#[derive(Clone)]
pub(crate) enum Chosen {
    Url(String),
    Made(Arc<dyn Store>),
}

/// Shows no secret of a URL.
impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.debug_tuple("Url").field(&masked_url(url)).finish(),
            Self::Made(store) => f.debug_tuple("Made").field(store).finish(),
        }
    }
}

/// What [`ContextFactory::store`](crate::context::ContextFactory::store) accepts: a URL, or an `Arc` of a store.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a store",
    label = "not a store",
    note = "write a URL as `\"memory:\"`, or give an `Arc` of something that implements `dq::store::Store`"
)]
pub trait IntoStore {
    /// The choice.
    fn into_store(self) -> StoreChoice;
}

impl IntoStore for &str {
    fn into_store(self) -> StoreChoice {
        StoreChoice(Chosen::Url(self.into()))
    }
}

impl IntoStore for String {
    fn into_store(self) -> StoreChoice {
        StoreChoice(Chosen::Url(self))
    }
}

impl IntoStore for &String {
    fn into_store(self) -> StoreChoice {
        self.as_str().into_store()
    }
}

impl IntoStore for Arc<dyn Store> {
    fn into_store(self) -> StoreChoice {
        StoreChoice(Chosen::Made(self))
    }
}

impl<S: Store> IntoStore for Arc<S> {
    fn into_store(self) -> StoreChoice {
        StoreChoice(Chosen::Made(self))
    }
}

/// Makes the store behind a URL, without connecting to it, for programs that move or inspect jobs. A store that no node could
/// reach is refused. Its settings are the defaults.
///
/// # Errors
/// [`InvalidStoreUrl`] if the URL names no store of this build.
pub fn open_store(url: &str) -> Result<Arc<dyn Store>, InvalidStoreUrl> {
    open(url, true, &NodeSettings::default())
}

/// Makes the store behind a URL, without connecting to it. `shared` refuses a store that no node could reach, and
/// `memory:` ignores the settings.
pub(crate) fn open(url: &str, shared: bool, settings: &NodeSettings) -> Result<Arc<dyn Store>, InvalidStoreUrl> {
    let Some((scheme, rest)) = url.split_once(':') else { return Err(unknown(url, url)) };
    Ok(match (scheme, rest) {
        ("memory", "") if shared => return Err(InvalidStoreUrl::Private),
        ("memory", "") => Arc::new(MemoryStore::new(memory_clock())),
        ("memory", name) => match AppName::new(name) {
            Ok(name) => Arc::new(MemoryStore::named(name.as_str(), memory_clock())),
            Err(mut bad) => {
                bad.what = "store name";
                return Err(InvalidStoreUrl::Name(bad));
            }
        },
        ("file", rest) => Arc::new(file_store(&directory(rest)?, settings)),
        // It reads the URL itself.
        #[cfg(feature = "redis")]
        ("redis" | "rediss" | "redis+sentinel" | "rediss+sentinel" | "redis+cluster" | "rediss+cluster", _) => {
            Arc::new(crate::store::redis::RedisStore::new(url)?.with_durability(settings.durability))
        }
        _ => match REDIS.iter().find(|known| known.strip_suffix(':') == Some(scheme)) {
            Some(&scheme) => return Err(InvalidStoreUrl::NotBuilt { scheme }),
            None => return Err(unknown(scheme, url)),
        },
    })
}

/// The clock of a memory store: the wall clock, which is right after a suspend and a step of the time; tokio's where it is
/// paused.
fn memory_clock() -> Arc<dyn StoreClock> {
    if TokioClock::is_paused() { Arc::new(TokioClock::new()) } else { Arc::new(WallClock) }
}

/// The store in a directory; under a paused clock, where no other thread may work, without its thread.
pub(super) fn file_store(path: &Path, settings: &NodeSettings) -> FileStore {
    FileStore::new(path).with(|options| {
        options.durability = settings.durability;
        if let Some(limit) = settings.max_memory {
            options.max_memory = Some(limit as u64);
        }
        if TokioClock::is_paused() {
            (options.clock, options.commits) = (Arc::new(TokioClock::new()), Commits::AtOnce);
        }
    })
}

/// Whether a store behind this URL is a directory of this machine.
pub(crate) fn is_file(url: &str) -> bool {
    url.starts_with("file:")
}

/// Whether a store behind this URL belongs to this process, without replicas to wait for.
pub(crate) fn is_alone(url: &str) -> bool {
    matches!(url.split_once(':'), Some(("memory" | "file", _)))
}

/// Schemes of the Redis store.
const REDIS: [&str; 6] =
    ["redis:", "rediss:", "redis+sentinel:", "rediss+sentinel:", "redis+cluster:", "rediss+cluster:"];

/// The directory after `file:`, which may be written as `PATH` or as `///ABSOLUTE/PATH`.
fn directory(rest: &str) -> Result<PathBuf, InvalidStoreUrl> {
    let path = match rest.strip_prefix("//") {
        Some(absolute) if absolute.starts_with('/') => absolute,
        // It may be a server with a password.
        Some(_) => return Err(InvalidStoreUrl::Directory { given: masked_url(&format!("file:{rest}")).split_off(5) }),
        None => rest,
    };
    if path.is_empty() || path.contains(['?', '#', '\0']) {
        return Err(InvalidStoreUrl::Directory { given: rest.to_owned() });
    }
    if is_unexpanded(path) {
        return Err(InvalidStoreUrl::Unexpanded { given: rest.to_owned() });
    }
    Ok(PathBuf::from(path))
}

/// Whether a path has what a shell expands, or an encoded byte of a URL.
fn is_unexpanded(path: &str) -> bool {
    let follows = |sign: char, is_so: fn(&[u8]) -> bool| path.split(sign).skip(1).any(|rest| is_so(rest.as_bytes()));
    let is_variable =
        |rest: &[u8]| rest.first().is_some_and(|byte| byte.is_ascii_alphabetic() || b"_{(".contains(byte));
    let is_byte = |rest: &[u8]| rest.len() >= 2 && rest[..2].iter().all(u8::is_ascii_hexdigit);
    path.starts_with('~') || follows('$', is_variable) || follows('%', is_byte)
}

/// The directory of the store behind a URL; `None` if the store is no directory.
///
/// # Errors
/// [`InvalidStoreUrl`] if the URL of a directory names none.
pub fn directory_of(url: &str) -> Result<Option<PathBuf>, InvalidStoreUrl> {
    url.strip_prefix("file:").map(directory).transpose()
}

fn unknown(scheme: &str, url: &str) -> InvalidStoreUrl {
    let schemes = REDIS.into_iter().chain(["memory:", "file:"]);
    let is_path = url.starts_with(['.', '/']) && is_word(url);
    let is_server = url.split_once(':').and_then(|(_, port)| port.split('/').next()?.parse::<u16>().ok()).is_some();
    let suggestion = if is_server && cfg!(feature = "redis") {
        Some(masked_url(&format!("redis://{url}")))
    } else if is_path {
        Some(format!("file:{url}"))
    } else {
        nearest(scheme, schemes.map(|s| s.trim_end_matches(':')))
    };
    let suggestion = suggestion.map(|near| if near.contains(':') { near } else { format!("{near}:") });
    InvalidStoreUrl::UnknownScheme { scheme: masked_url(scheme), suggestion }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        open(url, false, &NodeSettings::default()).unwrap_err().to_string()
    }

    #[tokio::test]
    async fn a_memory_store_keeps_the_wall_clock() {
        assert_eq!(format!("{:?}", memory_clock()), "WallClock");
        tokio::time::pause();
        assert!(format!("{:?}", memory_clock()).starts_with("TokioClock"), "and tokio's where that is paused");
    }

    #[test]
    fn memory_is_private_or_has_a_name() {
        for url in ["memory:", "memory:jobs.1"] {
            assert_eq!(open(url, false, &NodeSettings::default()).unwrap().url(), url);
        }
        assert!(matches!(open_store("memory:"), Err(InvalidStoreUrl::Private)), "no node could reach it");
        assert_eq!(refused("memory://x"), "the store name `//x` contains '/'; write A-Z a-z 0-9 . _ -");
    }

    #[test]
    fn a_file_store_is_a_directory() {
        for (url, path) in
            [("file:./dq-data/a", "./dq-data/a"), ("file:/var/dq", "/var/dq"), ("file:///var/dq", "/var/dq")]
        {
            assert_eq!(open_store(url).unwrap().url(), format!("file:{path}"));
        }
        for url in ["file:", "file://", "file://host/dq", "file:dq?sync=no"] {
            let text = refused(url);
            assert!(text.contains("names no directory: write `file:./dq-data/NAME`"), "{text}");
        }
    }

    #[test]
    fn a_file_store_has_the_memory_limit_of_the_settings() {
        let settings = NodeSettings { max_memory: Some(2_097_152), ..NodeSettings::default() };
        let store = format!("{:?}", open("file:./dq-data/a", false, &settings).unwrap());
        assert!(store.contains("max_memory: Some(2097152)"), "{store}");
    }

    #[cfg(not(feature = "redis"))]
    #[test]
    fn an_unbuilt_scheme_lists_the_built_ones() {
        for scheme in REDIS {
            let text = refused(&format!("{scheme}//host/1"));
            let start = format!("`{scheme}` is not built yet; there is `file:DIRECTORY`");
            assert!(text.starts_with(&start), "{text}");
        }
    }

    #[test]
    fn an_unknown_scheme_gets_a_suggestion() {
        assert!(refused("reddis://host").starts_with("there is no scheme `reddis` (did you mean `redis:`?); there is"));
        assert!(refused("memory").starts_with("there is no scheme `memory` (did you mean `memory:`?)"));
        assert!(refused("./data").starts_with("there is no scheme `./data` (did you mean `file:./data`?)"));
        #[cfg(feature = "redis")]
        assert!(refused("localhost:6379").contains("(did you mean `redis://localhost:6379`?)"));
        assert!(refused("postgresql://host").starts_with("there is no scheme `postgresql`; there is"));
    }

    #[test]
    fn what_a_shell_expands_and_what_a_url_encodes_makes_no_directory() {
        for path in [
            "$HOME/x",
            "${HOME}/x",
            "/data/$APP",
            "/data/x-$(hostname)",
            "~/x",
            "~shop/x",
            "///a/my%20shop",
            "/a/my%20shop",
            "a%2fb",
        ] {
            let url = format!("file:{path}");
            let says = format!("`{url}` names no directory: dq expands neither `~` nor variables such as `$HOME`");
            assert!(refused(&url).starts_with(&says), "{}", refused(&url));
            assert!(directory_of(&url).is_err());
        }
        for path in ["/a/my shop", "/a/100%", "/a/100% sure", "/a/cash$", "/a/x~", "/a/5$5"] {
            assert_eq!(directory_of(&format!("file:{path}")).unwrap(), Some(PathBuf::from(path)));
        }
        assert_eq!(directory_of("redis://host").unwrap(), None);
    }

    #[test]
    fn no_error_of_a_url_has_its_secrets() {
        for url in crate::store::SECRET_URLS {
            if let Err(error) = open(url, false, &NodeSettings::default()) {
                assert!(!error.to_string().contains("secret"), "{url}: {error}");
            }
            assert!(!format!("{:?}", url.into_store()).contains("secret"), "{url}");
        }
    }
}
