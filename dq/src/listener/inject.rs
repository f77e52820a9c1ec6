//! Injection by type: the values that a program provides, and those that its listeners need.

use std::any::{Any, TypeId, type_name};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;

/// A value that a listener needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependency {
    /// The name of the field or parameter.
    pub field: &'static str,
    /// The type as the listener writes it, for messages.
    pub written: &'static str,
    /// The type.
    pub type_id: TypeId,
}

impl Dependency {
    /// The dependency of a field of type `T`. The code that injects the value requires [`Injectable`].
    pub fn of<T: 'static>(field: &'static str, written: &'static str) -> Self {
        Self { field, written, type_id: TypeId::of::<T>() }
    }
}

/// A type that can be injected: any type that is `Clone + Send + Sync + 'static`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be injected into a listener: share it in an `Arc`",
    label = "must be `Clone + Send + Sync + 'static`",
    note = "share it: make the field `Arc<{Self}>`, or `Arc<Mutex<{Self}>>` if it is not `Sync`, and call `.provide(Arc::new(..))`",
    note = "or mark the field `#[inject(default)]` if it is the listener's own state"
)]
pub trait Injectable: Clone + Send + Sync + 'static {}

impl<T: Clone + Send + Sync + 'static> Injectable for T {}

/// A value that the program provided.
#[derive(Debug, Clone, Copy)]
pub struct Provided {
    /// Its type.
    pub type_name: &'static str,
    /// The call of `.provide(..)`; `None` for a value that dq itself provides.
    pub at: Option<&'static Location<'static>>,
}

/// A value that the program did not provide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// Its type.
    pub type_name: &'static str,
}

/// All provided values, by type.
#[derive(Default)]
pub struct Injector {
    values: BTreeMap<TypeId, (Box<dyn Any + Send + Sync>, Provided)>,
    twice: Vec<(Provided, Provided)>,
}

impl Injector {
    /// Adds a value. A second value of the same type replaces nothing; [`provided_twice`](Self::provided_twice) returns
    /// it.
    pub fn provide<T: Injectable>(&mut self, value: T, at: Option<&'static Location<'static>>) {
        let provided = Provided { type_name: type_name::<T>(), at };
        if let Some((_, first)) = self.values.get(&TypeId::of::<T>()) {
            self.twice.push((*first, provided));
            return;
        }
        self.values.insert(TypeId::of::<T>(), (Box::new(value), provided));
    }

    /// Returns a clone of the value of this type.
    ///
    /// # Errors
    /// [`Missing`] when none was provided.
    pub fn get<T: Injectable>(&self) -> Result<T, Missing> {
        let value = self.values.get(&TypeId::of::<T>()).and_then(|(value, _)| value.downcast_ref::<T>());
        value.cloned().ok_or(Missing { type_name: type_name::<T>() })
    }

    /// Returns whether there is a value of this type.
    pub fn has(&self, type_id: TypeId) -> bool {
        self.values.contains_key(&type_id)
    }

    /// The values that the user provided, in the order of their type names.
    pub fn provided(&self) -> Vec<Provided> {
        let mut list: Vec<_> =
            self.values.values().map(|(_, provided)| *provided).filter(|provided| provided.at.is_some()).collect();
        list.sort_by_key(|provided| provided.type_name);
        list
    }

    /// Each value that was provided again: the first one and the other.
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
