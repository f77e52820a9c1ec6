//! Opens an app as an administrator: no listener, no node.

use std::sync::Arc;
use std::time::Duration;

use dq::Provider;
use dq::config::NodeSettings;
use dq::environment::{Environment, Seeded};
use dq::job::AppName;

use crate::ask::open_to_look;
use crate::failure::Failure;
use crate::files::must_exist;
use crate::frame::Common;

/// Opens the app that the command line names. It fails at once if the store does not answer; later calls wait for `--wait`.
///
/// # Errors
/// [`Failure`]: no store or app is named, the URL is wrong, the store cannot be reached, or another program holds its directory.
pub async fn administrator(common: &Common) -> Result<Provider, Failure> {
    let (url, app) = (common.store()?, common.app()?);
    administrator_of(&url, app, common.wait()).await
}

/// Opens an app of the store behind a URL. A call waits for the store at most `wait`.
///
/// # Errors
/// As [`administrator`].
pub async fn administrator_of(url: &str, app: AppName, wait: Duration) -> Result<Provider, Failure> {
    must_exist(url)?;
    let store = open_to_look(url).await?;
    let environment = Environment::on_this_runtime(Arc::new(Seeded::by_system()));
    let mut settings = NodeSettings::default();
    settings.call_deadline = wait;
    settings.call_timeout = settings.call_timeout.min(wait);
    Ok(Provider::root(app, store, environment, settings))
}
