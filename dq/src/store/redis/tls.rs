//! Which certificates a `rediss://` URL trusts and shows: `?ca=FILE&cert=FILE&key=FILE`, each a file in PEM.
//!
//! Without `ca` it is the certificates of the system. A certificate is always checked, against the host of the URL too:
//! there is no way to leave that out. Files are read when the store is made, so that a missing one is a start-up problem.

use redis::{Client, ClientTlsConfig, ConnectionInfo, TlsCertificates};

/// The options there are.
const OPTIONS: [&str; 3] = ["ca", "cert", "key"];

/// Puts the certificates that `options` names into the connection's settings, or says what is wrong with them.
pub(super) fn with_certificates(info: ConnectionInfo, options: &str) -> Result<ConnectionInfo, String> {
    let mut files: [Option<Vec<u8>>; 3] = [None, None, None];
    for pair in options.split('&').filter(|pair| !pair.is_empty()) {
        let (name, path) = pair.split_once('=').unwrap_or((pair, ""));
        let Some(place) = OPTIONS.iter().position(|known| *known == name) else {
            return Err(format!("there is no option `{}`", name.escape_debug()));
        };
        let text = std::fs::read(path).map_err(|error| format!("`{name}`: `{path}` cannot be read: {error}"))?;
        if !text.windows(11).any(|window| window == b"-----BEGIN ") {
            return Err(format!("`{name}`: `{path}` is no file in PEM"));
        }
        files[place] = Some(text);
    }
    let [root_cert, cert, key] = files;
    let client_tls = match (cert, key) {
        (Some(client_cert), Some(client_key)) => Some(ClientTlsConfig { client_cert, client_key }),
        (None, None) => None,
        _ => return Err("`cert` and `key` come together".into()),
    };
    if root_cert.is_none() && client_tls.is_none() {
        return Ok(info);
    }
    let client = Client::build_with_tls(info, TlsCertificates { client_tls, root_cert });
    Ok(client.map_err(|error| error.to_string())?.get_connection_info().clone())
}
