//! Injection by type: what was provided, and what listeners need.

use std::any::{Any, TypeId, type_name};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;

/// A value that a listener needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependency {
    /// The name of the field or parameter.
    pub field: &'static str,
    /// The type as it is written in the listener, for messages.
    pub written: &'static str,
    /// The type.
    pub type_id: TypeId,
}

impl Dependency {
    /// The dependency of a field of type `T`; that it is [`Injectable`] is asked where it is injected.
    pub fn of<T: 'static>(field: &'static str, written: &'static str) -> Self {
        Self { field, written, type_id: TypeId::of::<T>() }
    }
}

/// What can be injected: anything that can be shared and cloned.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be injected into a listener",
    label = "must be `Clone + Send + Sync + 'static`",
    note = "share it: make the field `Arc<{Self}>`, or `Arc<Mutex<{Self}>>` if it is not `Sync`, and call `.provide(Arc::new(..))`",
    note = "or mark the field `#[inject(default)]` if it is the listener's own state"
)]
pub trait Injectable: Clone + Send + Sync + 'static {}

impl<T: Clone + Send + Sync + 'static> Injectable for T {}

/// A value that was provided.
#[derive(Debug, Clone, Copy)]
pub struct Provided {
    /// Its type.
    pub type_name: &'static str,
    /// Where `.provide(..)` was called; `None`: by dq itself.
    pub at: Option<&'static Location<'static>>,
}

/// A value that was not provided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// Its type.
    pub type_name: &'static str,
}

/// Everything that was provided, by type.
#[derive(Default)]
pub struct Injector {
    values: BTreeMap<TypeId, (Box<dyn Any + Send + Sync>, Provided)>,
    twice: Vec<(Provided, Provided)>,
}

impl Injector {
    /// Adds a value; a second one of the same type is noted as a problem and replaces nothing.
    pub fn provide<T: Injectable>(&mut self, value: T, at: Option<&'static Location<'static>>) {
        let provided = Provided { type_name: type_name::<T>(), at };
        if let Some((_, first)) = self.values.get(&TypeId::of::<T>()) {
            self.twice.push((*first, provided));
            return;
        }
        self.values.insert(TypeId::of::<T>(), (Box::new(value), provided));
    }

    /// A clone of the value of this type.
    ///
    /// # Errors
    /// [`Missing`] when none was provided.
    pub fn get<T: Injectable>(&self) -> Result<T, Missing> {
        let value = self.values.get(&TypeId::of::<T>()).and_then(|(value, _)| value.downcast_ref::<T>());
        value.cloned().ok_or(Missing { type_name: type_name::<T>() })
    }

    /// Whether a value of this type was provided.
    pub fn has(&self, type_id: TypeId) -> bool {
        self.values.contains_key(&type_id)
    }

    /// What was provided by the user, in the order of the type names.
    pub fn provided(&self) -> Vec<Provided> {
        let mut list: Vec<_> =
            self.values.values().map(|(_, provided)| *provided).filter(|provided| provided.at.is_some()).collect();
        list.sort_by_key(|provided| provided.type_name);
        list
    }

    /// What was provided more than once: the first and the other.
    pub fn provided_twice(&self) -> &[(Provided, Provided)] {
        &self.twice
    }
}

impl fmt::Debug for Injector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.provided().iter().map(|provided| provided.type_name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_exact_type() {
        let mut injector = Injector::default();
        injector.provide(7_u8, Some(Location::caller()));
        injector.provide(8_u8, Some(Location::caller()));
        assert_eq!(injector.get::<u8>(), Ok(7));
        assert_eq!(injector.get::<u16>(), Err(Missing { type_name: "u16" }));
        assert_eq!(injector.provided_twice().len(), 1);
    }
}
