//! What routes need of their visitors.

use axum::routing::MethodFilter;

use crate::user::Role;

/// What a route needs of its visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: it answers before the login.
    Nothing,
    /// A user with all of these roles. If there are none, any user will do.
    Roles(&'static [Role]),
}

pub(crate) const USER: Needs = Needs::Roles(&[]);
pub(crate) const LOOK: Needs = Needs::Roles(&[Role::Look]);
pub(crate) const OPERATE: Needs = Needs::Roles(&[Role::Operate]);
pub(crate) const ADD: Needs = Needs::Roles(&[Role::Add]);
/// The last job of a set is added, and the set belongs to no one user.
pub(crate) const ADD_AND_OPERATE: Needs = Needs::Roles(&[Role::Add, Role::Operate]);

/// A route. `HEAD` is answered by the row of `GET`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) method: MethodFilter,
    pub(crate) path: &'static str,
    pub(crate) needs: Needs,
}
