//! Object stores and HTTP without the feature `object-store`: there are no objects.

use std::convert::Infallible;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::fingerprint::Fingerprint;
use super::url;
use crate::dataset::DatasetName;

/// An object: there are none.
#[derive(Clone, Debug)]
pub(crate) struct Object(Infallible);

impl Object {
    pub(crate) fn find(
        url: &str,
        _oldest_first: bool,
        _options: &[String],
        _stored: bool,
    ) -> io::Result<Vec<Self>> {
        Err(unsupported(url))
    }

    pub(crate) fn dataset(&self) -> DatasetName {
        match self.0 {}
    }

    pub(crate) fn exists(&self) -> io::Result<bool> {
        match self.0 {}
    }

    pub(crate) fn fingerprint(&self) -> io::Result<Fingerprint> {
        match self.0 {}
    }

    pub(crate) fn quick_fingerprint(&self) -> io::Result<Fingerprint> {
        match self.0 {}
    }

    pub(crate) fn release(&self) {
        match self.0 {}
    }

    pub(crate) fn open_at(&self, _start: u64) -> io::Result<Box<dyn Read + Send>> {
        match self.0 {}
    }

    pub(crate) fn download(&self) -> io::Result<File> {
        match self.0 {}
    }
}

impl fmt::Display for Object {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

/// The objects of an output: there are none.
#[derive(Debug)]
pub(super) struct Destination(Infallible);

impl Destination {
    pub(super) fn new(url: &str, _options: &[String]) -> io::Result<Self> {
        Err(unsupported(url))
    }

    pub(super) fn spool_name(&self) -> (String, String) {
        match self.0 {}
    }

    pub(super) fn dataset(&self, _name: &str) -> DatasetName {
        match self.0 {}
    }

    pub(super) fn exists(&self, _name: &str) -> io::Result<bool> {
        match self.0 {}
    }

    pub(super) fn delete(&self, _name: &str) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn start(&self, _name: &str, _spool: &Path) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn abort_upload(&self, _name: &str, _spool: &Path) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn upload_committed(&self, _name: &str, _spool: &Path, _committed: u64) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn publish(&self, _name: &str, _spool: &Path) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn take_back(
        &self,
        _name: &str,
        _spool: &Path,
        _check: impl Fn(&File) -> io::Result<()>,
    ) -> io::Result<()> {
        match self.0 {}
    }
}

fn unsupported(url: &str) -> io::Error {
    let scheme = url::split(url).map_or("", |(scheme, _)| scheme);
    io::Error::new(io::ErrorKind::Unsupported, url::unsupported(scheme))
}
