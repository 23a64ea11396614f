//! Clients of databases that have a connection string instead of a URL.

use crate::connection_string::ConnectionString;
use crate::error::BatchError;
use crate::execution::JobInstance;

/// A client of the databases of a [`ConnectionString`], which its crate registers by `batch_runtime::destination_client!`.
pub struct DestinationClient {
    /// Removes the markers of an instance that was purged, as [`forget_markers`](super::forget_markers) does.
    pub forget: fn(&ConnectionString, &JobInstance) -> Result<(), BatchError>,
}
