//! Tables of pages.

use maud::{Markup, html};

/// A table that scrolls by itself. A column whose name begins with `#` has numbers.
pub(super) fn table(label: &str, caption: &str, columns: &[&str], rows: &Markup) -> Markup {
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
