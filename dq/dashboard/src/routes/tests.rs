//! Every route, method and set of roles, from the router itself.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST};
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use dq::Provider;
use serde_json::Value;
use tower::ServiceExt;

use super::*;
use crate::access::Access;
use crate::dashboard::Dashboard;
use crate::guard::{ADD, ADD_AND_OPERATE};
use crate::user::{Role, User};

const METHODS: [&str; 10] = ["GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"];

/// All sets of roles.
const SETS: [&[Role]; 8] = [
    &[],
    &[Role::Look],
    &[Role::Operate],
    &[Role::Add],
    &[Role::Look, Role::Add],
    &[Role::Operate, Role::Add],
    &[Role::Look, Role::Operate],
    &[Role::Look, Role::Operate, Role::Add],
];

/// What each path and method needs, as the tables have it.
type Rows = BTreeMap<(String, &'static str), Needs>;

fn token(set: usize) -> String {
    format!("a-token-of-the-set-of-roles-{set}")
}

async fn app() -> Shared {
    let provider = Provider::connect("shop", "memory:dashboard-routes").await.unwrap();
    let user = |set: usize| User::new(format!("set {set}")).with_roles(SETS[set].iter().copied());
    let access = (1..SETS.len()).fold(Access::token(user(0), token(0)), |all, set| all.or_token(user(set), token(set)));
    Dashboard::new(provider, access).into_app().unwrap()
}

fn rows(app: &Shared) -> Rows {
    let mut all = Rows::new();
    for (base, table) in [("", pages(app)), ("", open(app)), ("/api/v1", api::table(app))] {
        for row in table.rows() {
            let methods: &[&str] = match row.method {
                MethodFilter::GET => &["GET", "HEAD"],
                MethodFilter::POST => &["POST"],
                MethodFilter::DELETE => &["DELETE"],
                other => panic!("the test does not know {other:?}"),
            };
            for method in methods {
                let known = all.insert((format!("{base}{}", row.path), *method), row.needs);
                assert!(known.is_none(), "{method} {} has two rows", row.path);
            }
        }
    }
    all
}

/// What the paths of a router end with that have no route.
const FALLBACK: &str = "/{*__private__axum_fallback}";

/// The paths that a router serves, as it says itself, and those below which a fallback answers the rest.
fn paths(router: &Router) -> (BTreeSet<String>, BTreeSet<String>) {
    let text = format!("{router:?}");
    let all = text.split('"').filter(|part| part.starts_with('/')).map(str::to_owned);
    let (fallbacks, mut paths): (BTreeSet<_>, BTreeSet<_>) = all.partition(|path| path.ends_with(FALLBACK));
    let below: BTreeSet<_> = fallbacks.iter().map(|path| path.replace(FALLBACK, "")).collect();
    paths.retain(|path| !below.contains(path));
    (paths, below)
}

/// What a set of roles, or a visitor without a login, is answered.
async fn ask(app: &Shared, router: &Router, method: &str, path: &str, who: Option<usize>) -> Response {
    let filled = path.replace("{topic}", "mail").replace("{id}", "a").replace("{name}", "dq.css");
    let filled = filled.replace("{page}", "topic?topic=mail");
    let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(filled);
    request = request.header(HOST, "localhost");
    request = match who {
        Some(set) if path.starts_with("/api/") => request.header(AUTHORIZATION, format!("Bearer {}", token(set))),
        Some(set) => {
            let session = app.sessions.begin(&app.access.0, set, "").unwrap();
            request.header(COOKIE, format!("{}={}", crate::session::COOKIE_NAME, session.cookie()))
        }
        None => request,
    };
    // Each path comes from an address of its own, whose rate has room for all methods.
    let number = path.bytes().fold(0_u16, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let address = SocketAddr::from(([10, 0, (number >> 8) as u8, number as u8], 1));
    let kind = if path.starts_with("/api/") { "application/json" } else { "application/x-www-form-urlencoded" };
    let request = request.header(CONTENT_TYPE, kind).extension(ConnectInfo(address)).body(Body::empty()).unwrap();
    router.clone().oneshot(request).await.unwrap()
}

/// Whether an answer says that the visitor may not, or that there is no such method.
async fn is_stopped(method: &str, answer: Response) -> bool {
    match answer.status() {
        StatusCode::UNAUTHORIZED | StatusCode::SEE_OTHER | StatusCode::METHOD_NOT_ALLOWED => true,
        StatusCode::FORBIDDEN if method == "HEAD" => true,
        // A form without its token is refused after the role.
        StatusCode::FORBIDDEN => {
            let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
            String::from_utf8_lossy(&body).contains("you lack the role")
        }
        StatusCode::TOO_MANY_REQUESTS => panic!("the rate hides the roles"),
        _ => false,
    }
}

#[tokio::test]
async fn each_route_of_the_router_has_a_row() {
    let app = app().await;
    let (router, rows) = (router(&app), rows(&app));
    let of_rows: BTreeSet<_> = rows.keys().map(|(path, _)| path.clone()).collect();
    let (paths, below) = paths(&router);
    assert_eq!(paths, of_rows);
    let all = SETS.len() - 1;
    for path in below.iter().flat_map(|base| [format!("{base}/"), format!("{base}/nothing")]).filter(|path| path != "/")
    {
        let answer = ask(&app, &router, "GET", &path, Some(all)).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
    }
    for path in &of_rows {
        let answer = ask(&app, &router, "BREW", path, Some(all)).await;
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{path}");
        let served: BTreeSet<_> = answer.headers()[ALLOW].to_str().unwrap().split(',').collect();
        let of_rows: BTreeSet<_> = rows.keys().filter(|(of, _)| of == path).map(|(_, method)| *method).collect();
        assert_eq!(served, of_rows, "{path}");
    }
    let answer = ask(&app, &router, "GET", "/api/v1/openapi.json", Some(all)).await;
    let document: Value = serde_json::from_slice(&to_bytes(answer.into_body(), 1 << 20).await.unwrap()).unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"), "{document}");
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    let mut described = BTreeSet::from([("/api/v1/openapi.json".to_owned(), "GET".to_owned())]); // all but itself
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(!operation["summary"].as_str().unwrap_or_default().is_empty(), "{method} {path} has no summary");
            described.insert((format!("/api/v1{path}"), method.to_uppercase()));
        }
    }
    let of_api = rows.keys().filter(|(path, method)| path.starts_with("/api/") && *method != "HEAD");
    let of_api: BTreeSet<_> = of_api.map(|(path, method)| (path.clone(), (*method).to_owned())).collect();
    assert_eq!(described, of_api);
}

#[tokio::test]
async fn each_route_lets_in_who_has_its_roles_by_each_method_and_no_one_else() {
    let app = app().await;
    let (router, rows) = (router(&app), rows(&app));
    for path in paths(&router).0 {
        for method in METHODS {
            let needs = rows.get(&(path.clone(), method)).copied();
            for who in std::iter::once(None).chain((0..SETS.len()).map(Some)) {
                let answer = ask(&app, &router, method, &path, who).await;
                let may = match (needs, who) {
                    (None, _) => false,
                    (Some(Needs::Nothing), _) => true,
                    (Some(Needs::Roles(_)), None) => false,
                    (Some(Needs::Roles(roles)), Some(set)) => {
                        let has = |role: &Role| SETS[set].contains(role);
                        roles.iter().all(|role| has(role) || *role == Role::Look && has(&Role::Operate))
                    }
                };
                let seen = format!("{method} {path} by {:?}: {}", who.map(|set| SETS[set]), answer.status());
                assert_eq!(!is_stopped(method, answer).await, may, "{seen}");
            }
        }
    }
}

/// What holds for the tables as a whole, so a row with too small a role is found.
#[tokio::test]
async fn reads_need_look_adds_add_and_all_else_operate() {
    let app = app().await;
    for ((path, method), needs) in rows(&app) {
        let wanted = match (path.as_str(), method) {
            ("/login" | "/assets/{name}" | "/healthz" | "/readyz", _) => Needs::Nothing,
            ("/logout", _) => USER,
            ("/api/v1/topics/{topic}/jobs", "POST") => ADD,
            ("/api/v1/topics/{topic}/sets/{id}/close", _) => ADD_AND_OPERATE,
            ("/confirm", _) => OPERATE,
            (_, "GET" | "HEAD") => LOOK,
            _ => OPERATE,
        };
        assert_eq!(needs, wanted, "{method} {path}");
    }
}
