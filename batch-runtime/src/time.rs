//! Points in time as the repository stores them, the clock that gives them, and the time zone that they are stored in.
//!
//! Spec: DOM-18

pub use crate::clock::{Clock, SystemClock, Timestamp, TimestampError};
pub use crate::time_zone::{TimeZone, TimeZoneError};
