//! The certificates of a `rediss://` URL: `?ca=FILE&cert=FILE&key=FILE`, each a PEM file.
//!
//! `ca` is the authority to trust; without it dq trusts those of the system. `cert` and `key` are the client
//! certificate. dq always checks the server's certificate, also against the host of the URL, and nothing turns that
//! off. Files are read when the store is made, so a missing file is an error at start.

use std::io;
use std::sync::{Arc, OnceLock};

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The known options.
const OPTIONS: [&str; 3] = ["ca", "cert", "key"];

/// The certificates to trust and to present.
#[derive(Clone)]
pub(super) struct Certificates {
    /// The PEM files of the options, in their order.
    files: [Option<Vec<u8>>; 3],
    /// What they say to the TLS library, once the first connection has asked.
    config: OnceLock<Arc<ClientConfig>>,
}

/// Shows no key.
impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl Certificates {
    /// Reads the files that `options` names. The error says which option is wrong, and why.
    pub(super) fn read(options: &str) -> Result<Self, String> {
        let mut files: [Option<Vec<u8>>; 3] = [None, None, None];
        for pair in options.split('&').filter(|pair| !pair.is_empty()) {
            let (name, path) = pair.split_once('=').unwrap_or((pair, ""));
            let Some(place) = OPTIONS.iter().position(|known| *known == name) else {
                // Not quoted: it may be the end of a password with a `?` whose `@HOST` is missing.
                return Err("one of them is not an option".to_owned());
            };
            // A key itself in place of its file must not be shown.
            let file = if name == "key" { "its file".to_owned() } else { format!("`{path}`") };
            let text = std::fs::read(path).map_err(|error| format!("`{name}`: {file} cannot be read: {error}"))?;
            if !text.windows(11).any(|window| window == b"-----BEGIN ") {
                return Err(format!("`{name}`: {file} is not a PEM file"));
            }
            files[place] = Some(text);
        }
        let [ca, cert, key] = &files;
        if cert.is_some() != key.is_some() {
            return Err("`cert` and `key` need each other".into());
        }
        if let Some(ca) = ca {
            authorities(ca).map_err(|error| format!("`ca`: {error}"))?;
        }
        if let (Some(cert), Some(key)) = (cert, key) {
            identity(cert, key).map_err(|error| format!("`cert` and `key`: {error}"))?;
        }
        Ok(Self { files, config: OnceLock::new() })
    }

    /// Begins TLS over `stream`, with the server at `host`.
    pub(super) async fn begin<S>(&self, host: &str, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let server = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        TlsConnector::from(self.config()?).connect(server, stream).await
    }

    fn config(&self) -> io::Result<Arc<ClientConfig>> {
        if let Some(config) = self.config.get() {
            return Ok(Arc::clone(config));
        }
        let [ca, cert, key] = &self.files;
        let roots = ca.as_ref().map_or_else(system_authorities, |ca| authorities(ca))?;
        // That of the program, if it has chosen one.
        let provider = CryptoProvider::get_default().cloned().unwrap_or_else(|| Arc::new(ring::default_provider()));
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(io::Error::other)?.with_root_certificates(roots);
        let config = match cert.as_ref().zip(key.as_ref()) {
            Some((cert, key)) => {
                let (chain, key) = identity(cert, key)?;
                builder.with_client_auth_cert(chain, key).map_err(io::Error::other)?
            }
            None => builder.with_no_client_auth(),
        };
        Ok(Arc::clone(self.config.get_or_init(|| Arc::new(config))))
    }
}

fn authorities(pem: &[u8]) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.map_err(io::Error::other)?).map_err(io::Error::other)?;
    }
    Ok(roots)
}

/// The authorities that the system trusts. One that cannot be read, or that rustls does not understand, is left out.
fn system_authorities() -> io::Result<RootCertStore> {
    let mut loaded = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(loaded.certs);
    match loaded.errors.pop().filter(|_| roots.is_empty()) {
        Some(error) => Err(io::Error::other(error)),
        None => Ok(roots),
    }
}

/// A client certificate with its chain, and its key.
fn identity(cert: &[u8], key: &[u8]) -> io::Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let chain = CertificateDer::pem_slice_iter(cert).collect::<Result<_, _>>().map_err(io::Error::other)?;
    Ok((chain, PrivateKeyDer::from_pem_slice(key).map_err(io::Error::other)?))
}
