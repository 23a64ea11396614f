//! A real browser.

use std::future::Future;
use std::time::{Duration, Instant};

use batch_test_servers::BrowserDriver;
use thirtyfour::prelude::*;
use thirtyfour::{ChromeCapabilities, ChromiumLikeCapabilities};

/// Longer than anything takes that has to happen.
const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);

/// A browser with a page of the console.
pub(crate) struct Browser {
    driver: WebDriver,
    url: String,
}

/// Does something in a browser, with or without JavaScript.
pub(crate) fn browse<F: Future<Output = ()>>(url: &str, has_scripts: bool, what: impl FnOnce(Browser) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let driver = WebDriver::new(BrowserDriver::shared().url(), capabilities(has_scripts)).await;
        let driver = driver.expect("a browser");
        let browser = Browser {
            driver: driver.clone(),
            url: url.to_owned(),
        };
        what(browser).await;
        driver.quit().await.unwrap();
    });
}

fn capabilities(has_scripts: bool) -> ChromeCapabilities {
    let mut capabilities = DesiredCapabilities::chrome();
    for argument in [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1280,1400",
    ] {
        capabilities.add_arg(argument).unwrap();
    }
    if !has_scripts {
        let off = serde_json::json!({ "profile.managed_default_content_settings.javascript": 2 });
        capabilities.add_experimental_option("prefs", off).unwrap();
    }
    capabilities
}

impl Browser {
    pub(crate) async fn open(&self, path: &str) {
        self.driver.goto(format!("{}{path}", self.url)).await.unwrap();
    }

    /// Opens a page in another tab, which hides the others.
    pub(crate) async fn open_tab(&self, path: &str) {
        let tab = self.driver.new_tab().await.unwrap();
        self.driver.switch_to_window(tab).await.unwrap();
        self.open(path).await;
    }

    /// Shows the tab that was opened first.
    pub(crate) async fn first_tab(&self) {
        let tabs = self.driver.windows().await.unwrap();
        self.driver.switch_to_window(tabs[0].clone()).await.unwrap();
    }

    /// Returns the path of the page.
    pub(crate) async fn path(&self) -> String {
        let url = self.driver.current_url().await.unwrap();
        url.path().to_owned()
    }

    /// Clicks on the link or button with a text, and waits for the page that it leads to.
    pub(crate) async fn click(&self, text: &str) {
        let any = format!("//a[normalize-space()='{text}'] | //button[normalize-space()='{text}']");
        let page = self.driver.find(By::Tag("html")).await.unwrap();
        loop {
            let found = self.driver.find(By::XPath(any.clone())).await;
            let found = found.unwrap_or_else(|error| panic!("no `{text}`: {error}"));
            // The page may have refreshed the part meanwhile.
            if found.click().await.is_ok() {
                break;
            }
        }
        let begin = Instant::now();
        // The element of a page that was left is stale.
        while page.tag_name().await.is_ok() {
            assert!(begin.elapsed() < PATIENCE, "`{text}` leads nowhere");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Enters a text into a field.
    pub(crate) async fn enter(&self, name: &str, text: &str) {
        let field = self
            .driver
            .find(By::Css(format!("[name='{name}']")))
            .await
            .unwrap();
        field.clear().await.unwrap();
        field.send_keys(text).await.unwrap();
    }

    pub(crate) async fn press(&self, keys: impl Into<TypingData>) {
        let focused = self.driver.active_element().await.unwrap();
        focused.send_keys(keys).await.unwrap();
    }

    /// Chooses an option of a list.
    pub(crate) async fn choose(&self, name: &str, option: &str) {
        let option = format!("//select[@name='{name}']/option[normalize-space()='{option}']");
        self.driver
            .find(By::XPath(option))
            .await
            .unwrap()
            .click()
            .await
            .unwrap();
    }

    /// Returns the visible text of the part of the page with a selector; empty if the page has no such part.
    pub(crate) async fn text(&self, selector: &str) -> String {
        loop {
            let Ok(found) = self.driver.find(By::Css(selector)).await else {
                return String::new();
            };
            // The page may have refreshed the part meanwhile.
            if let Ok(text) = found.text().await {
                return text;
            }
        }
    }

    pub(crate) async fn count(&self, selector: &str) -> usize {
        self.driver.find_all(By::Css(selector)).await.unwrap().len()
    }

    /// Waits until a part of the page has a text, without loading the page again.
    pub(crate) async fn until(&self, selector: &str, text: &str) {
        let begin = Instant::now();
        while !self.text(selector).await.contains(text) {
            assert!(
                begin.elapsed() < PATIENCE,
                "no `{text}` in {selector}: {}",
                self.text("body").await
            );
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until a script returns true.
    pub(crate) async fn until_script(&self, script: &str) {
        let begin = Instant::now();
        while self.script(script).await != true {
            assert!(begin.elapsed() < PATIENCE, "not true: {script}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Runs a script, and returns its value.
    pub(crate) async fn script(&self, script: &str) -> serde_json::Value {
        let returned = self.driver.execute(script, Vec::new()).await.unwrap();
        returned.json().clone()
    }

    /// Sets the size of the window.
    pub(crate) async fn resize(&self, width: u32, height: u32) {
        self.driver.set_window_rect(0, 0, width, height).await.unwrap();
    }

    /// Emulates a color scheme: `light` or `dark`.
    pub(crate) async fn color_scheme(&self, scheme: &str) {
        let media = serde_json::json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        let emulated = self
            .driver
            .cdp()
            .send_raw("Emulation.setEmulatedMedia", media)
            .await;
        emulated.unwrap();
    }
}
