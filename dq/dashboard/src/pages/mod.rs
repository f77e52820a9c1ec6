//! The pages.

pub(crate) mod chart;
mod dead;
mod doctor;
mod groups;
mod job;
mod jobs;
mod login;
mod nodes;
mod overview;
mod past;
mod schedules;
mod sets;
mod settings;
mod topic;
mod view;

pub(crate) use dead::{show as dead, unacked};
pub(crate) use doctor::show as doctor;
pub(crate) use job::{secrets, show as job};
pub(crate) use jobs::show as jobs;
pub(crate) use login::{log_in, log_out, show as login};
pub(crate) use nodes::show as nodes;
pub(crate) use overview::show as overview;
pub(crate) use schedules::{behind, page as schedule_page, show as schedules, times};
pub(crate) use sets::{list as sets, one as set, set_of, set_page};
pub(crate) use settings::show as settings;
pub(crate) use topic::show as topic;
pub(crate) use view::live;

use axum::response::Response;
use maud::{Markup, html};

/// What a handler of a page answers.
pub(crate) type Answer = Result<Response, Response>;

/// A table that scrolls by itself. A column whose name begins with `#` has numbers.
fn table(label: &str, caption: &str, columns: &[&str], rows: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) { table {
            caption.hidden { (caption) }
            thead { tr { @for name in columns {
                @match name.strip_prefix('#') { Some(name) => th.n scope="col" { (name) }, None => th scope="col" { (name) } }
            } } }
            tbody { (rows) }
        } }
    }
}
