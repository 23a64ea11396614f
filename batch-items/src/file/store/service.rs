//! The services that have objects, and their configuration.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::multipart::MultipartStore;
use object_store::{ClientConfigKey, ClientOptions, ObjectStore, RetryConfig};
use url::Url;

use super::super::url::unsupported;
use super::error;
use crate::dataset::{DatasetName, of_url};

/// A bucket, a container, or an HTTP resource.
pub(super) struct Service {
    pub(super) kind: Kind,
    /// The name of the bucket or container, or the host.
    pub(super) bucket: String,
    /// True if credentials are configured; otherwise the credentials of the machine are tried.
    pub(super) has_credentials: bool,
    pub(super) objects: Arc<dyn ObjectStore>,
    /// The storage account of a container in Azure, if it is configured.
    pub(super) account: Option<String>,
    /// `None` if objects cannot be written.
    pub(super) multipart: Option<Arc<dyn MultipartStore>>,
}

/// The kinds of services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    S3,
    Google,
    Azure,
    Http,
}

/// The number of times that a request is repeated, unless the option `retries` says otherwise.
const RETRIES: usize = 6;

impl Service {
    /// Connects to the service of a URL, and returns the key in it. Sends no request yet.
    pub(super) fn connect(text: &str, options: &[String]) -> io::Result<(Self, String)> {
        let (scheme, rest) = super::super::url::split(text).unwrap_or(("", text));
        let kind = match scheme {
            "s3" => Kind::S3,
            "gs" => Kind::Google,
            "az" => Kind::Azure,
            "http" | "https" => Kind::Http,
            _ => return Err(io::Error::new(io::ErrorKind::Unsupported, unsupported(scheme))),
        };
        let options = Options::parse(options)?;
        if kind == Kind::Http {
            return Ok((http(text, options)?, String::new()));
        }
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.contains('@') || rest.contains('?') {
            return Err(error::invalid(format!(
                "`{scheme}://` URLs have no user and no query; set credentials in the environment or in `store.options`"
            )));
        }
        if bucket.is_empty() || key.is_empty() {
            return Err(error::invalid(format!(
                "expected a URL such as `{scheme}://bucket/key`"
            )));
        }
        let built = match kind {
            Kind::Google => google(bucket, options),
            Kind::Azure => azure(bucket, options),
            _ => s3(bucket, options),
        };
        built.map(|service| (service, key.to_owned()))
    }

    fn new(
        kind: Kind,
        bucket: &str,
        has_credentials: bool,
        store: impl ObjectStore + MultipartStore,
    ) -> Self {
        let store = Arc::new(store);
        Self {
            kind,
            bucket: bucket.to_owned(),
            has_credentials,
            objects: store.clone(),
            account: None,
            multipart: Some(store),
        }
    }

    /// Returns the dataset of a URL of this service. The naming conventions have `wasbs` for containers of Azure.
    pub(super) fn dataset(&self, url: &str) -> DatasetName {
        let (namespace, name) = of_url(url);
        match &self.account {
            Some(account) => {
                let container = &self.bucket;
                (
                    format!("wasbs://{container}@{account}.dfs.core.windows.net"),
                    name,
                )
            }
            None => (namespace, name),
        }
    }
}

impl fmt::Debug for Service {
    /// Credentials are not shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.kind, self.bucket)
    }
}

/// The property `store.options`.
struct Options {
    retry: RetryConfig,
    pairs: Vec<(String, String)>,
}

impl Options {
    fn parse(options: &[String]) -> io::Result<Self> {
        let mut retry = RetryConfig {
            max_retries: RETRIES,
            retry_timeout: Duration::from_secs(60),
            ..RetryConfig::default()
        };
        let mut pairs = Vec::new();
        for option in options.iter().map(|option| option.trim()) {
            // The value may be a secret, and so may be a text without a name.
            let (name, value) = option.split_once('=').ok_or_else(|| {
                error::invalid("an option in `store.options` has no `=`; expected `name=value, name=value`")
            })?;
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
            if name == "retries" {
                retry.max_retries = value
                    .parse()
                    .map_err(|_| error::invalid("the option `retries` in `store.options` is not a number"))?;
            } else {
                pairs.push((name, value.to_owned()));
            }
        }
        Ok(Self { retry, pairs })
    }

    /// Sets the options on a builder.
    fn set<B, K: FromStr>(&self, builder: B, with: impl Fn(B, K, &str) -> B) -> io::Result<B> {
        self.pairs.iter().try_fold(builder, |builder, (name, value)| {
            let key = name.parse().map_err(|_| {
                error::invalid(format!(
                    "`store.options` has an unknown option `{name}`; the options are those of object_store, such as \
                     `endpoint`, `region` or `allow_http`, and `retries`"
                ))
            })?;
            Ok(with(builder, key, value))
        })
    }
}

/// Returns whether one of these settings has a value, or one of these switches is on.
fn has_credentials<K>(
    value: impl Fn(&K) -> Option<String>,
    settings: impl IntoIterator<Item = K>,
    switches: impl IntoIterator<Item = K>,
) -> bool {
    settings.into_iter().any(|key| value(&key).is_some())
        || switches
            .into_iter()
            .any(|key| value(&key).is_some_and(|value| value == "true"))
}

fn s3(bucket: &str, options: Options) -> io::Result<Service> {
    use AmazonS3ConfigKey as Key;
    let builder = options.set(AmazonS3Builder::from_env(), |builder, key, value| {
        builder.with_config(key, value)
    })?;
    let settings = [
        Key::AccessKeyId,
        Key::WebIdentityTokenFile,
        Key::ContainerCredentialsRelativeUri,
        Key::ContainerCredentialsFullUri,
    ];
    let has_credentials = has_credentials(
        |key| builder.get_config_value(key),
        settings,
        [Key::SkipSignature],
    );
    let store = builder.with_bucket_name(bucket).with_retry(options.retry).build();
    let store = store.map_err(error::of_configuration)?;
    Ok(Service::new(Kind::S3, bucket, has_credentials, store))
}

fn google(bucket: &str, options: Options) -> io::Result<Service> {
    use GoogleConfigKey as Key;
    let builder = options.set(GoogleCloudStorageBuilder::from_env(), |builder, key, value| {
        builder.with_config(key, value)
    })?;
    let settings = [
        Key::ServiceAccount,
        Key::ServiceAccountKey,
        Key::ApplicationCredentials,
        Key::BearerToken,
    ];
    let has_credentials = has_credentials(
        |key| builder.get_config_value(key),
        settings,
        [Key::SkipSignature],
    );
    let store = builder.with_bucket_name(bucket).with_retry(options.retry).build();
    let store = store.map_err(error::of_configuration)?;
    Ok(Service::new(Kind::Google, bucket, has_credentials, store))
}

fn azure(container: &str, options: Options) -> io::Result<Service> {
    use AzureConfigKey as Key;
    let builder = options.set(MicrosoftAzureBuilder::from_env(), |builder, key, value| {
        builder.with_config(key, value)
    })?;
    let settings = [
        Key::AccessKey,
        Key::SasKey,
        Key::Token,
        Key::ClientSecret,
        Key::FederatedTokenFile,
    ];
    let switches = [Key::SkipSignature, Key::UseEmulator, Key::UseAzureCli];
    let has_credentials = has_credentials(|key| builder.get_config_value(key), settings, switches);
    let account = builder.get_config_value(&Key::AccountName);
    let store = builder
        .with_container_name(container)
        .with_retry(options.retry)
        .build();
    let store = store.map_err(error::of_configuration)?;
    let service = Service::new(Kind::Azure, container, has_credentials, store);
    Ok(Service { account, ..service })
}

/// The whole URL, with its query, is the store, and its only object has an empty key.
fn http(text: &str, options: Options) -> io::Result<Service> {
    let invalid = |cause: &dyn fmt::Display| error::invalid(format!("the URL is not valid: {cause}"));
    let mut url = Url::parse(text).map_err(|cause| invalid(&cause))?;
    let client = ClientOptions::new().with_allow_http(true);
    let mut client = options.set(client, |client, key: ClientConfigKey, value| {
        client.with_config(key, value)
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        let decode = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<_>>();
        let mut user = decode(url.username());
        user.push(b':');
        user.extend(decode(url.password().unwrap_or_default()));
        let value = format!("Basic {}", BASE64_STANDARD.encode(user));
        let headers = HashMap::from([("authorization".to_owned(), value)]);
        client = client.with_default_headers((&headers).try_into().map_err(|_| invalid(&"bad user"))?);
        if url
            .set_username("")
            .and_then(|()| url.set_password(None))
            .is_err()
        {
            return Err(invalid(&"it cannot have a user"));
        }
    }
    let store = HttpBuilder::new()
        .with_url(url.as_str())
        .with_client_options(client)
        .with_retry(options.retry)
        .build();
    Ok(Service {
        kind: Kind::Http,
        bucket: url.host_str().unwrap_or_default().to_owned(),
        has_credentials: true,
        objects: Arc::new(store.map_err(error::of_configuration)?),
        account: None,
        multipart: None,
    })
}

/// Returns the error of a request.
pub(super) fn of_request(service: &Service, error: &object_store::Error) -> io::Error {
    let (bucket, code) = (&service.bucket, error::code(error));
    match error {
        object_store::Error::NotFound { .. } if service.kind == Kind::Http => {
            io::Error::new(io::ErrorKind::NotFound, "the server does not have it")
        }
        _ if code.as_deref() == Some("NoSuchBucket") => io::Error::new(
            io::ErrorKind::NotFound,
            format!("the bucket `{bucket}` does not exist; create it, or correct the URL"),
        ),
        object_store::Error::NotFound { .. } => io::Error::new(
            io::ErrorKind::NotFound,
            format!("it does not exist, or there is no bucket `{bucket}`"),
        ),
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            let code = code.map(|code| format!(" ({code})")).unwrap_or_default();
            let hint = hint(service).unwrap_or("check the credentials and their permissions");
            io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("access to `{bucket}` is denied{code}; {hint}"),
            )
        }
        _ => {
            let hint = match hint(service) {
                Some(hint) if !service.has_credentials => hint,
                _ if service.kind == Kind::Http => "check the URL",
                _ => "check the endpoint, the region and the bucket",
            };
            io::Error::other(format!("{}; {hint}", error::chain(error)))
        }
    }
}

/// Returns which credentials to set, unless some are set.
fn hint(service: &Service) -> Option<&'static str> {
    match service.kind {
        Kind::Http => Some("check the user, the password and the query of the URL"),
        _ if service.has_credentials => None,
        Kind::S3 => Some(
            "no credentials are set: set `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` in the environment, or \
             `skip_signature=true` in `store.options` for public objects",
        ),
        Kind::Google => Some(
            "no credentials are set: set `GOOGLE_APPLICATION_CREDENTIALS` in the environment, or `skip_signature=true` in \
             `store.options` for public objects",
        ),
        Kind::Azure => Some(
            "no credentials are set: set `AZURE_STORAGE_ACCOUNT_NAME` and `AZURE_STORAGE_ACCOUNT_KEY` in the environment, \
             or `skip_signature=true` in `store.options` for public objects",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: LIN-02
    #[test]
    fn a_container_has_the_name_of_its_account() {
        let options = ["account_name=shop".to_owned(), "skip_signature=true".to_owned()];
        let (service, _) = Service::connect("az://box/in/a.csv", &options).unwrap();
        let (namespace, name) = service.dataset("az://box/in/a.csv");
        assert_eq!(namespace, "wasbs://box@shop.dfs.core.windows.net");
        assert_eq!(name, "in/a.csv");
    }
}
