//! Panics of user code: caught, and reported with their location in the finding, not printed for each of hundreds of runs.
//!
//! Rust's hook prints a panic before any code can catch it. The hook that this module installs stays quiet while user code
//! runs in a simulation on this thread, and records the location. It passes every other panic on to the previous hook.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Whether caught panics are printed as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Print {
    No,
    Yes,
}

thread_local! {
    /// Set while user code runs on this thread.
    static CATCHING: Cell<Option<Print>> = const { Cell::new(None) };
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A panic of user code.
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

/// Calls user code and catches its panic.
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
