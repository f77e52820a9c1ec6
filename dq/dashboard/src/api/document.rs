//! The description of the API, with what holds for all routes and all answers.

use axum::routing::MethodFilter;
use serde_json::{Value, json};
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder, Server};

use crate::guard::{Needs, Row};
use crate::user::Role;

/// The refusals of every route.
const ALL: [(&str, &str); 4] = [
    ("400", "The request makes no sense"),
    ("401", "No token, or a wrong one"),
    ("403", "The role is missing, the dashboard is read-only, or a page of another site sent this"),
    ("429", "Too many requests"),
];

/// Of those that change something.
const OF_CHANGES: [(&str, &str); 1] = [("422", "The body has a field that is not known, or lacks one")];

/// Answers that have only the properties of their kind.
const OF_A_KIND: [&str; 5] = ["Added", "Applied", "Ended", "HistoryEntry", "Schedule"];

/// The document that programs get.
pub(super) fn finished(mut document: OpenApi, rows: &[Row]) -> Value {
    let token = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    document.components.get_or_insert_default().add_security_scheme("token", token);
    refusals(&mut document);
    roles(&mut document, rows);
    document.servers = Some(vec![Server::new(".")]);
    let mut document = serde_json::to_value(document).unwrap_or(Value::Null);
    for (name, schema) in document["components"]["schemas"].as_object_mut().into_iter().flatten() {
        // The body of a request takes no other properties, and may leave some out.
        if schema.get("additionalProperties").is_none() && !OF_A_KIND.contains(&name.as_str()) {
            require_nullable(schema);
        }
    }
    let secrets = [
        ("payload", "The payload"),
        ("kept_state", "The state that a run has kept, if one has,"),
        ("result", "The result, if the run that acked the job has left one,"),
    ];
    for (name, what) in secrets {
        let text = format!("{what} as the program shows it; only of one job, and where payloads are shown.");
        document["components"]["schemas"]["Job"]["properties"][name] = json!({ "type": "string", "description": text });
    }
    document
}

/// An answer has all of its properties; those without a value are `null`.
fn require_nullable(schema: &mut Value) {
    for part in schema.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten() {
        require_nullable(part);
    }
    let is_null = |schema: &Value| schema["type"] == "null";
    let allows_null = |schema: &Value| {
        let types = schema["type"].as_array();
        let parts = schema["oneOf"].as_array();
        types.is_some_and(|types| types.contains(&json!("null")))
            || parts.is_some_and(|parts| parts.iter().any(is_null))
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let nullable: Vec<_> = properties.filter(|(_, schema)| allows_null(schema)).map(|(name, _)| json!(name)).collect();
    if !nullable.is_empty() {
        let mut required = schema["required"].as_array().cloned().unwrap_or_default();
        required.extend(nullable);
        schema["required"] = required.into();
    }
}

/// Describes refusals wherever a route has not described them itself.
fn refusals(document: &mut OpenApi) {
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

/// Names the roles that a token needs for each route.
fn roles(document: &mut OpenApi, rows: &[Row]) {
    for row in rows {
        let Some(item) = document.paths.paths.get_mut(row.path) else { continue };
        let all: [(_, &mut Option<Operation>); 3] = [
            (MethodFilter::GET, &mut item.get),
            (MethodFilter::POST, &mut item.post),
            (MethodFilter::DELETE, &mut item.delete),
        ];
        let of_row = all.into_iter().filter(|(method, _)| *method == row.method).filter_map(|(_, item)| item.as_mut());
        for operation in of_row {
            let Needs::Roles(roles) = row.needs else { continue };
            let words = roles.iter().map(|role| Role::as_str(*role));
            operation.security = Some(vec![SecurityRequirement::new("token", words)]);
        }
    }
}

fn problem(text: &str) -> RefOr<Response> {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    ResponseBuilder::new().description(text).content("application/json", content).build().into()
}
