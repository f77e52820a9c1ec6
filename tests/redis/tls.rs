//! `rediss://`: which certificates it trusts and presents, and the errors if those do not suffice.

use std::path::PathBuf;
use std::process::Command;

use dq::store::redis::RedisStore;
use dq::store::{Signal, Store, StoreError};
use dq_tests::redis::{ClusterServers, Keyspace, RedisServer};

use super::topic::{Topic, interest, job};

/// A certificate authority made with the program `openssl` (3 or later). Dropping the value removes its files.
pub struct Authority(PathBuf);

impl Authority {
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("dq-tls-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let this = Self(folder);
        std::fs::write(this.file("config"), "[req]\ndistinguished_name = dn\n[dn]\n").unwrap();
        let subject = format!("/CN=authority of {name}");
        this.make("ca", &["-subj", &subject, "-addext", "basicConstraints=critical,CA:TRUE"]);
        this
    }

    pub fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Writes a certificate and its key to `NAME.crt` and `NAME.key` and returns both paths.
    fn make(&self, name: &str, rest: &[&str]) -> [String; 2] {
        let files = [self.file(&format!("{name}.crt")), self.file(&format!("{name}.key"))];
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
            .args(["-config", &self.file("config"), "-out", &files[0], "-keyout", &files[1]])
            .args(rest)
            .output()
            .expect("openssl is installed");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        files
    }

    /// Signs a certificate for `host`.
    fn sign(&self, name: &str, host: &str) -> [String; 2] {
        let kind = if host.parse::<std::net::IpAddr>().is_ok() { "IP" } else { "DNS" };
        let (subject, host) = (format!("/CN={name}"), format!("subjectAltName={kind}:{host}"));
        let [ca, key] = [self.file("ca.crt"), self.file("ca.key")];
        self.make(name, &["-subj", &subject, "-addext", &host, "-CA", &ca, "-CAkey", &key])
    }

    /// Starts a server with a certificate for `host`. It accepts TLS only, and requires client certificates if
    /// `client_certificate` is set.
    pub fn server(&self, host: &str, client_certificate: bool) -> RedisServer {
        let ([certificate, key], client_certificate) =
            (self.sign("server", host), if client_certificate { "yes" } else { "no" });
        let users = ["--user", "default", "off", "--user", "dq", "on", ">secret", "~*", "&*", "+@all"];
        let tls = ["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-ca-cert-file", &self.file("ca.crt")];
        RedisServer::start_with(&[&users[..], &tls, &["--tls-auth-clients", client_certificate]].concat())
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn url(server: &RedisServer, options: &str) -> String {
    format!("rediss://dq:secret@127.0.0.1:{}/1?{options}", server.port())
}

/// Returns the topic at this URL after adding a job. A connection that was not made in time says nothing about certificates,
/// so that is tried again a few times.
async fn added(url: &str) -> Result<Topic, StoreError> {
    for _ in 0..5 {
        let topic = Topic::on(url);
        match topic.try_add(vec![job("a")]).await {
            Ok(_) => return Ok(topic),
            Err(error) if error.is_outage() && error.nothing_done() => {}
            Err(error) => return Err(error),
        }
    }
    panic!("no connection was made in time");
}

async fn refused(url: &str) -> String {
    let error = added(url).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Denied { operation: "add", .. }), "{error:?}");
    assert!(error.nothing_done() && !error.is_outage());
    error.to_string()
}

#[tokio::test]
async fn a_server_with_a_certificate_of_the_named_ca_is_trusted() {
    let authority = Authority::new("trusted");
    let server = authority.server("127.0.0.1", false);
    let trusted = url(&server, &format!("ca={}", authority.file("ca.crt")));
    let topic = added(&trusted).await.unwrap();
    topic.store.open(&topic.key).await.unwrap();
    topic.reconcile().await;
    assert_eq!(topic.claims().await.len(), 1);
    let other = Topic::named(&trusted, "other");
    let mut signals = other.store.signals(&other.key, interest()).await.unwrap();
    other.add(vec![job("a")]).await;
    assert_eq!(signals.next().await, Some(Signal::Due(None)));
    let shown = topic.store.url();
    assert_eq!(shown, format!("rediss://***@127.0.0.1:{}/1", server.port()));
    let wrong = trusted.replace("secret", "guess");
    assert!(refused(&wrong).await.contains("WRONGPASS"));
}

#[tokio::test]
async fn a_shared_server_is_used_and_cleaned_up_over_tls() {
    let authority = Authority::new("corner");
    let server = authority.server("127.0.0.1", true);
    let [certificate, key] = authority.sign("client", "client.example");
    let url = url(&server, &format!("ca={}&cert={certificate}&key={key}", authority.file("ca.crt")));
    let keyspace = Keyspace::on_shared_server(url.clone());
    let mut connection = keyspace.connect();
    let clock = std::sync::Arc::new(dq::testing::ManualClock::at(1_000_000));
    let topic = Topic::of(keyspace.store_under(clock), "t");
    topic.add(vec![job("a")]).await;
    assert_eq!(topic.store.counts(&topic.key).await.unwrap().clock.as_millis(), 1_000);
    drop((topic, keyspace));
    assert_eq!(connection.command(&["DBSIZE"]), redis::Value::Int(0));
}

/// The certificate is for the name alone. A server that announces no endpoint has the host of the server that was asked.
#[tokio::test]
async fn the_servers_of_a_cluster_are_reached_over_tls_by_the_name_that_they_announce() {
    let authority = Authority::new("cluster");
    let ([certificate, key], ca) = (authority.sign("server", "localhost"), authority.file("ca.crt"));
    let tls = ["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
    for endpoint in ["hostname", "unknown-endpoint"] {
        let name = ["--cluster-announce-hostname", "localhost", "--cluster-preferred-endpoint-type", endpoint];
        let cluster = ClusterServers::start_over_tls(&[&tls[..], &name, &["--tls-auth-clients", "no"]].concat());
        let url = format!("{}?ca={ca}", cluster.tls_url());
        let mut used = [false; 3];
        for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            let topic = Topic::named(&url, name).opened().await;
            let mut signals = topic.store.signals(&topic.key, interest()).await.unwrap();
            topic.add(vec![job("a")]).await;
            assert_eq!(signals.next().await, Some(Signal::Due(None)));
            assert_eq!(topic.claims().await.len(), 1);
            used[cluster.owner(&format!("dq:{{shop:{name}}}:jobs"))] = true;
        }
        assert_eq!(used, [true; 3]);
        let topic = Topic::named(&url, "a");
        topic.add(vec![job("b")]).await;
        let moved = "dq:{shop:a}:jobs";
        cluster.move_slot(moved, (cluster.owner(moved) + 1) % 3);
        let error = topic.try_add(vec![job("c")]).await.unwrap_err();
        assert!(error.nothing_done() && error.is_outage(), "{error}");
        topic.add(vec![job("c")]).await;
    }
}

#[tokio::test]
async fn a_server_with_a_certificate_of_an_unknown_ca_is_rejected_with_a_fix() {
    let (authority, other) = (Authority::new("unknown"), Authority::new("other"));
    let server = authority.server("127.0.0.1", false);
    let advice = "(name the authority that signed the server's certificate: rediss://HOST/?ca=FILE)";
    for options in [String::new(), format!("ca={}", other.file("ca.crt"))] {
        let said = refused(&url(&server, &options)).await;
        assert!(said.contains("UnknownIssuer") && said.ends_with(advice), "{said}");
    }
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused() {
    let authority = Authority::new("host");
    let server = authority.server("elsewhere.example", false);
    let said = refused(&url(&server, &format!("ca={}", authority.file("ca.crt")))).await;
    assert!(said.ends_with("(write the host name in the URL that the server's certificate is for)"), "{said}");
}

#[tokio::test]
async fn a_server_that_requires_a_client_certificate_gets_one() {
    let authority = Authority::new("both");
    let server = authority.server("127.0.0.1", true);
    let [certificate, key] = authority.sign("client", "client.example");
    let ca = format!("ca={}", authority.file("ca.crt"));
    added(&url(&server, &format!("{ca}&cert={certificate}&key={key}"))).await.unwrap();
    let said = refused(&url(&server, &ca)).await;
    assert!(said.ends_with("(the server wants a client certificate: rediss://HOST/?cert=FILE&key=FILE)"), "{said}");
    let half = RedisStore::new(&url(&server, &format!("{ca}&cert={certificate}"))).unwrap_err();
    assert!(half.to_string().contains("`cert` and `key` need each other"), "{half}");
}

#[tokio::test]
async fn an_error_about_the_wrong_port_suggests_the_fix() {
    let (authority, plain) = (Authority::new("port"), RedisServer::start());
    let said = async |url: String| Topic::on(&url).try_add(vec![job("a")]).await.unwrap_err().to_string();
    let over_tls = said(format!("rediss://127.0.0.1:{}/", plain.port())).await;
    assert!(over_tls.ends_with("(is that the server's TLS port?)"), "{over_tls}");
    let without = said(authority.server("127.0.0.1", false).url()).await;
    assert!(without.ends_with("(if that port expects TLS, write rediss:// in the URL)"), "{without}");
}
