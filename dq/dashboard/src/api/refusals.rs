//! The refusals that every route has.

use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder};

/// Of every route.
const ALL: [(&str, &str); 3] =
    [("400", "The request makes no sense"), ("401", "No token, or a wrong one"), ("429", "Too many requests")];

/// Of those that change something.
const OF_CHANGES: [(&str, &str); 2] = [
    ("403", "The dashboard is read-only, or a page of another site sent this"),
    ("422", "The body has a field that is not known, or lacks one"),
];

/// Describes them wherever a route has not described them itself.
pub(super) fn add(document: &mut OpenApi) {
    for item in document.paths.paths.values_mut() {
        for (operation, changes) in [(&mut item.get, false), (&mut item.post, true), (&mut item.delete, true)] {
            let Some(operation) = operation else { continue };
            let more = OF_CHANGES.iter().filter(|_| changes);
            for (status, text) in ALL.iter().chain(more) {
                operation.responses.responses.entry((*status).to_owned()).or_insert_with(|| problem(text));
            }
        }
    }
}

fn problem(text: &str) -> RefOr<Response> {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    ResponseBuilder::new().description(text).content("application/json", content).build().into()
}
