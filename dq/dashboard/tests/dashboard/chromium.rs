//! A Chromium without a window, driven by its driver.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

/// The driver; dropping it ends it and its browser.
pub(crate) struct Chromium {
    driver: Child,
    pub(crate) client: Client,
    base: String,
    /// Everything that it writes.
    folder: std::path::PathBuf,
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // The driver leaves its browser running when it is killed, so the whole group goes.
        if let Some(group) = i32::try_from(self.driver.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.driver.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Chromium {
    pub(crate) async fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("dq-chromium-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .env("TMPDIR", &folder)
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is installed: tests/run does that");
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let line = line.unwrap();
            let (_, port) = line.split_once("started successfully on port ")?;
            Some(port.trim_end_matches('.').to_owned())
        });
        let arguments = json!([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=1280,900",
            "--hide-scrollbars",
            "--force-color-profile=srgb",
            format!("--user-data-dir={}", folder.join("profile").display()),
        ]);
        let wanted = json!({ "goog:chromeOptions": { "args": arguments }, "goog:loggingPrefs": { "browser": "ALL" } });
        let Value::Object(wanted) = wanted else { unreachable!("it is an object") };
        let base = format!("http://127.0.0.1:{}", port.expect("the driver says its port"));
        let mut builder = ClientBuilder::new(HttpConnector::new());
        let client = builder.capabilities(wanted).connect(&base).await.unwrap();
        Self { driver, client, base, folder }
    }

    /// Sends a command that the client does not know.
    async fn command(&self, path: &str, body: Value) -> Value {
        let session = self.client.session_id().await.unwrap().unwrap();
        let request = axum::http::Request::post(format!("{}/session/{session}/{path}", self.base))
            .header("content-type", "application/json")
            .body(body.to_string())
            .unwrap();
        let plain =
            hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http::<String>();
        let answer = plain.request(request).await.unwrap();
        let bytes = http_body_util::BodyExt::collect(answer.into_body()).await.unwrap().to_bytes();
        serde_json::from_slice::<HashMap<String, Value>>(&bytes).unwrap().remove("value").unwrap()
    }

    /// What the console has said since the last call.
    pub(crate) async fn console(&self) -> Vec<String> {
        let log = self.command("se/log", json!({ "type": "browser" })).await;
        log.as_array().unwrap().iter().map(|line| format!("{} {}", line["level"], line["message"])).collect()
    }

    /// Light or dark, and how wide.
    pub(crate) async fn looks(&self, scheme: &str, width: u32, height: u32) {
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.command("goog/cdp/execute", json!({ "cmd": "Emulation.setEmulatedMedia", "params": media })).await;
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.command("goog/cdp/execute", json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": size })).await;
    }

    pub(crate) async fn run(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap()
    }

    pub(crate) async fn text(&self, css: &str) -> String {
        self.client.find(Locator::Css(css)).await.unwrap().text().await.unwrap()
    }

    pub(crate) async fn fill(&self, css: &str, text: &str) {
        self.client.find(Locator::Css(css)).await.unwrap().send_keys(text).await.unwrap();
    }

    pub(crate) async fn click(&self, css: &str) {
        self.client
            .find(Locator::Css(css))
            .await
            .unwrap_or_else(|error| panic!("{css}: {error}"))
            .click()
            .await
            .unwrap();
    }

    /// Follows the link with this text.
    pub(crate) async fn follow(&self, text: &str) {
        let link = self.client.find(Locator::LinkText(text)).await;
        link.unwrap_or_else(|error| panic!("{text}: {error}")).click().await.unwrap();
    }

    /// Waits until a script answers `true`.
    pub(crate) async fn until(&self, script: &str) {
        let mut left = 600;
        while self.client.execute(script, Vec::new()).await.ok() != Some(json!(true)) {
            left -= 1;
            if left == 0 {
                let page = self.run("return document.body.innerText").await;
                panic!("this does not become true: {script}; the console says {:?}: {page}", self.console().await);
            }
            // A page that goes to another one meanwhile ends the pause, as the script above, with an error.
            let _ = self.client.execute_async("setTimeout(arguments[0], 50)", Vec::new()).await;
        }
    }

    /// What the accessibility engine finds on the page.
    pub(crate) async fn faults(&self) -> Vec<String> {
        self.run(include_str!("../axe/axe.min.js")).await;
        let look = "const done = arguments[0]; axe.run(document, { resultTypes: ['violations'] }).then(
            (found) => done(found.violations.flatMap((fault) => fault.nodes.map((node) => fault.id + ': ' + node.html + ' ' + node.failureSummary))),
            (error) => done([String(error)]));";
        let found = self.client.execute_async(look, Vec::new()).await.unwrap();
        found.as_array().unwrap().iter().map(|fault| fault.as_str().unwrap().to_owned()).collect()
    }
}
