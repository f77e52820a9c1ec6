//! Registrations: the listeners that `inventory` collected, and those that the program named.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use super::batch_listener::BatchListener;
use super::delay_listener::{Declared, DelayListener};
use super::erased::{Erased, ErasedListener};
use super::erased_batch::ErasedBatch;
use super::inject::{Dependency, Injector, Missing};
use super::topic_check::assert_same_topic;
use crate::broadcast::{self, BroadcastListener, ErasedBroadcast};
use crate::job::DelayJob;

/// What a registered listener listens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerKind {
    /// The jobs of a topic.
    Delay {
        /// The topic.
        topic: &'static str,
    },
    /// The broadcasts of these channels.
    Broadcast {
        /// The channels; a channel has the name of the topic of its broadcast jobs.
        channels: &'static [&'static str],
    },
}

pub(crate) type Built<L> = Result<Arc<L>, Missing>;

#[derive(Clone, Copy)]
pub(crate) enum Build {
    Delay(fn(&Injector) -> Built<dyn ErasedListener>),
    Broadcast(fn(&Injector) -> Built<dyn ErasedBroadcast>),
}

/// A listener that an attribute declared: its settings, its dependencies, and how to make it.
#[derive(Clone, Copy)]
pub struct Registration {
    /// The name of the struct or function.
    pub name: &'static str,
    /// The file and line of the attribute.
    pub declared_at: &'static str,
    /// What it listens to.
    pub kind: ListenerKind,
    /// The settings in the attribute, each with its value as a config file writes it, without quotes.
    pub settings: &'static [(&'static str, &'static str)],
    /// The retry policy of its payload, as text; it applies if the attribute has none.
    pub payload_retry: Option<&'static str>,
    /// Whether it takes batches.
    pub takes_batches: bool,
    /// The values it needs.
    pub dependencies: fn() -> Vec<Dependency>,
    /// Its type: a listener that is both annotated and named by the program counts once.
    pub(crate) type_id: fn() -> TypeId,
    pub(crate) build: Build,
}

inventory::collect!(Registration);

impl Registration {
    /// The registration of a delay listener.
    ///
    /// Evaluate it in a constant: then the compiler rejects a topic that is not the payload's.
    ///
    /// # Panics
    /// If the listener's attribute names a topic other than its payload's.
    #[track_caller]
    pub const fn delay<L: DelayListener>() -> Self {
        Self::of_topic::<L, L::Job>(false, |injector| Ok(Arc::new(Erased::new(L::inject(injector)?))))
    }

    /// The registration of a delay listener that takes batches. Evaluate it in a constant, too.
    ///
    /// # Panics
    /// If the listener's attribute names a topic other than its payload's.
    #[track_caller]
    pub const fn batch<L: BatchListener>() -> Self {
        Self::of_topic::<L, L::Job>(true, |injector| Ok(Arc::new(ErasedBatch::new(L::inject(injector)?))))
    }

    #[track_caller]
    const fn of_topic<L: Declared + 'static, J: DelayJob>(
        takes_batches: bool,
        build: fn(&Injector) -> Built<dyn ErasedListener>,
    ) -> Self {
        assert_same_topic::<L, J>();
        Self {
            name: L::NAME,
            declared_at: L::DECLARED_AT,
            kind: ListenerKind::Delay { topic: J::TOPIC },
            settings: L::SETTINGS,
            payload_retry: J::DEFAULTS.retry,
            takes_batches,
            dependencies: <L as Declared>::dependencies,
            type_id: TypeId::of::<L>,
            build: Build::Delay(build),
        }
    }

    /// The registration of a broadcast listener.
    pub const fn broadcast<L: BroadcastListener>() -> Self {
        Self {
            name: L::NAME,
            declared_at: L::DECLARED_AT,
            kind: ListenerKind::Broadcast { channels: L::CHANNELS },
            settings: &[],
            payload_retry: None,
            takes_batches: false,
            dependencies: <L as broadcast::Declared>::dependencies,
            type_id: TypeId::of::<L>,
            build: Build::Broadcast(|injector| Ok(broadcast::erase(L::inject(injector)?))),
        }
    }

    /// Every annotated listener in the linked crates, in the order of file, line and name.
    pub fn all() -> Vec<Self> {
        let mut all: Vec<_> = inventory::iter::<Self>.into_iter().copied().collect();
        all.sort_by_key(|registration| (registration.declared_at, registration.name));
        all
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("name", &self.name)
            .field("declared_at", &self.declared_at)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
