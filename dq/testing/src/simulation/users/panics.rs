//! Panics of users' code in a run: caught, and told with their place in the finding, not printed for each of hundreds of runs.
//!
//! Rust's hook prints a panic before anybody can catch it. The one that is put before it here keeps quiet while code of a
//! user runs in a simulation on this thread, and notes where it was; every other panic goes on to the hook that was there.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Whether panics that are caught are printed as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Print {
    No,
    Yes,
}

thread_local! {
    /// Code of a user runs on this thread.
    static CATCHING: Cell<Option<Print>> = const { Cell::new(None) };
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A panic of a user's code.
pub(super) struct Panicked {
    pub(super) payload: Box<dyn Any + Send>,
    place: Option<String>,
}

/// ` at src/orders.rs:7:9: assertion failed`.
impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, " at {place}")?;
        }
        let text = self.payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| self.payload.downcast_ref::<String>().map(String::as_str));
        write!(f, ": {}", text.unwrap_or("(no message)"))
    }
}

/// Calls code of a user.
pub(super) fn caught<R>(print: Print, code: impl FnOnce() -> R) -> Result<R, Panicked> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let catching = CATCHING.get();
            if catching.is_some() {
                PLACE.set(info.location().map(ToString::to_string));
            }
            if catching != Some(Print::No) {
                before(info);
            }
        }));
    });
    let before = CATCHING.replace(Some(print));
    let done = catch_unwind(AssertUnwindSafe(code));
    CATCHING.set(before);
    done.map_err(|payload| Panicked { payload, place: PLACE.take() })
}
