//! An object that is read.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{Error, GetOptions, GetRange, GetResult, ObjectMeta, ObjectStoreExt};

use super::super::fingerprint::Fingerprint;
use super::super::pattern::matches_key;
use super::super::url::redact;
use super::service::{Kind, Service, of_request};
use super::{error, wait};
use crate::dataset::DatasetName;

/// An object in an object store, or what an HTTP server returns for a URL.
#[derive(Clone)]
pub(crate) struct Object {
    service: Arc<Service>,
    key: Path,
    /// The URL without secrets.
    shown: Arc<str>,
    known: Arc<Mutex<Known>>,
}

/// What is known of an object.
#[derive(Default)]
struct Known {
    /// The object when its fingerprint was last taken. What is read is checked against it.
    meta: Option<ObjectMeta>,
    /// The answer to the last request, with its position: the text of a record is read again for messages and `raw.field`.
    recent: Option<(u64, Bytes)>,
}

impl Object {
    pub(super) fn new(service: &Arc<Service>, key: Path, shown: &str) -> Self {
        Self {
            service: Arc::clone(service),
            key,
            shown: shown.into(),
            known: Arc::default(),
        }
    }

    /// Returns the objects that match `url`, which may be a pattern, in the order of their names or ages. With `stored`, the caller
    /// stores their names, so a URL with a user or a query is an error.
    pub(crate) fn find(
        url: &str,
        oldest_first: bool,
        options: &[String],
        stored: bool,
    ) -> io::Result<Vec<Self>> {
        let (service, key) = Service::connect(url, options)?;
        let (service, shown) = (Arc::new(service), redact(url));
        if service.kind == Kind::Http {
            if stored && shown != url {
                return Err(error::invalid(
                    "a URL with a user or a query cannot be the input of partitions, because their plan is stored in the repository; read it in a \
                     step without partitions",
                ));
            }
            return Ok(vec![Self::new(&service, Path::default(), &shown)]);
        }
        let one = Self::new(&service, parse(&key)?, &shown);
        // A key may have a `[` in it.
        if !key.contains(['*', '[']) || one.exists().unwrap_or_default() {
            return Ok(vec![one]);
        }
        let bucket = &shown[..shown.len() - key.len()];
        let mut found = list(&service, &key)?;
        found.sort_by(|one, other| {
            let by_time = oldest_first.then(|| one.last_modified.cmp(&other.last_modified));
            let by_name = one.location.cmp(&other.location);
            by_time.map_or(by_name, |order| order.then(by_name))
        });
        let objects = found.into_iter().map(|meta| {
            let shown = format!("{bucket}{}", meta.location);
            Self::new(&service, meta.location, &shown)
        });
        Ok(objects.collect())
    }

    /// Returns the dataset that it is.
    pub(crate) fn dataset(&self) -> DatasetName {
        self.service.dataset(&self.shown)
    }

    pub(crate) fn exists(&self) -> io::Result<bool> {
        match self.head() {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn head(&self) -> io::Result<ObjectMeta> {
        let (service, key) = (Arc::clone(&self.service), self.key.clone());
        let found = wait(async move { service.objects.head(&key).await })?;
        found.map_err(|error| of_request(&self.service, &error))
    }

    pub(crate) fn fingerprint(&self) -> io::Result<Fingerprint> {
        let meta = self.head()?;
        let fingerprint = Fingerprint {
            head: self.checksum_of_head(&meta)?,
            ..without_head(&meta)
        };
        *self.known() = Known {
            meta: Some(meta),
            recent: None,
        };
        Ok(fingerprint)
    }

    /// Returns the fingerprint without the checksum of the beginning, if an entity tag identifies the content.
    pub(crate) fn quick_fingerprint(&self) -> io::Result<Fingerprint> {
        let meta = self.head()?;
        let head = match meta.e_tag {
            Some(_) => 0,
            None => self.checksum_of_head(&meta)?,
        };
        let fingerprint = without_head(&meta);
        Ok(Fingerprint { head, ..fingerprint })
    }

    pub(super) fn meta(&self) -> io::Result<ObjectMeta> {
        let meta = self.known().meta.clone();
        meta.map_or_else(|| self.head(), Ok)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bytes from a position on, if they are in the answer to the last request.
    pub(super) fn recent(&self, position: u64) -> Option<Bytes> {
        let known = self.known();
        let (start, bytes) = known.recent.as_ref()?;
        let skipped = usize::try_from(position.checked_sub(*start)?).ok()?;
        (skipped < bytes.len()).then(|| bytes.slice(skipped..))
    }

    /// Releases the answer to the last request.
    pub(crate) fn release(&self) {
        self.known().recent = None;
    }

    pub(super) fn keep(&self, position: u64, bytes: &Bytes) {
        self.known().recent = Some((position, bytes.clone()));
    }

    /// Downloads the object to a temporary file without a name.
    pub(crate) fn download(&self) -> io::Result<std::fs::File> {
        let mut file = tempfile::tempfile()?;
        io::copy(&mut self.open_at(0)?, &mut file)?;
        io::Seek::rewind(&mut file)?;
        Ok(file)
    }

    /// Requests a range of the object, or all of it. `None` if the server does not support ranges.
    pub(super) fn get(&self, range: Option<std::ops::Range<u64>>) -> io::Result<Option<GetResult>> {
        let (service, key) = (Arc::clone(&self.service), self.key.clone());
        let options = GetOptions {
            range: range.map(GetRange::Bounded),
            ..GetOptions::default()
        };
        match wait(async move { service.objects.get_opts(&key, options).await })? {
            Ok(found) => Ok(Some(found)),
            Err(Error::NotSupported { .. }) => Ok(None),
            Err(error) => Err(self.fail(&error)),
        }
    }

    pub(super) fn fail(&self, error: &Error) -> io::Error {
        of_request(&self.service, error)
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

fn without_head(meta: &ObjectMeta) -> Fingerprint {
    // If a server sends no time, `last_modified` is in 1970.
    let modified = u64::try_from(meta.last_modified.timestamp_millis()).ok();
    Fingerprint {
        size: meta.size,
        modified: modified.filter(|time| *time > 0),
        head: 0,
        etag: meta.e_tag.clone(),
    }
}

/// Returns the objects that match a pattern.
fn list(service: &Arc<Service>, pattern: &str) -> io::Result<Vec<ObjectMeta>> {
    let glob = glob::Pattern::new(pattern).map_err(|cause| error::invalid(cause.to_string()))?;
    let fixed = pattern.find(['*', '[']).unwrap_or(pattern.len());
    let (folder, rest) = pattern.split_at(pattern[..fixed].rfind('/').map_or(0, |slash| slash + 1));
    let (prefix, is_deep) = (parse(folder)?, rest.contains('/'));
    let of = Arc::clone(service);
    let listed = wait(async move {
        if is_deep {
            return of.objects.list(Some(&prefix)).try_collect::<Vec<_>>().await;
        }
        let listed = of.objects.list_with_delimiter(Some(&prefix)).await?;
        Ok(listed.objects)
    })?;
    let mut found = listed.map_err(|error| of_request(service, &error))?;
    found.retain(|meta| matches_key(&glob, meta.location.as_ref()));
    Ok(found)
}

/// Returns the key as the store has it: object_store does not know keys such as `a//b`.
pub(super) fn parse(key: &str) -> io::Result<Path> {
    let key = key.strip_suffix('/').unwrap_or(key);
    Path::parse(key).map_err(|cause| error::invalid(cause.to_string()))
}
