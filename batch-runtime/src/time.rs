//! Points in time as the repository stores them, the clock, and the time zone of the stored times.
// Spec: DOM-18

pub use crate::clock::{Clock, SystemClock, Timestamp, TimestampError};
pub use crate::time_zone::{TimeZone, TimeZoneError};
