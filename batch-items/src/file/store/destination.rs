//! The objects of an output.
//!
//! Objects cannot grow or be truncated: an object appears whole, or not at all. So an output is written to a local file, the
//! spool, like any other output, and uploaded from there. The bytes before the last but one checkpoint are final. They are uploaded
//! in parts while the step runs, and the rest when the step completes; then the object appears. A file beside the spool records
//! the parts, so that a restart continues the upload. It only saves work: without it, or if the store has removed the upload,
//! everything is uploaded again.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use object_store::ObjectStoreExt;
use object_store::path::Path as Key;
use sha2::{Digest, Sha256};

use super::object::{Object, parse};
use super::service::{Service, of_request};
use super::upload::Upload;
use super::{error, wait};
use crate::dataset::DatasetName;

/// The objects of an output, which have names beside each other.
#[derive(Debug)]
pub(crate) struct Destination {
    service: Arc<Service>,
    /// The URL and the key without the name.
    folder: String,
    key: String,
    name: String,
}

impl Destination {
    pub(crate) fn new(url: &str, options: &[String]) -> io::Result<Self> {
        let (service, key) = Service::connect(url, options)?;
        if service.multipart.is_none() {
            return Err(error::invalid(
                "an HTTP server can only be read; write to a file, `s3://`, `gs://` or `az://`",
            ));
        }
        parse(&key)?;
        let (folder, name) = key.split_at(key.rfind('/').map_or(0, |slash| slash + 1));
        if name.is_empty() {
            return Err(error::invalid("the URL ends with `/`; name an object"));
        }
        Ok(Self {
            service: Arc::new(service),
            folder: url[..url.len() - name.len()].to_owned(),
            key: folder.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Returns the directory and the name of the spool.
    pub(crate) fn spool_name(&self) -> (String, String) {
        let hash = Sha256::digest(format!("{}{}", self.folder, self.name));
        let hash = hash.iter().take(8).map(|byte| format!("{byte:02x}"));
        (hash.collect(), self.name.clone())
    }

    /// Returns the dataset that the object of a name is.
    pub(crate) fn dataset(&self, name: &str) -> DatasetName {
        self.service.dataset(&format!("{}{name}", self.folder))
    }

    pub(crate) fn exists(&self, name: &str) -> io::Result<bool> {
        self.object(name)?.exists()
    }

    pub(crate) fn delete(&self, name: &str) -> io::Result<()> {
        let (service, key) = (Arc::clone(&self.service), self.key(name)?);
        match wait(async move { service.objects.delete(&key).await })? {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(of_request(&self.service, &error)),
        }
    }

    /// Starts an upload. That fails if the step would not be allowed to upload its output at the end.
    pub(crate) fn start(&self, name: &str, spool: &Path) -> io::Result<()> {
        self.upload(name, spool)?.start()
    }

    /// Ends an upload that does not continue.
    pub(crate) fn abort_upload(&self, name: &str, spool: &Path) -> io::Result<()> {
        self.upload(name, spool)?.abort()
    }

    /// Uploads the bytes that are committed, as far as they are whole parts.
    pub(crate) fn upload_committed(&self, name: &str, spool: &Path, committed: u64) -> io::Result<()> {
        self.upload(name, spool)?.upload_committed(committed)
    }

    /// Uploads the rest of the spool. Then the object is there, and the spool is removed.
    pub(crate) fn publish(&self, name: &str, spool: &Path) -> io::Result<()> {
        self.upload(name, spool)?.complete()?;
        fs::remove_file(spool)
    }

    /// Downloads the object to the spool, if there is one and `check` accepts it: the process died after it had published it.
    pub(crate) fn take_back(
        &self,
        name: &str,
        spool: &Path,
        check: impl Fn(&File) -> io::Result<()>,
    ) -> io::Result<()> {
        let object = self.object(name)?;
        if !object.exists()? {
            return Ok(());
        }
        let mut path = spool.as_os_str().to_owned();
        path.push(".download");
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        let downloaded = io::copy(&mut object.open_at(0)?, &mut file);
        match downloaded.and_then(|_| check(&file)) {
            Ok(()) => fs::rename(&path, spool),
            Err(error) => fs::remove_file(&path).and(Err(error)),
        }
    }

    fn object(&self, name: &str) -> io::Result<Object> {
        let shown = format!("{}{name}", self.folder);
        Ok(Object::new(&self.service, self.key(name)?, &shown))
    }

    fn key(&self, name: &str) -> io::Result<Key> {
        parse(&format!("{}{name}", self.key))
    }

    fn upload<'a>(&'a self, name: &str, spool: &'a Path) -> io::Result<Upload<'a>> {
        Ok(Upload::new(&self.service, self.key(name)?, spool))
    }
}
