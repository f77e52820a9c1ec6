//! The verbs that look at topics and jobs, and change them. Each has its arguments and a function `run`.

pub mod add;
pub mod change;
pub mod doctor;
pub mod groups;
pub mod jobs;
pub mod limit;
pub mod nodes;
pub mod pause;
pub mod schedules;
pub mod serve;
pub mod sets;
pub mod shell;
pub mod show;
pub mod timeline;
pub mod top;
pub mod topics;
pub mod watch;
pub mod which;
