//! The setting `dispatch`: where partitions run.

use batch_runtime::BatchRuntimeBuilder;

use crate::error::CliError;

/// Returns whether a value is the address of a server, and not the name of a dispatcher.
pub(crate) fn is_address(value: &str) -> bool {
    ["nats://", "tls://"]
        .iter()
        .any(|scheme| value.starts_with(scheme))
}

/// Returns an address for people: without password and token.
pub(crate) fn shown(address: &str) -> String {
    match (address.split_once("//"), address.rsplit_once('@')) {
        (Some((scheme, _)), Some((before, place))) => {
            // Without a password it is a token.
            let user = before[scheme.len() + 2..].split_once(':');
            let user = user.map_or(String::new(), |(user, _)| format!("{user}:"));
            format!("{scheme}//{user}***@{place}")
        }
        _ => address.to_owned(),
    }
}

/// Connects to a server, which carries the partitions of this process from now on.
#[cfg(feature = "nats")]
pub(crate) fn connect(runtime: BatchRuntimeBuilder, address: &str) -> Result<BatchRuntimeBuilder, CliError> {
    let transport = batch_nats::NatsTransport::connect(address)?;
    Ok(runtime.partition_transport("nats", transport).dispatch("nats"))
}

#[cfg(not(feature = "nats"))]
pub(crate) fn connect(_: BatchRuntimeBuilder, address: &str) -> Result<BatchRuntimeBuilder, CliError> {
    Err(CliError::NoNats(shown(address)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (address, expected) in [
            ("nats://host:4222", "nats://host:4222"),
            ("nats://ann:p@ss@host?prefix=a", "nats://ann:***@host?prefix=a"),
            ("nats://token@host", "nats://***@host"),
        ] {
            assert_eq!(shown(address), expected);
        }
    }
}
