//! What can keep a node from starting. Each problem has everything that its text names in fields.

use std::fmt;
use std::io;

use crate::config::{SettingProblem, Source, SourceLocation, did_you_mean};
use crate::job::InvalidName;
use crate::listener::Provided;
use crate::store::StoreError;

/// A listener: its name, and the place of its annotation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListenerAt {
    /// The place of the annotation.
    pub at: SourceLocation,
    /// The name of the struct or function.
    pub name: &'static str,
}

impl fmt::Display for ListenerAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({})", self.name, self.at)
    }
}

/// A listener, and its field or parameter that needs a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// The listener.
    pub listener: ListenerAt,
    /// The field or parameter.
    pub field: &'static str,
}

/// A reason not to start. The variants are in the order in which `start` reports them. Each text says what to write.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The name given to `ContextFactory::new` is not valid for an app.
    #[error("{bad} ({at})")]
    AppName {
        /// The call of `ContextFactory::new`.
        at: SourceLocation,
        /// What is wrong with it.
        bad: InvalidName,
    },
    /// No listener is linked or named, and the program did not call `.without_listeners()`.
    #[error(
        "no listener is registered: annotate one with `#[delay_listener]`; one in another crate needs a `use that_crate as _;` \
         here; a node that only provides calls `.without_listeners()`"
    )]
    NoListener,
    /// `.only(..)` and `.except(..)` leave none of the listeners.
    #[error(
        "`.only(..)` and `.except(..)` leave none of {registered} listeners: name a topic to run, or call `.without_listeners()` for a node that only provides"
    )]
    NoneLeft {
        /// How many are registered.
        registered: usize,
    },
    /// The name of a topic or broadcast channel is not valid.
    #[error("{listener}: {bad}")]
    TopicName {
        /// The listener that names it.
        listener: ListenerAt,
        /// What is wrong with it.
        bad: InvalidName,
    },
    /// A topic has more than one listener.
    #[error("topic `{topic}` has {} listeners; keep one of: {}", .listeners.len(), listed(.listeners))]
    DuplicateTopic {
        /// The topic.
        topic: String,
        /// Its listeners, in order of their places.
        listeners: Vec<ListenerAt>,
    },
    /// The code defines two schedules of one name for a topic.
    #[error("topic `{topic}` has the schedule `{name}` {} times: write `#[periodic(name = \"..\", ..)]`; {}", .places.len(), at_places(.places))]
    DuplicateSchedule {
        /// The topic.
        topic: &'static str,
        /// The name.
        name: &'static str,
        /// The places of the attributes.
        places: Vec<SourceLocation>,
    },
    /// A schedule that the code defines is not valid.
    #[error("the schedule `{name}` ({at}): {why}")]
    Schedule {
        /// The place of the attribute.
        at: SourceLocation,
        /// Its name.
        name: &'static str,
        /// Why.
        why: String,
    },
    /// A topic of `.expect_topics(..)` has no listener.
    #[error("topic `{topic}` is expected ({at}) and has no listener{}", missing_crate(.suggestion.as_ref()))]
    Expected {
        /// The call of `.expect_topics(..)`.
        at: SourceLocation,
        /// The topic.
        topic: String,
        /// The nearest topic there is.
        suggestion: Option<String>,
    },
    /// A topic of `.only(..)` or `.except(..)` has no listener.
    #[error("`.{call}(..)` at {at} names topic `{topic}`, which has no listener{}", did_you_mean(.suggestion.as_ref()))]
    NotSelectable {
        /// The call that names it.
        at: SourceLocation,
        /// `only` or `except`.
        call: &'static str,
        /// The topic.
        topic: String,
        /// The nearest topic there is.
        suggestion: Option<String>,
    },
    /// A setting is not valid.
    #[error(transparent)]
    Setting(#[from] SettingProblem),
    /// The program provides two values of one type, and dq cannot know which one is meant.
    #[error("`{type_name}` is provided twice, at {first} and at {again}: wrap one in a newtype of yours")]
    ProvidedTwice {
        /// The first call of `.provide(..)`.
        first: SourceLocation,
        /// The second call.
        again: SourceLocation,
        /// The type.
        type_name: &'static str,
    },
    /// The program provides a value of a type that dq provides itself.
    #[error("`{type_name}` is provided at {at}, but dq provides it itself: remove that call")]
    ProvidedByDq {
        /// The call of `.provide(..)`.
        at: SourceLocation,
        /// The type.
        type_name: &'static str,
    },
    /// Listeners need a value that the program does not provide.
    #[error(
        "`{written}` was not provided: call `.provide(..)` with a value of exactly that type; needed by\n{}",
        needs(.needed_by)
    )]
    NotProvided {
        /// The type, as the first of the listeners writes it.
        written: &'static str,
        /// The listeners that need it, in order of their places.
        needed_by: Vec<Need>,
    },
    /// The program chose no store.
    #[error(
        "no store is chosen: call `.store(\"file:./dq-data/NAME\")` (`memory:` for tests), write `store = ..` in the config file, or set `DQ_STORE`"
    )]
    NoStore,
    /// The URL names no store of this build.
    #[error("the store `{url}` ({at}): {why}")]
    StoreUrl {
        /// Where the URL comes from.
        at: Source,
        /// The URL, without secrets.
        url: String,
        /// Why.
        why: InvalidStoreUrl,
    },
    /// The directory of a `file:` store cannot be opened. The error says what to do.
    #[error("the store {url}{} does not open: {}", from(.at.as_ref()), short(.error))]
    StoreNotOpen {
        /// Its URL.
        url: String,
        /// Where the URL comes from; `None` for a store that the program made.
        at: Option<Source>,
        /// The error of the store.
        error: StoreError,
    },
    /// The store did not answer. Start it, or fix the URL.
    #[error("the store {url}{} cannot be reached: {}", from(.at.as_ref()), short(.error))]
    StoreUnreachable {
        /// Its URL, without secrets.
        url: String,
        /// Where the URL comes from; `None` for a store that the program made.
        at: Option<Source>,
        /// The error of the store.
        error: StoreError,
    },
    /// The store answered and refused a topic.
    #[error("the store {url}{} cannot serve topic `{topic}`: {error}", from(.at.as_ref()))]
    StoreTopic {
        /// Its URL, without secrets.
        url: String,
        /// Where the URL comes from; `None` for a store that the program made.
        at: Option<Source>,
        /// The topic.
        topic: String,
        /// The error of the store.
        error: StoreError,
    },
    /// The operating system refused to start a thread.
    #[error("the operating system refused to start a thread for dq: {0}")]
    NoThread(io::Error),
}

fn at_places(places: &[SourceLocation]) -> String {
    let places: Vec<_> = places.iter().map(|at| format!("at {at}")).collect();
    places.join(", ")
}

fn from(at: Option<&Source>) -> String {
    at.map_or_else(String::new, |at| format!(" ({at})"))
}

/// The error without what the problem says already: that the store did not open, or cannot be reached.
fn short(error: &StoreError) -> String {
    match error {
        StoreError::NotSent { reason, .. }
        | StoreError::Unavailable { reason, .. }
        | StoreError::Halted { reason, .. } => reason.clone(),
        other => other.to_string(),
    }
}

fn missing_crate(suggestion: Option<&String>) -> String {
    match suggestion {
        Some(_) => did_you_mean(suggestion),
        None => ": if it is in another crate, mention that as `use that_crate as _;`".into(),
    }
}

fn listed(listeners: &[ListenerAt]) -> String {
    listeners.iter().map(ListenerAt::to_string).collect::<Vec<_>>().join(", ")
}

fn needs(needs: &[Need]) -> String {
    needs.iter().map(|need| format!("{} as `{}`", need.listener, need.field)).collect::<Vec<_>>().join("\n")
}

impl Problem {
    /// Where the report has the problem: its group, and the place by which problems of a group are sorted.
    fn order(&self) -> (u8, Option<SourceLocation>) {
        let (group, at) = match self {
            Self::AppName { at, .. } => (0, Some(at)),
            Self::NoListener | Self::NoneLeft { .. } => (1, None),
            Self::TopicName { listener, .. } => (2, Some(&listener.at)),
            Self::DuplicateTopic { listeners, .. } => (3, listeners.first().map(|listener| &listener.at)),
            Self::DuplicateSchedule { places, .. } => (3, places.first()),
            Self::Schedule { at, .. } => (3, Some(at)),
            Self::Expected { at, .. } => (4, Some(at)),
            Self::NotSelectable { at, .. } => (5, Some(at)),
            Self::Setting(problem) => return (6, problem.location()),
            Self::ProvidedTwice { first, .. } => (7, Some(first)),
            Self::ProvidedByDq { at, .. } => (8, Some(at)),
            Self::NotProvided { needed_by, .. } => (9, needed_by.first().map(|need| &need.listener.at)),
            Self::NoStore | Self::StoreUrl { .. } | Self::StoreNotOpen { .. } | Self::StoreUnreachable { .. } => {
                (10, None)
            }
            Self::StoreTopic { .. } => (11, None),
            Self::NoThread(_) => (12, None),
        };
        (group, at.cloned())
    }
}

/// Every reason why a node did not start. `Debug` prints what `Display` prints, so that a `main` that returns this error
/// prints readable text.
pub struct StartError {
    problems: Vec<Problem>,
    provided: Vec<Provided>,
}

impl StartError {
    /// Sorts the problems. `provided` lists the provided values; the report shows them if one is missing.
    pub(crate) fn new(mut problems: Vec<Problem>, provided: Vec<Provided>) -> Self {
        problems.sort_by_cached_key(|problem| (problem.order(), problem.to_string()));
        Self { problems, provided }
    }

    /// The problems, at least one: in groups by what they are about, and within a group in order of their places.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Whether all that is wrong is that no listener is named.
    #[cfg(feature = "testing")]
    pub(crate) fn is_only_no_listener(&self) -> bool {
        matches!(self.problems[..], [Problem::NoListener])
    }

    /// Lists the provided values, if one is missing.
    fn write_provided(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.problems.iter().any(|problem| matches!(problem, Problem::NotProvided { .. })) {
            return Ok(());
        }
        if self.provided.is_empty() {
            return f.write_str("\n  nothing is provided");
        }
        f.write_str("\n  provided are")?;
        for provided in &self.provided {
            write!(f, "\n       `{}`", provided.type_name)?;
            provided.at.iter().try_for_each(|at| write!(f, " ({}:{})", at.file(), at.line()))?;
        }
        Ok(())
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.problems.len() == 1 { "" } else { "s" };
        write!(f, "cannot start, {} problem{plural}:", self.problems.len())?;
        for (i, problem) in self.problems.iter().enumerate() {
            write!(f, "\n{:>3}. {}", i + 1, problem.to_string().replace('\n', "\n       "))?;
        }
        self.write_provided(f)
    }
}

impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for StartError {}

/// Why a URL names no store of this build.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidStoreUrl {
    /// dq knows no such scheme.
    #[error("there is no scheme `{scheme}`{}; {BUILT}", suggested(.suggestion.as_deref()))]
    UnknownScheme {
        /// The text before the colon, or the whole text if there is no colon.
        scheme: String,
        /// The nearest known scheme.
        suggestion: Option<String>,
    },
    /// The scheme is known, but this build of dq has no such store.
    #[error("`{scheme}` is not built yet; {BUILT}")]
    NotBuilt {
        /// The scheme.
        scheme: &'static str,
    },
    /// The name after `memory:` is not valid.
    #[error("{0}")]
    Name(InvalidName),
    /// What follows `file:` names no directory.
    #[error(
        "`file:{given}` names no directory: write `file:./dq-data/NAME` for one below the working directory, or \
         `file:/var/lib/NAME`"
    )]
    Directory {
        /// The text after `file:`.
        given: String,
    },
    /// What follows `file:` is meant for a shell, or is encoded as in a URL. dq takes it as it is, so it would make a directory of this name.
    #[error(
        "`file:{given}` names no directory: dq expands neither `~` nor variables such as `$HOME`, and decodes no `%20`; write the \
         path itself, as in `file:/var/lib/my shop`"
    )]
    Unexpanded {
        /// The text after `file:`.
        given: String,
    },
    /// `Provider::connect("memory:")`: a store that no node could reach.
    #[error(
        "no node could run its jobs: name it as `memory:NAME`, and give that to a `ContextFactory` of this process too"
    )]
    Private,
    /// What follows `redis:` or `rediss:` cannot be used.
    #[cfg(feature = "redis")]
    #[error(transparent)]
    Redis(#[from] crate::store::redis::BadRedisUrl),
}

fn suggested(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

/// The stores of this build, for the two texts that report an unknown one.
#[cfg(feature = "redis")]
const BUILT: &str = "there is `file:DIRECTORY` (on disk, for one process), `memory:` (private to its factory), `memory:NAME` \
                     (shared by name in this process), `redis://HOST` (many nodes on one server), \
                     `redis+sentinel://HOST,HOST/SERVICE` and `redis+cluster://HOST,HOST`; with TLS they begin with `rediss`";
/// The stores of this build, for the two texts that report an unknown one.
#[cfg(not(feature = "redis"))]
const BUILT: &str = "there is `file:DIRECTORY` (on disk, for one process), `memory:` (private to its factory) and `memory:NAME` \
                     (shared by name in this process); the feature `redis` was left out";
