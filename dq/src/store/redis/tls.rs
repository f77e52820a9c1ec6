//! The certificates of a `rediss://` URL: `?ca=FILE&cert=FILE&key=FILE`, each a PEM file.
//!
//! `ca` is the authority to trust; without it dq trusts those of the system. `cert` and `key` are the client
//! certificate. dq always checks the server's certificate, also against the host of the URL, and nothing turns that
//! off. Files are read when the store is made, so a missing file is an error at start.

use redis::{Client, ClientTlsConfig, ConnectionInfo, TlsCertificates};

/// The known options.
const OPTIONS: [&str; 3] = ["ca", "cert", "key"];

/// Reads the files that `options` names into the settings of the connection. The error says which option is wrong, and
/// why.
pub(super) fn with_certificates(info: ConnectionInfo, options: &str) -> Result<ConnectionInfo, String> {
    let mut files: [Option<Vec<u8>>; 3] = [None, None, None];
    for pair in options.split('&').filter(|pair| !pair.is_empty()) {
        let (name, path) = pair.split_once('=').unwrap_or((pair, ""));
        let Some(place) = OPTIONS.iter().position(|known| *known == name) else {
            return Err(format!("`{}` is not an option", name.escape_debug()));
        };
        let text = std::fs::read(path).map_err(|error| format!("`{name}`: `{path}` cannot be read: {error}"))?;
        if !text.windows(11).any(|window| window == b"-----BEGIN ") {
            return Err(format!("`{name}`: `{path}` is not a PEM file"));
        }
        files[place] = Some(text);
    }
    let [root_cert, cert, key] = files;
    let client_tls = match (cert, key) {
        (Some(client_cert), Some(client_key)) => Some(ClientTlsConfig { client_cert, client_key }),
        (None, None) => None,
        _ => return Err("`cert` and `key` need each other".into()),
    };
    if root_cert.is_none() && client_tls.is_none() {
        return Ok(info);
    }
    let client = Client::build_with_tls(info, TlsCertificates { client_tls, root_cert });
    Ok(client.map_err(|error| error.to_string())?.get_connection_info().clone())
}
