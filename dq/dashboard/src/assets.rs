//! What pages load, built into the program.

use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

/// Changes whenever a file does, so that browsers may keep them.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-4");

/// All scripts in one file. htmx looks at the page in the first pause after it was executed: in files of their own its extension and our
/// listeners came too late for that, now and then, and the page was not live.
const SCRIPT: &str = concat!(
    include_str!("../assets/htmx.min.js"),
    ";\n",
    include_str!("../assets/hx-sse.min.js"),
    ";\n",
    include_str!("../assets/dq.js"),
);

const FILES: [(&str, &str, &[u8]); 3] = [
    ("dq.css", "text/css; charset=utf-8", include_bytes!("../assets/dq.css")),
    ("dq.js", "text/javascript; charset=utf-8", SCRIPT.as_bytes()),
    ("dq.svg", "image/svg+xml", include_bytes!("../assets/dq.svg")),
];

pub(crate) async fn show(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some((_, kind, bytes)) = FILES.iter().find(|(file, ..)| *file == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    // Programs built from other files have other lengths or other text: FNV-1a tells them apart.
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let tag = format!("\"{hash:016x}\"");
    let kept = (ETAG, tag.clone());
    if headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, [kept]).into_response();
    }
    let cache = (CACHE_CONTROL, "public, no-cache".to_owned());
    ([kept, cache, (CONTENT_TYPE, (*kind).to_owned())], *bytes).into_response()
}
