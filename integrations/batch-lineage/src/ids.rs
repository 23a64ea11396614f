//! The ids of runs. They follow from the trace context that is stored with a job execution, so that worker processes know the runs of the
//! coordinator.

use std::hash::{BuildHasher, RandomState};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

/// Returns the id of the run of a job execution.
///
/// Neither this id nor a step's may ever change: processes of several versions take part in a job.
pub(crate) fn of_job(context: &str) -> String {
    hashed(context, "")
}

/// Returns the id of the run of a step, which `name` names in the repository.
pub(crate) fn of_step(context: &str, name: &str) -> String {
    hashed(context, name)
}

/// Returns a UUID of version 8 that is made of hashes.
fn hashed(context: &str, name: &str) -> String {
    // Samplers may change the flags.
    let identity = context.rsplit_once('-').map_or(context, |(identity, _)| identity);
    let hash = Sha256::new()
        .chain_update(identity)
        .chain_update([0])
        .chain_update(name);
    let mut bytes = hash.finalize();
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex(&bytes[..16]);
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &hex[part]);
    parts.join("-")
}

/// Returns a new trace context, as the W3C header `traceparent`. It is marked as sampled, so that workers that trace their jobs do.
pub(crate) fn new_context() -> String {
    // The hash of each state is random.
    let random = || RandomState::new().hash_one(SystemTime::now()).to_be_bytes();
    let hash = Sha256::new()
        .chain_update(random())
        .chain_update(random())
        .chain_update(random())
        .chain_update(random())
        .chain_update(std::process::id().to_be_bytes());
    let hex = hex(&hash.finalize());
    format!("00-{}-{}-01", &hex[..32], &hex[32..48])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parent::is_uuid;

    const CONTEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    /// The ids are the same in every other process and version.
    // Spec: LIN-05
    #[test]
    fn ids_never_change() {
        assert_eq!(of_job(CONTEXT), "e7d6ef47-d07d-8867-baed-89de8a6e4904");
        assert_eq!(of_step(CONTEXT, "load"), "cd736d47-93cc-82ea-b3c7-ee670e37448d");
        assert_eq!(of_job(CONTEXT), of_job(&CONTEXT.replace("-01", "-00")));
        assert!(is_uuid(&of_job(CONTEXT)));
    }

    // Spec: LIN-05
    #[test]
    fn contexts_are_new() {
        let (one, other) = (new_context(), new_context());
        assert_ne!(one, other);
        assert_eq!(one.len(), CONTEXT.len());
    }
}
