//! The setting `dispatch`: where partitions run.

use batch_runtime::BatchRuntimeBuilder;
#[cfg(not(feature = "nats"))]
use batch_runtime::url::redact;

use crate::error::CliError;

/// Returns whether a value is the address of a server, and not the name of a dispatcher.
pub(crate) fn is_address(value: &str) -> bool {
    ["nats://", "tls://"]
        .iter()
        .any(|scheme| value.starts_with(scheme))
}

/// Connects to a server, which carries the partitions of this process from now on.
#[cfg(feature = "nats")]
pub(crate) fn connect(runtime: BatchRuntimeBuilder, address: &str) -> Result<BatchRuntimeBuilder, CliError> {
    let transport = batch_nats::NatsTransport::connect(address)?;
    Ok(runtime.partition_transport("nats", transport).dispatch("nats"))
}

#[cfg(not(feature = "nats"))]
pub(crate) fn connect(_: BatchRuntimeBuilder, address: &str) -> Result<BatchRuntimeBuilder, CliError> {
    Err(CliError::NoNats(redact(address)))
}
