//! The upload of a spool, part by part.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path as Key;
use object_store::{Error, ObjectStoreExt};
use serde::{Deserialize, Serialize};

use super::super::resource::{Whole, read_whole};
use super::service::{Service, of_request};
use super::{error, wait};

/// The length of all parts but the last one. Stores accept 10,000 parts of at least 5 MiB.
const PART: u64 = 16 << 20;
const MOST_PARTS: u64 = 10_000;

pub(super) struct Upload<'a> {
    service: &'a Arc<Service>,
    key: Key,
    spool: &'a Path,
    /// Where the progress is noted.
    note: PathBuf,
}

/// The parts that are uploaded, from the first one on.
#[derive(Default, Serialize, Deserialize)]
struct Progress {
    id: String,
    parts: Vec<String>,
}

impl<'a> Upload<'a> {
    pub(super) fn new(service: &'a Arc<Service>, key: Key, spool: &'a Path) -> Self {
        let mut note = spool.as_os_str().to_owned();
        note.push(".upload");
        Self {
            service,
            key,
            spool,
            note: note.into(),
        }
    }

    /// Starts an upload without parts, after ending an earlier one.
    pub(super) fn start(&self) -> io::Result<()> {
        self.abort()?;
        self.create().map(drop)
    }

    pub(super) fn abort(&self) -> io::Result<()> {
        let Some(progress) = self.progress()? else {
            return Ok(());
        };
        let (key, id) = (self.key.clone(), progress.id);
        match self.request(|store| async move { store.abort_multipart(&key, &id).await })? {
            Ok(()) | Err(Error::NotFound { .. }) => fs::remove_file(&self.note),
            Err(error) => Err(self.fail(&error)),
        }
    }

    /// Uploads whole parts up to a position, behind which nothing is committed, and forgets parts behind it.
    pub(super) fn upload_committed(&self, committed: u64) -> io::Result<()> {
        let whole = committed / PART;
        match self.progress()? {
            None if whole == 0 => Ok(()),
            Some(progress) if progress.parts.len() as u64 == whole => Ok(()),
            progress => self.or_anew(progress, |progress| self.put_parts(progress, whole)),
        }
    }

    /// Uploads the rest. Then the object is there.
    pub(super) fn complete(&self) -> io::Result<()> {
        let length = fs::metadata(self.spool)?.len();
        if length <= PART {
            self.put_whole()?;
            return self.abort();
        }
        self.or_anew(self.progress()?, |progress| {
            self.put_parts(progress, length.div_ceil(PART))?;
            let (key, id) = (self.key.clone(), progress.id.clone());
            let parts = progress.parts.iter().map(|content_id| PartId {
                content_id: content_id.clone(),
            });
            let parts = parts.collect();
            let completed =
                self.request(|store| async move { store.complete_multipart(&key, &id, parts).await })?;
            completed.map(drop).map_err(|error| self.fail(&error))
        })?;
        fs::remove_file(&self.note)
    }

    /// Continues an upload. If the store has removed it, starts a new one.
    fn or_anew(
        &self,
        progress: Option<Progress>,
        act: impl Fn(&mut Progress) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Some(mut progress) = progress {
            match act(&mut progress) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    tracing::info!(target: "batch.store", key = %self.key, "the store has removed the multipart upload; uploading from the beginning");
                }
                result => return result,
            }
        }
        act(&mut self.create()?)
    }

    /// Uploads parts until there are so many; the last one may be shorter.
    fn put_parts(&self, progress: &mut Progress, count: u64) -> io::Result<()> {
        if count > MOST_PARTS {
            return Err(error::invalid(format!(
                "it is longer than {} GiB; set `max.items.per.file` to write several objects",
                (MOST_PARTS * PART) >> 30
            )));
        }
        let count = usize::try_from(count).map_err(io::Error::other)?;
        if progress.parts.len() > count {
            progress.parts.truncate(count);
            self.save(progress)?;
        }
        for index in progress.parts.len()..count {
            let mut part = Vec::new();
            let rest = Whole::new(File::open(self.spool)?, index as u64 * PART)?;
            rest.take(PART).read_to_end(&mut part)?;
            let (key, id) = (self.key.clone(), progress.id.clone());
            let put =
                self.request(|store| async move { store.put_part(&key, &id, index, part.into()).await })?;
            let part = put.map_err(|error| self.fail(&error))?;
            progress.parts.push(part.content_id);
            self.save(progress)?;
        }
        Ok(())
    }

    /// Uploads a short spool by one request.
    fn put_whole(&self) -> io::Result<()> {
        let bytes = read_whole(self.spool)?;
        let (service, key) = (Arc::clone(self.service), self.key.clone());
        let put = wait(async move { service.objects.put(&key, bytes.into()).await })?;
        put.map(drop).map_err(|error| self.fail(&error))
    }

    fn create(&self) -> io::Result<Progress> {
        let key = self.key.clone();
        let created = self.request(|store| async move { store.create_multipart(&key).await })?;
        let progress = Progress {
            id: created.map_err(|error| self.fail(&error))?,
            parts: Vec::new(),
        };
        self.save(&progress)?;
        Ok(progress)
    }

    fn request<T, F>(&self, act: impl FnOnce(Arc<dyn MultipartStore>) -> F) -> io::Result<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let store = self.service.multipart.clone();
        wait(act(store.ok_or(io::ErrorKind::Unsupported)?))
    }

    /// Returns what is noted, unless that cannot be read.
    fn progress(&self) -> io::Result<Option<Progress>> {
        match fs::read(&self.note) {
            Ok(note) => Ok(serde_json::from_slice(&note).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the note at once, so that it is never read half written.
    fn save(&self, progress: &Progress) -> io::Result<()> {
        let new = self.note.with_extension("note");
        fs::write(&new, serde_json::to_vec(progress)?)?;
        fs::rename(&new, &self.note)
    }

    fn fail(&self, error: &Error) -> io::Error {
        of_request(self.service, error)
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::super::service::Kind;
    use super::*;

    /// After the database was restored, a checkpoint may be before parts that are uploaded.
    #[test]
    fn parts_behind_the_checkpoint_are_uploaded_again() {
        let folder = tempfile::tempdir().unwrap();
        let spool = folder.path().join("out.part");
        let store = Arc::new(InMemory::new());
        let service = Arc::new(Service {
            kind: Kind::S3,
            bucket: "bucket".to_owned(),
            has_credentials: true,
            objects: store.clone(),
            account: None,
            multipart: Some(store.clone()),
        });
        let key = Key::from("out");
        let upload = Upload::new(&service, key.clone(), &spool);
        let part = |letter: u8| vec![letter; PART as usize];
        upload.start().unwrap();
        fs::write(&spool, [part(b'a'), part(b'b'), part(b'c')].concat()).unwrap();
        upload.upload_committed(2 * PART + 1).unwrap();
        assert_eq!(upload.progress().unwrap().unwrap().parts.len(), 2);
        upload.upload_committed(2 * PART - 1).unwrap();
        assert_eq!(upload.progress().unwrap().unwrap().parts.len(), 1);
        let content = [part(b'a'), part(b'd'), b"e".to_vec()].concat();
        fs::write(&spool, &content).unwrap();
        upload.complete().unwrap();
        let found = wait(async move { store.get(&key).await?.bytes().await });
        assert!(found.unwrap().unwrap() == content);
        assert!(upload.progress().unwrap().is_none());
    }
}
