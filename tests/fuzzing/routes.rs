//! The routes of the dashboard: the pages as they are written here, and the API as it describes itself.

use std::sync::OnceLock;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request};
use dq_dashboard::Role;
use serde_json::Value;

use crate::draw::Draw;
use crate::grammar;
use crate::queries::{LOOKS, encoded, text, topic};

/// The routes of the pages, and what each needs. A test compares them with the table of the router.
pub const PAGES: [(&str, &str, &str); 21] = [
    ("GET", "/", "LOOK"),
    ("GET", "/topic", "LOOK"),
    ("GET", "/jobs", "LOOK"),
    ("GET", "/job", "LOOK"),
    ("GET", "/dead", "LOOK"),
    ("GET", "/unacked", "LOOK"),
    ("GET", "/nodes", "LOOK"),
    ("GET", "/doctor", "LOOK"),
    ("GET", "/schedules", "LOOK"),
    ("GET", "/sets", "LOOK"),
    ("GET", "/set", "LOOK"),
    ("GET", "/settings", "LOOK"),
    ("GET", "/live/{page}", "LOOK"),
    ("GET", "/confirm", "OPERATE"),
    ("POST", "/act", "OPERATE"),
    ("POST", "/logout", "USER"),
    ("GET", "/login", "Needs::Nothing"),
    ("POST", "/login", "Needs::Nothing"),
    ("GET", "/assets/{name}", "Needs::Nothing"),
    ("GET", "/healthz", "Needs::Nothing"),
    ("GET", "/readyz", "Needs::Nothing"),
];

/// What stands in the braces of a path.
pub fn filled(draw: &Draw, path: &str) -> String {
    let id = if draw.one_in(2) { "kept".to_owned() } else { encoded(&grammar::id(draw)) };
    let path = path.replace("{topic}", &encoded(&topic(draw))).replace("{id}", &id);
    path.replace("{page}", draw.pick(&["topic", "jobs", "", "nodes", "?"]))
        .replace("{name}", draw.pick(&["dq.css", "x"]))
}

/// The roles that a route of the table needs; `None`: it answers visitors without a login.
pub fn roles(needs: &str) -> Option<&'static [Role]> {
    match needs {
        "USER" => Some(&[]),
        "LOOK" => Some(&[Role::Look]),
        "OPERATE" => Some(&[Role::Operate]),
        "ADD" => Some(&[Role::Add]),
        "ADD_AND_OPERATE" => Some(&[Role::Add, Role::Operate]),
        _ => None,
    }
}

/// A route of the API, as the API describes it: the description is made from the table of the router.
#[derive(Debug)]
pub struct Route {
    pub method: Method,
    /// The path below `/api/v1`.
    pub path: String,
    pub roles: Vec<Role>,
    pub parameters: Vec<String>,
    /// The fields of its body.
    pub body: Vec<String>,
    /// The fields of these.
    pub inner: Vec<String>,
}

static ROUTES: OnceLock<Vec<Route>> = OnceLock::new();

impl Route {
    fn all(document: &Value) -> Vec<Self> {
        let paths = document["paths"].as_object().into_iter().flatten();
        let routes = paths.flat_map(|(path, methods)| {
            let methods = methods.as_object().into_iter().flatten();
            methods.map(move |(method, route)| {
                let parameters = route["parameters"].as_array().into_iter().flatten();
                let parameters = parameters.filter(|is| is["in"] == "query").filter_map(|is| is["name"].as_str());
                let roles = route["security"][0]["token"].as_array().into_iter().flatten();
                let (body, inner) =
                    properties(document, &route["requestBody"]["content"]["application/json"]["schema"]);
                Self {
                    method: method.to_uppercase().parse().expect("it is a method"),
                    path: path.clone(),
                    roles: roles.map(|word| word.as_str().and_then(Role::of_word).expect("it is a role")).collect(),
                    parameters: parameters.map(str::to_owned).collect(),
                    body,
                    inner,
                }
            })
        });
        // The description does not describe itself.
        let (method, path, roles) = (Method::GET, "/openapi.json".to_owned(), vec![Role::Look]);
        let itself = Self { method, path, roles, parameters: Vec::new(), body: Vec::new(), inner: Vec::new() };
        routes.chain([itself]).collect()
    }

    /// Reads what a dashboard describes.
    pub async fn ask(router: &Router) -> &'static [Self] {
        if ROUTES.get().is_none() {
            let request = Request::get("/api/v1/openapi.json").header("host", "localhost");
            let request = request.header("authorization", format!("Bearer {LOOKS}")).body(Body::empty());
            let text = text(router, request.expect("it is a request")).await.1;
            // Another run of this process may have been first.
            let _ = ROUTES.set(Self::all(&serde_json::from_str(&text).expect("it is a document")));
        }
        ROUTES.get().expect("it is set")
    }
}

/// The names of the fields of a schema, and of those in them.
fn properties(document: &Value, schema: &Value) -> (Vec<String>, Vec<String>) {
    let schema = schema["oneOf"].as_array().and_then(|parts| parts.last()).unwrap_or(schema);
    let name = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next());
    let schema = name.map_or(schema, |name| &document["components"]["schemas"][name]);
    let (mut names, mut inner) = (Vec::new(), Vec::new());
    for (name, of) in schema["properties"].as_object().into_iter().flatten() {
        let (fields, more) = properties(document, of);
        names.push(name.clone());
        inner.extend(fields.into_iter().chain(more));
    }
    (names, inner)
}

#[cfg(test)]
pub mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use dq::environment::TokioClock;
    use dq::store::memory::MemoryStore;

    use super::*;
    use crate::draw::NOW;
    use crate::node::{Node, paused};
    use crate::queries::router;

    const PAGES_OF_ROUTER: &str = include_str!("../../dq/dashboard/src/routes.rs");
    const API: &str = include_str!("../../dq/dashboard/src/api/mod.rs");

    pub fn described() -> &'static [Route] {
        paused(async {
            let store = Arc::new(MemoryStore::new(Arc::new(TokioClock::at(NOW * 1_000))));
            let node = Node::start(store).await;
            Route::ask(&router(node.dq.provider().clone())).await
        })
    }

    /// The rows of calls of `row` in a source: method, path and needs.
    fn rows(source: &str) -> BTreeSet<(&str, &str, &str)> {
        let calls = source.split(".row(").skip(1).filter(|call| call.contains(", \"/"));
        let words = calls.map(|call| call.splitn(4, ',').map(|word| word.trim().trim_matches('"')).collect::<Vec<_>>());
        words.map(|words| (words[0].trim_start_matches("MethodFilter::"), words[1], words[2])).collect()
    }

    #[test]
    fn each_route_of_the_router_is_asked_and_each_of_its_roles_known() {
        assert_eq!(rows(PAGES_OF_ROUTER), PAGES.into_iter().collect());
        let mut api = rows(API);
        let (_, table) = API.split_once("\nroutes! {").expect("it is there");
        for line in table.split_once("\n}").expect("it ends").0.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (path, methods) = line[1..].split_once('"').expect("it is a path");
            for of in methods.split(',') {
                let mut words = of.split_whitespace();
                let (method, needs) = (words.next().expect("it is there"), words.next().expect("it is there"));
                api.insert((method, path, needs));
            }
        }
        let described = described();
        let generated = described.iter().map(|route| (route.method.as_str(), route.path.as_str(), &route.roles[..]));
        let served = api.iter().map(|(method, path, needs)| (*method, *path, roles(needs).expect("it has roles")));
        let sorted = |mut all: Vec<_>| {
            all.sort_unstable_by_key(|(method, path, _)| (*path, *method));
            all
        };
        assert_eq!(sorted(generated.collect::<Vec<(&str, &str, &[Role])>>()), sorted(served.collect()));
        let draw = Draw::new(1);
        let paths = PAGES.iter().map(|page| page.1).chain(described.iter().map(|route| &route.path[..]));
        for path in paths {
            assert!(!filled(&draw, path).contains('{'), "the grammar of requests has nothing to fill in {path}");
        }
    }
}
